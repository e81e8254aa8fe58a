#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace faultline::schedule {

/// Sums as expressions over "the contribution of rank r": equal expressions have equal numbers, so
/// that comparing two results, order of summation included, is comparing two integers.
class SymbolicSums {
 public:
  using Id = int;

  explicit SymbolicSums(int ranks);

  /// The contribution of one rank.
  Id leaf(int rank) const { return rank; }
  /// accumulator (op) operand, in this order.
  Id add(Id accumulator, Id operand);

  /// Memory, about.
  std::int64_t bytes() const {
    constexpr std::size_t kBytesOfKnown = 32;
    return static_cast<std::int64_t>(bits_.size() * sizeof(std::uint64_t) +
                                     info_.size() * sizeof(Info) + known_.size() * kBytesOfKnown);
  }

  /// Whether every rank's contribution is in the sum.
  bool complete(Id sum) const { return size(sum) == ranks_ && duplicated(sum) < 0; }
  bool contains(Id sum, int rank) const;
  /// A rank whose contribution is in the sum more than once; -1 when there is none.
  int duplicated(Id sum) const { return info_[static_cast<std::size_t>(sum)].duplicated; }
  /// The lowest rank whose contribution is missing; -1 when there is none.
  int missing(Id sum) const;

 private:
  struct Info {
    int size = 0;  ///< number of distinct contributions
    int duplicated = -1;
  };
  int size(Id sum) const { return info_[static_cast<std::size_t>(sum)].size; }
  std::uint64_t* words(Id sum) { return bits_.data() + static_cast<std::size_t>(sum) * wordsPer_; }
  const std::uint64_t* words(Id sum) const {
    return bits_.data() + static_cast<std::size_t>(sum) * wordsPer_;
  }

  int ranks_;
  std::size_t wordsPer_;
  std::vector<Info> info_;
  std::vector<std::uint64_t> bits_;  ///< wordsPer_ words per sum: one bit per rank
  std::unordered_map<std::uint64_t, Id> known_;
};

}  // namespace faultline::schedule
