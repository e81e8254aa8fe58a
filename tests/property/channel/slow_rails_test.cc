#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "tests/support/sim_world.h"

// Rails that get slow and fast again while both ends always have something to send: each is found
// by both ends, once, while it is slow; nothing else ever is; and nothing is given up. Rates,
// shares, sizes, jitter, policy and pauses of the processes come from a seed.

namespace faultline::test {
namespace {

constexpr std::uint64_t kSeeds = 16;
constexpr unsigned kStrikes = 2;
constexpr Bytes kChunk = 16 << 10;
constexpr Bytes kStep = 4 * kChunk;

struct Told {
  TimePoint when;
  int end;
  channel::RailDegradation change;
};

class SlowRails {
 public:
  explicit SlowRails(std::uint64_t seed) : random_(seed), world_(options(seed)) {
    rails_ = world_.options().link.rails;
    rate_ = 1e6 * static_cast<double>(1 + random_.below(3));
    for (int rail = 0; rail < rails_; ++rail) world_.slow(rail, rate_);
    world_.onDegraded = [this](int end, const channel::RailDegradation& change) {
      told_.push_back({world_.clock().now(), end, change});
    };
  }

  void run() {
    carry(500ms);
    EXPECT_TRUE(told_.empty()) << "all rails are equal";
    for (unsigned strike = 0; strike < kStrikes; ++strike) {
      told_.clear();
      const int rail = static_cast<int>(random_.below(static_cast<std::uint64_t>(rails_)));
      const double share = std::array{0.5, 0.3, 0.1, 0.01}.at(random_.below(4));
      SCOPED_TRACE(fmt::format("strike {}: rail {} of {}, {:.0f} bytes/s, share {}", strike, rail,
                               rails_, rate_, share));
      world_.slow(rail, rate_ * share);
      carry(1s);
      expectAtBothEnds(rail, true);
      told_.clear();
      world_.slow(rail, rate_);
      carry(3s);  // what was under way has taken its time first
      expectAtBothEnds(rail, false);
    }
    for (int end = 0; end < SimWorld::kEnds; ++end) {
      EXPECT_EQ(world_.link(end).counters().failovers, 0u);
      EXPECT_EQ(world_.link(end).counters().degradations, kStrikes);
    }
    EXPECT_TRUE(world_.runUntilIdle(60s));
    world_.checkMemory();
    for (const std::string& problem : world_.problems()) ADD_FAILURE() << problem;
  }

  std::uint64_t suspicions() {
    return world_.link(0).counters().suspicions + world_.link(1).counters().suspicions;
  }

 private:
  SimOptions options(std::uint64_t seed) {
    SimOptions chosen;
    chosen.seed = seed;
    chosen.link.chunkBytes = kChunk;
    chosen.link.rails = 2 + static_cast<int>(random_.below(3));
    chosen.link.policy = random_.below(2) == 0 ? channel::Policy::kPinned : channel::Policy::kPull;
    chosen.datagramJitter = std::chrono::microseconds(100 + random_.below(900));
    chosen.lateWrites = random_.below(2) == 0;
    chosen.backsOff = true;
    return chosen;
  }

  /// Two messages each way are always under way; now and then a process stands still.
  void carry(Duration time) {
    const TimePoint over = world_.clock().now() + time;
    while (world_.clock().now() < over) {
      for (int open = world_.posted() - world_.completed(); open < 4; open += SimWorld::kEnds) {
        for (int end = 0; end < SimWorld::kEnds; ++end) {
          world_.message(end, kStep * static_cast<Bytes>(1 + random_.below(4)) * rails_);
        }
      }
      if (random_.below(100) == 0) {
        const auto length = std::chrono::milliseconds(1 + random_.below(60));
        world_.pause(static_cast<int>(random_.below(SimWorld::kEnds)), length);
      }
      world_.clock().after(5ms, [] {});  // time passes, whatever happens
      world_.run(5ms);
    }
  }

  void expectAtBothEnds(int rail, bool degraded) {
    std::map<int, int> changes;
    for (const Told& told : told_) {
      EXPECT_EQ(told.change.rail, rail) << "which is not slow";
      EXPECT_EQ(told.change.degraded, degraded);
      ++changes[told.end];
    }
    EXPECT_EQ(changes, (std::map<int, int>{{0, 1}, {1, 1}}));
  }

  Random random_;
  SimWorld world_;
  int rails_ = 0;
  double rate_ = 0;
  std::vector<Told> told_;
};

// Chunks that take longer than a second, and pauses: they were once given up as transports that
// wait for their timer.
TEST(SlowRailsProperty, ARailThatGoesOnDeliveringIsNotGivenUp) {
  for (const std::uint64_t seed : {224, 341, 587}) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SlowRails rails(seed);
    rails.run();
    EXPECT_GT(rails.suspicions(), 0u);
  }
}

TEST(SlowRailsProperty, EachIsFoundAtBothEndsAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SlowRails(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace faultline::test
