#pragma once

#include <cstdint>
#include <functional>

#include "tests/support/channel_player.h"

namespace faultline::test {

/// Seeds from `first` to `last`.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  std::uint64_t count() const { return last - first + 1; }
};

/// FAULTLINE_SEED=n asks for one seed, FAULTLINE_SEEDS=n for that many.
Seeds seedsToPlay();

/// Plays the scripts of these seeds over all cores, and what they have reached. One that fails is
/// a failure of the test, with the shortest script in which something still does.
Coverage playSeeds(Seeds seeds, const std::function<Script(std::uint64_t seed)>& scriptOf);

}  // namespace faultline::test
