#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/units.h"

namespace faultline::comm {

/// Memory that collectives without a full-sized result pass data through. Kept for the next one,
/// so that its pages are not touched for the first time again and again. Any thread; what was
/// taken may outlive the pool.
class ScratchPool {
 public:
  std::shared_ptr<std::byte> take(Bytes bytes) {
    Block block = shared_->take(bytes);
    std::byte* const memory = block.memory.get();
    // A deleter is copied while it is handed over, so it cannot own memory alone.
    auto owned = std::make_shared<Block>(std::move(block));
    return {memory, [shared = shared_, owned = std::move(owned)](std::byte*) {
              shared->giveBack(std::move(*owned));
            }};
  }

 private:
  /// More collectives at a time than this do not keep theirs.
  static constexpr std::size_t kMostSpare = 4;

  struct Block {
    std::unique_ptr<std::byte[]> memory;
    Bytes bytes = 0;
  };
  struct Shared {
    Block take(Bytes bytes) {
      {
        const std::lock_guard lock(mutex);
        const auto fits =
            std::ranges::find_if(spare, [&](const Block& block) { return block.bytes >= bytes; });
        if (fits != spare.end()) {
          Block block = std::move(*fits);
          spare.erase(fits);
          return block;
        }
      }
      return {std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)), bytes};
    }
    void giveBack(Block block) {
      const std::lock_guard lock(mutex);
      if (spare.size() >= kMostSpare) spare.erase(spare.begin());  // the one kept longest
      spare.push_back(std::move(block));
    }

    std::mutex mutex;
    std::vector<Block> spare;
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace faultline::comm
