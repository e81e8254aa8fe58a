#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/scenario/sweep.h"
#include "harness/workload/data.h"

namespace faultline::workload {

/// Input and result of one rank's calls of collectives, in host memory: makes the input of a call,
/// and looks at every element of its result. Contributor r of a result is rank r with the data of
/// the call's key: of all ranks where the call reduces, of one where it only moves. The root is
/// rank 0. Whoever calls in another memory copies `input` and `result` there, and the result back.
/// Not thread-safe.
class CollectiveBuffers {
 public:
  /// With room for each of `cells`.
  CollectiveBuffers(std::span<const scenario::SweepCell> cells, int rank, int ranks);

  /// Makes the input of a call and poisons what it is to write.
  void prepare(const scenario::SweepCell& cell, const DataKey& key);
  const scenario::SweepCell& cell() const { return cell_; }
  /// With which it is called (scenario::countOf).
  std::int64_t count() const { return count_; }

  /// What the rank brings: a part of `result` where the call works in place, else of memory apart.
  /// Empty at ranks that bring nothing.
  std::span<std::byte> source();
  /// What the rank gets. Empty at ranks that get nothing.
  std::span<std::byte> target();
  /// All of the cell's result buffer, with what the call must not be judged by.
  std::span<std::byte> result();

  /// Changes one element of the result: the self-test of `check`. Nothing where there is none.
  void corrupt(std::uint64_t seed);
  /// Compares every element of the result with what the data of `key` must give.
  CheckResult check(const DataKey& key) const;

 private:
  /// Of the result buffer, in elements.
  struct Part {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  bool isRoot() const { return rank_ == 0; }
  std::int64_t whole() const;
  Part own() const { return {rank_ * count_, count_}; }
  Part input() const;
  Part output() const;
  std::span<std::byte> bytesOf(std::vector<std::byte>& buffer, const Part& part) const;

  const int rank_;
  const int ranks_;
  std::vector<std::byte> input_;
  std::vector<std::byte> result_;
  scenario::SweepCell cell_;
  std::int64_t count_ = 0;
};

}  // namespace faultline::workload
