#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/sim_world.h"

// Random sizes, posting times, faults, pauses, losses and repetitions from a seed. Whatever
// happens, with a rail that lives in the end every byte arrives exactly once, and memory that was
// given back stays untouched. FAULTLINE_SEED=n runs one seed, FAULTLINE_SEEDS=n that many.

namespace faultline::test {
namespace {

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Totals {
  std::uint64_t failovers = 0, failbacks = 0, resent = 0, suspicions = 0, copied = 0;
  std::uint64_t stalls = 0;
};

void runSeed(std::uint64_t seed, Totals& totals) {
  Random random(seed);
  SimOptions options;
  options.seed = random();
  options.link.rails = 1 + static_cast<int>(random.below(4));
  options.link.policy = random.below(2) ? channel::Policy::kPull : channel::Policy::kPinned;
  options.link.chunkBytes = 4 << 10;
  options.link.windowTime = 300us;  // eight chunks
  options.link.tailBudget = random.below(4) == 0 ? 0 : 64 << 10;
  options.lateWrites = random.below(2);
  options.mixed = random.below(3) == 0;
  options.backsOff = random.below(2);
  options.datagramLoss = random.below(3) == 0 ? 0.3 * random.unit() : 0;
  options.datagramDuplication = random.below(3) == 0 ? 0.3 : 0;
  options.datagramJitter = random.below(2) ? 100us : 2ms;
  SimWorld world(options);
  // Rails of different speed, which changes now and then.
  const bool uneven = random.below(2);
  const auto rate = [&random] { return 100e6 / static_cast<double>(1 << random.below(8)); };
  for (int rail = 0; uneven && rail < options.link.rails; ++rail) {
    world.slow(rail, rate());
    const double later = rate();
    world.clock().after(Duration(random.below(60'000'000)),
                        [&world, rail, later] { world.slow(rail, later); });
  }
  world.lateDelivery(Duration(random.below(50'000'000)));

  const int count = 1 + static_cast<int>(random.below(30));
  for (int i = 0; i < count; ++i) {
    world.message(static_cast<int>(random.below(2)), random.below(200'000),
                  Duration(random.below(30'000'000)), Duration(random.below(30'000'000)));
  }
  bool everFailed = false;
  const int faults = static_cast<int>(random.below(6));
  for (int i = 0; i < faults; ++i) {
    const int rail = static_cast<int>(random.below(options.link.rails));
    const int end = static_cast<int>(random.below(2));
    const auto kind = random.below(6);
    everFailed = everFailed || kind < 4;
    world.clock().after(Duration(random.below(60'000'000)), [&world, rail, end, kind, &random] {
      switch (kind) {
        case 0:
          world.portDown(end, rail);
          break;
        case 1:
          world.blackHole(rail);
          break;
        case 2:
          world.blackHole(rail, end == 0, end == 1);
          break;
        case 3:
          world.reset(rail);
          break;
        case 4:
          world.pause(end, Duration(random.below(100'000'000)));
          break;
        case 5:
          world.slow(rail, 1e6);
          break;
      }
    });
    if (random.below(4) == 0) {  // over before a verdict, but the transport may wait for its timer
      everFailed = true;
      const Duration begin(random.below(60'000'000));
      const Duration over = begin + 20ms + Duration(random.below(25'000'000));
      world.clock().after(begin, [&world, rail] { world.blackHole(rail); });
      world.clock().after(over, [&world, rail] { world.heal(rail); });
    }
    if (random.below(8) == 0) {  // the management network is gone for a while, too
      const Duration begin(random.below(60'000'000));
      world.clock().after(begin, [&world] { world.managementPath(false); });
      world.clock().after(begin + 200ms, [&world] { world.managementPath(true); });
    }
    // Most faults heal early, some in the middle of the repair, all in the end.
    const Duration healed = random.below(3) == 0 ? Duration(random.below(80'000'000)) : 300ms;
    world.clock().after(60ms + healed, [&world, rail] { world.heal(rail); });
  }
  ASSERT_TRUE(world.runUntilIdle(60s))
      << "hangs: " << world.error(0).message() << " / " << world.error(1).message();
  world.run(100ms);
  world.checkMemory();
  for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
  for (int end = 0; end < 2; ++end) {
    const auto& counters = world.link(end).counters();
    if (!everFailed) {
      EXPECT_EQ(counters.failovers, 0u) << "a false verdict";
    }
    const auto& sender = world.link(1 - end).counters();
    EXPECT_LE(counters.chunksDuplicate, sender.chunksCopied) << "sent again although it was held";
    EXPECT_LE(counters.bytesDuplicate, sender.bytesCopied);
    EXPECT_LE(sender.bytesCopied, count * options.link.tailBudget);
    totals.copied += sender.chunksCopied;
    totals.failovers += counters.failovers;
    totals.failbacks += counters.failbacks;
    totals.resent += counters.chunksResent;
    totals.suspicions += counters.suspicions;
    totals.stalls += counters.stalls;
  }
}

TEST(ChannelProperty, NoSeedLosesOrRepeatsAByte) {
  Totals totals;
  const std::uint64_t only = fromEnvironment("FAULTLINE_SEED", 0);
  const std::uint64_t seeds = fromEnvironment("FAULTLINE_SEEDS", 500);
  for (std::uint64_t seed = only ? only : 1; seed <= (only ? only : seeds); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " (FAULTLINE_SEED repeats it)");
    runSeed(seed, totals);
    if (::testing::Test::HasFailure()) break;
  }
  if (only) return;
  // A recovery test in which nothing was recovered is a failure.
  EXPECT_GT(totals.failovers, seeds / 4);
  EXPECT_GT(totals.failbacks, seeds / 8);
  EXPECT_GT(totals.resent, seeds / 4);
  EXPECT_GT(totals.suspicions, seeds / 8);
  EXPECT_GT(totals.stalls, seeds / 50);
  EXPECT_GT(totals.copied, seeds / 8);
}

}  // namespace
}  // namespace faultline::test
