#include "resilient_ccl/plan/port_sampler.h"

#include <gtest/gtest.h>

namespace faultline::plan {
namespace {

constexpr double kReference = 50e6;  // bytes per second
constexpr Bytes kChunk = 64 << 10;

/// Paths of one process, as their links would tell of them.
class Net {
 public:
  explicit Net(std::size_t paths) : paths_(paths, PathLoad{.railsUp = 3}) {}

  PathLoad& path(std::size_t number) { return *paths_[number]; }
  void leaveOut(std::size_t number) { paths_[number] = std::nullopt; }

  /// So long, paths that have more to send send so many bytes a second each.
  void send(Duration time, const std::vector<std::pair<std::size_t, double>>& rates) {
    for (const auto& [number, rate] : rates) path(number).outstanding = 4 * kChunk;
    sampler_.sample(paths_, now_);
    for (const Duration step = 10ms; time > 0ms; time -= step) {
      now_ += step;
      for (const auto& [number, rate] : rates) {
        PathLoad& load = path(number);
        const auto bytes = static_cast<Bytes>(rate * toSeconds(step));
        load.acknowledged += bytes;
        load.loadedBytes += bytes;
        load.loaded += step;
        load.busy += step;
        load.heard = now_;
      }
      sampler_.sample(paths_, now_);
    }
    for (const auto& [number, rate] : rates) path(number).outstanding = 0;
  }
  void receive(Duration time, std::size_t from, double rate, bool receiving) {
    for (const Duration step = 10ms; time > 0ms; time -= step) {
      path(from).receiving = receiving;
      sampler_.sample(paths_, now_);
      now_ += step;
      path(from).arrived += static_cast<Bytes>(rate * toSeconds(step));
      path(from).heard = now_;
      sampler_.sample(paths_, now_);
    }
    path(from).receiving = false;
  }
  void wait(Duration time) {
    now_ += time;
    sampler_.sample(paths_, now_);
  }
  Observation seen() const { return sampler_.observed(); }
  double sendShare() const { return fraction(seen().send); }

  PortSampler sampler_{kReference, /*rails=*/2, /*loadedFrom=*/2 * kChunk};
  TimePoint now_ = TimePoint{} + 1s;

 private:
  std::vector<std::optional<PathLoad>> paths_;
};

TEST(PortSamplerTest, APathThatAlwaysHasMoreToCarryShowsThePort) {
  Net net(3);
  net.send(300ms, {{1, 25e6}});
  EXPECT_NEAR(net.sendShare(), 0.5, 0.01);
  EXPECT_EQ(net.seen().receive, 0) << "nothing has come";
  EXPECT_EQ(net.seen().live, Health::kWhole);
}

TEST(PortSamplerTest, APortIsWhatAllPathsCarryTogether) {
  Net net(3);
  net.send(300ms, {{1, 15e6}, {2, 35e6}});
  EXPECT_NEAR(net.sendShare(), 1, 0.01);
}

TEST(PortSamplerTest, PausesDoNotMakeAPortSlow) {
  Net net(2);
  for (int i = 0; i < 20; ++i) {
    net.send(30ms, {{1, 50e6}});
    net.wait(40ms);
  }
  EXPECT_NEAR(net.sendShare(), 1, 0.01);
  net.wait(50ms);
  net.wait(2s);
  net.wait(50ms);
  EXPECT_EQ(net.seen(), Observation{}) << "forgotten";
}

// One chunk at a time, whenever the rank has got round to it.
TEST(PortSamplerTest, ARankThatIsSlowToPostSaysNothingOfItsPort) {
  Net net(2);
  net.wait(10ms);
  for (int i = 0; i < 100; ++i) {
    net.path(1).acknowledged += kChunk;
    net.path(1).busy += 2ms;
    net.path(1).heard = net.now_;
    net.wait(10ms);
  }
  EXPECT_EQ(net.seen(), Observation{});
}

TEST(PortSamplerTest, WhoHasBeenStoppedSaysNothing) {
  Net net(3);
  net.send(200ms, {{1, 50e6}});
  net.path(1).outstanding = 4 * kChunk;
  const auto silence = [&](int intervals, bool heard) {
    for (int i = 0; i < intervals; ++i) {
      net.path(1).busy += 10ms;
      net.path(1).loaded += 10ms;
      if (heard) net.path(1).heard = net.now_ + 10ms;
      net.wait(10ms);
    }
  };
  silence(30, /*heard=*/false);
  const double kept = net.sendShare();
  EXPECT_GT(kept, 0);
  silence(10, /*heard=*/false);
  EXPECT_NEAR(net.sendShare(), kept, 0.001) << "stopped";
  silence(30, /*heard=*/true);
  EXPECT_LT(net.sendShare(), kept / 2) << "one that answers, and takes nothing";
}

// A process that gets the processor now and then finds a lot at once.
TEST(PortSamplerTest, WhatIsReadInBurstsIsNotFaster) {
  Net net(3);
  net.path(1).receiving = true;
  net.path(2).outstanding = 4 * kChunk;
  for (int i = 0; i < 30; ++i) {
    for (const bool busy : {false, false, true}) {
      const Bytes bytes = busy ? 3 * 250'000 : 0;  // half of the reference
      net.path(1).arrived += bytes;
      net.path(2).acknowledged += bytes;
      net.path(2).loadedBytes += bytes;
      net.path(2).loaded += 10ms;
      net.path(2).busy += 10ms;
      if (busy) net.path(1).heard = net.path(2).heard = net.now_ + 10ms;
      net.wait(10ms);
    }
  }
  EXPECT_NEAR(fraction(net.seen().receive), 0.5, 0.03);
  EXPECT_NEAR(net.sendShare(), 0.5, 0.03);
}

TEST(PortSamplerTest, ReceivingIsJudgedWhileAMessageIsUnderWay) {
  Net net(3);
  net.receive(300ms, 1, 12.5e6, /*receiving=*/true);
  EXPECT_NEAR(fraction(net.seen().receive), 0.25, 0.01);
  Net small(3);  // messages of a chunk each: never one that is half there
  small.receive(300ms, 1, 25e6, /*receiving=*/false);
  EXPECT_EQ(small.seen().receive, 0);
}

TEST(PortSamplerTest, RailsThatReachNobodyAreLost) {
  Net net(3);
  net.leaveOut(0);
  net.wait(10ms);
  EXPECT_EQ(net.seen().live, Health::kWhole);
  net.path(1).railsUp = 1;
  net.wait(10ms);
  EXPECT_EQ(net.seen().live, Health::kWhole) << "the other one reaches rank 2";
  net.path(2).railsUp = 1;
  net.wait(10ms);
  EXPECT_EQ(net.seen().live, Health::kWhole / 2);
}

TEST(PortSamplerTest, ARailThatIsBeingRepairedDoesNotCount) {
  Net net(2);
  net.send(200ms, {{1, 50e6}});
  net.path(1).railsUp = 1;
  net.path(1).loaded += 10ms;
  net.path(1).busy += 10ms;
  net.path(1).heard = net.now_ + 10ms;
  net.wait(10ms);
  EXPECT_NEAR(net.sendShare(), 1, 0.01);
}

}  // namespace
}  // namespace faultline::plan
