#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace faultline::schedule {

/// What a proof may still take: steps of about a nanosecond, and the memory of each of its tables.
/// Counted, and not measured: the same schedule is proved, or refused, on every machine.
class ProofWork {
 public:
  /// Of a table: about as much as the operations of the largest schedule take.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  explicit ProofWork(std::int64_t most, std::int64_t mostBytes = kMostBytes)
      : most_(most), mostBytes_(mostBytes) {}

  /// Whether there was enough left for so many steps.
  bool spend(std::int64_t steps) {
    spent_ += steps;
    return !isOver();
  }
  /// Whether a table may be this large, to be asked before it is made: otherwise the work is over.
  bool fits(std::int64_t bytes) {
    if (bytes > mostBytes_) tooLarge_ = std::max(tooLarge_, bytes);
    return !isOver();
  }
  bool isOver() const { return spent_ > most_ || tooLarge_ > 0; }
  std::int64_t spent() const { return spent_; }
  std::int64_t most() const { return most_; }
  std::int64_t mostBytes() const { return mostBytes_; }
  /// The size of the table that did not fit; 0: all did.
  std::int64_t tooLarge() const { return tooLarge_; }

 private:
  std::int64_t most_;
  std::int64_t mostBytes_;
  std::int64_t spent_ = 0;
  std::int64_t tooLarge_ = 0;
};

/// Of who cuts a schedule that was proved.
inline ProofWork unlimitedWork() {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  return ProofWork(kUnlimited, kUnlimited);
}

}  // namespace faultline::schedule
