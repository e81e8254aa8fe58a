#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/workload/data.h"
#include "harness/workload/job.h"
#include "resilient_ccl/reduction/reduce.h"

namespace faultline::workload {

/// A part of the gradient, in elements.
struct Bucket {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const Bucket&) const = default;
};

/// Bucket `index` of `buckets` that share `elements` as evenly as possible. Pure.
Bucket bucketOf(std::int64_t elements, int buckets, int index);

/// One rank's gradient, the result of its reduction, and the model state that the results change.
/// No communication, no clock. Not thread-safe.
class Gradient {
 public:
  Gradient(const scenario::Gradient& options, int rank, int ranks);

  /// Only these of the ranks contribute from now on, this one among them.
  void goOnWith(std::span<const int> ranks) { left_.assign(ranks.begin(), ranks.end()); }

  /// Fills the contribution of this rank and poisons the result.
  void prepare(const DataKey& key);

  std::int64_t elements() const { return elements_; }
  reduction::DataType type() const { return type_; }
  const void* contribution(const Bucket& bucket) const { return at(contribution_, bucket); }
  void* result(const Bucket& bucket) { return const_cast<std::byte*>(at(result_, bucket)); }

  /// Changes one element of the result: the self-test of `check`. Nothing for an empty gradient.
  void corruptResult(std::uint64_t seed);
  /// Looks at every element of the result of the preparation with the same key.
  JobCheck check(const DataKey& key) const;

  /// The optimiser: adds the result to the model state, element by element. Sums of floats depend
  /// on the order of steps, so that a repeated or left-out step shows in the state.
  void step();
  std::span<const std::byte> state() const { return state_; }
  /// False, and nothing changes, when the size is another.
  bool restoreState(std::span<const std::byte> state);

 private:
  const std::byte* at(const std::vector<std::byte>& buffer, const Bucket& bucket) const {
    return buffer.data() + bucket.first * reduction::sizeOf(type_);
  }

  int rank_;
  int ranks_;
  std::vector<int> left_;  // of them; empty: all
  scenario::DataKind data_;
  reduction::DataType type_;
  std::int64_t elements_;
  std::vector<std::byte> contribution_;
  std::vector<std::byte> result_;
  std::vector<std::byte> state_;
};

}  // namespace faultline::workload
