#pragma once

#include <cstdint>
#include <span>

namespace faultline::schedule {

/// A schedule of cyclic shifts without its operations: O(1) state per rank, so that thousands of
/// ranks can be costed.
///
/// A cycle has the macro steps t = 1..p-1. In step t rank i sends to rank j = (i+t) mod p first a
/// contribution of `contributions(cycle)[j]` elements, which j adds to its own, then a result of
/// `results(cycle)[i]` elements, which is finished when i has got all contributions of the cycle
/// before. A macro step is a permutation: a rank sends to one and hears from one.
class StepView {
 public:
  virtual ~StepView() = default;

  virtual std::int64_t cycles() const = 0;
  /// Elements of the contributions of a cycle, by receiver; no message where 0. One entry per rank.
  virtual void contributions(std::int64_t cycle, std::span<std::int64_t> elements) const = 0;
  /// Elements of the results of a cycle, by sender; no message where 0. One entry per rank.
  virtual void results(std::int64_t cycle, std::span<std::int64_t> elements) const = 0;
};

}  // namespace faultline::schedule
