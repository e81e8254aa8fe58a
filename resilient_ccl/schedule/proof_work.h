#pragma once

#include <cstdint>
#include <limits>

namespace faultline::schedule {

/// What a proof may still take, in steps of about a nanosecond. Counted, and not timed: the same
/// schedule is proved, or refused, on every machine.
class ProofWork {
 public:
  explicit ProofWork(std::int64_t most) : most_(most) {}

  /// Whether there was enough left for so many steps.
  bool spend(std::int64_t steps) {
    spent_ += steps;
    return !isOver();
  }
  bool isOver() const { return spent_ > most_; }
  std::int64_t spent() const { return spent_; }
  std::int64_t most() const { return most_; }

 private:
  std::int64_t most_;
  std::int64_t spent_ = 0;
};

/// Of who cuts a schedule that was proved.
inline ProofWork unlimitedWork() { return ProofWork(std::numeric_limits<std::int64_t>::max()); }

}  // namespace faultline::schedule
