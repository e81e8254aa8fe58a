#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace faultline::schedule {

/// What a proof may still take: steps of about a nanosecond, and the memory of its tables
/// (ProofTable). Counted, and not measured: the same schedule is proved, or refused, on every
/// machine.
class ProofWork {
 public:
  /// Of a table: about as much as the operations of the largest schedule take.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  /// Of all tables that there are at the same time.
  static constexpr std::int64_t kMostBytesTogether = 2 * kMostBytes;

  explicit ProofWork(std::int64_t most, std::int64_t mostBytes = kMostBytes,
                     std::int64_t mostBytesTogether = kMostBytesTogether)
      : most_(most), mostBytes_(mostBytes), mostBytesTogether_(mostBytesTogether) {}

  /// Whether there was enough left for so many steps.
  bool spend(std::int64_t steps) {
    spent_ += steps;
    return !isOver();
  }
  bool isOver() const { return spent_ > most_ || tooLarge_ > 0 || tooLargeTogether_ > 0; }
  std::int64_t spent() const { return spent_; }
  std::int64_t most() const { return most_; }
  std::int64_t mostBytes() const { return mostBytes_; }
  std::int64_t mostBytesTogether() const { return mostBytesTogether_; }
  /// The size of the table that did not fit; 0: each did for itself.
  std::int64_t tooLarge() const { return tooLarge_; }
  /// The size of all tables that did not fit together; 0: they did.
  std::int64_t tooLargeTogether() const { return tooLargeTogether_; }

 private:
  friend class ProofTable;

  std::int64_t most_;
  std::int64_t mostBytes_;
  std::int64_t mostBytesTogether_;
  std::int64_t spent_ = 0;
  std::int64_t together_ = 0;
  std::int64_t tooLarge_ = 0;
  std::int64_t tooLargeTogether_ = 0;
};

/// What one table of a proof takes of the work's memory, from when it is made to when it goes.
class ProofTable {
 public:
  /// Borrows the work.
  explicit ProofTable(ProofWork& work) : work_(work) {}
  ~ProofTable() { work_.together_ -= bytes_; }
  ProofTable(const ProofTable&) = delete;
  ProofTable& operator=(const ProofTable&) = delete;

  /// Whether it may be this large from now on, to be asked before it is made: otherwise the work is
  /// over.
  bool fits(std::int64_t bytes) {
    if (bytes > work_.mostBytes_) {
      work_.tooLarge_ = std::max(work_.tooLarge_, bytes);
    } else if (bytes > most()) {
      work_.tooLargeTogether_ = std::max(work_.tooLargeTogether_, work_.together_ - bytes_ + bytes);
    } else {
      work_.together_ += bytes - bytes_;
      bytes_ = bytes;
    }
    return !work_.isOver();
  }
  /// The most that it could be now, beside the others.
  std::int64_t most() const {
    return std::min(work_.mostBytes_, work_.mostBytesTogether_ - (work_.together_ - bytes_));
  }

 private:
  ProofWork& work_;
  std::int64_t bytes_ = 0;
};

/// Of who cuts a schedule that was proved.
inline ProofWork unlimitedWork() {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  return ProofWork(kUnlimited, kUnlimited, kUnlimited);
}

}  // namespace faultline::schedule
