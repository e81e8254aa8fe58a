#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/property/channel/seeds.h"

// Streams are closed while their messages wait, are under way or are being sent again, and messages
// meet receives that are too short. Each ends once at each end; memory that was given back is
// neither read nor written; no send fails whose receive has all of it, unless it was withdrawn; and
// when both ends have closed a stream, neither remembers it, or a grant for it.

namespace faultline::test {
namespace {

TEST(ClosingProperty, WhatIsWithdrawnIsLeftAlone) {
  Seeds seeds = seedsToPlay();
  if (seeds.count() > 1) seeds.last = std::max<std::uint64_t>(seeds.last / 2, 1);
  const Coverage coverage = playSeeds(seeds, closingScript);
  if (HasFailure()) return;
  std::printf("%d sends and %d receives failed in %d seeds\n", coverage.failedSends,
              coverage.failedReceives, static_cast<int>(seeds.count()));
  if (seeds.count() == 1) return;
  EXPECT_GT(coverage.failedSends, static_cast<int>(seeds.count()));
  EXPECT_GT(coverage.failedReceives, static_cast<int>(seeds.count()));
  EXPECT_GT(coverage.counters.chunksArrived, 0u);
  EXPECT_GT(coverage.counters.chunksResent, 0u);
}

}  // namespace
}  // namespace faultline::test
