#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/units.h"

namespace faultline::comm {

/// Memory for what is received to be reduced: blocks of one size, reused by all collectives of a
/// process, so that none is allocated (and its pages touched) while a job runs steadily. As many as
/// were ever in use at once. Not thread-safe.
class StagingPool {
 public:
  using Block = std::unique_ptr<std::byte[]>;

  explicit StagingPool(Bytes blockBytes) : blockBytes_(blockBytes) {}

  Bytes blockBytes() const { return blockBytes_; }

  Block take() {
    if (spare_.empty()) {
      ++made_;
      return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(blockBytes_));
    }
    Block block = std::move(spare_.back());
    spare_.pop_back();
    return block;
  }
  void giveBack(Block block) { spare_.push_back(std::move(block)); }

  /// Blocks in use now, and ever made.
  std::size_t inUse() const { return made_ - spare_.size(); }
  std::size_t made() const { return made_; }

 private:
  const Bytes blockBytes_;
  std::size_t made_ = 0;
  std::vector<Block> spare_;
};

}  // namespace faultline::comm
