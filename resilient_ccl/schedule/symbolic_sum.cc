#include "resilient_ccl/schedule/symbolic_sum.h"

#include <bit>

namespace faultline::schedule {
namespace {

constexpr int kBitsPerWord = 64;

}  // namespace

SymbolicSums::SymbolicSums(int ranks)
    : ranks_(ranks),
      wordsPer_(static_cast<std::size_t>((ranks + kBitsPerWord - 1) / kBitsPerWord)),
      info_(static_cast<std::size_t>(ranks), Info{1, -1}),
      bits_(static_cast<std::size_t>(ranks) * wordsPer_, 0) {
  for (int rank = 0; rank < ranks; ++rank) {
    words(rank)[rank / kBitsPerWord] |= std::uint64_t{1} << (rank % kBitsPerWord);
  }
}

SymbolicSums::Id SymbolicSums::add(Id accumulator, Id operand) {
  const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(accumulator))
                                << 32 |
                            static_cast<std::uint32_t>(operand);
  const auto [position, isNew] = known_.try_emplace(key, static_cast<Id>(info_.size()));
  if (!isNew) return position->second;

  const Id sum = position->second;
  bits_.resize(bits_.size() + wordsPer_);
  Info info;
  info.duplicated = duplicated(accumulator) >= 0 ? duplicated(accumulator) : duplicated(operand);
  for (std::size_t i = 0; i < wordsPer_; ++i) {
    const std::uint64_t both = words(accumulator)[i] & words(operand)[i];
    if (both != 0 && info.duplicated < 0) {
      info.duplicated = static_cast<int>(i) * kBitsPerWord + std::countr_zero(both);
    }
    words(sum)[i] = words(accumulator)[i] | words(operand)[i];
    info.size += std::popcount(words(sum)[i]);
  }
  info_.push_back(info);
  return sum;
}

bool SymbolicSums::contains(Id sum, int rank) const {
  return (words(sum)[rank / kBitsPerWord] >> (rank % kBitsPerWord) & 1) != 0;
}

int SymbolicSums::missing(Id sum) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!contains(sum, rank)) return rank;
  }
  return -1;
}

}  // namespace faultline::schedule
