#include "resilient_ccl/plan/port_inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace faultline::plan {
namespace {

struct Ports {
  std::vector<double> send, receive;
};

using Flows = std::vector<std::pair<std::size_t, std::size_t>>;

Ports whole(std::size_t ranks) { return {std::vector(ranks, 1.0), std::vector(ranks, 1.0)}; }

Flows ring(std::size_t ranks) {
  Flows flows;
  for (std::size_t i = 0; i < ranks; ++i) flows.emplace_back(i, (i + 1) % ranks);
  return flows;
}

Flows everybodyToEverybody(std::size_t ranks) {
  Flows flows;
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = 0; j < ranks; ++j) {
      if (i != j) flows.emplace_back(i, j);
    }
  }
  return flows;
}

/// Max-min fair rates of flows that always have more to carry.
std::vector<double> fairRates(const Ports& ports, const Flows& flows) {
  const std::size_t ranks = ports.send.size();
  std::vector<double> rates(flows.size());
  std::vector<bool> fixed(flows.size());
  for (;;) {
    std::vector<double> room(2 * ranks);
    std::vector<int> open(2 * ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      room[i] = ports.send[i];
      room[ranks + i] = ports.receive[i];
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const std::size_t port : {flows[f].first, ranks + flows[f].second}) {
        if (fixed[f]) {
          room[port] -= rates[f];
        } else {
          ++open[port];
        }
      }
    }
    double level = 1e9;
    for (std::size_t port = 0; port < 2 * ranks; ++port) {
      if (open[port] > 0) level = std::min(level, room[port] / open[port]);
    }
    if (level > 1e8) return rates;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (fixed[f]) continue;
      for (const std::size_t port : {flows[f].first, ranks + flows[f].second}) {
        if (room[port] / open[port] <= level * (1 + 1e-9)) fixed[f] = true;
      }
      rates[f] = level;
    }
  }
}

/// What everybody sees of such flows.
std::vector<Observation> seenOf(const Ports& ports, const Flows& flows,
                                const std::vector<double>& live = {}) {
  const std::size_t ranks = ports.send.size();
  const std::vector<double> rates = fairRates(ports, flows);
  std::vector<double> sent(ranks), received(ranks);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    sent[flows[f].first] += rates[f];
    received[flows[f].second] += rates[f];
  }
  std::vector<Observation> seen(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    seen[i].paths.resize(ranks);
    if (!live.empty()) seen[i].live = quantise(live[i]);
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const auto [from, to] = flows[f];
    seen[from].paths[to].send = quantise(sent[from]);
    seen[from].paths[to].own = quantise(rates[f]);
    seen[to].paths[from].receive = quantise(received[to]);
  }
  return seen;
}

HealthVector healthOf(const Ports& ports) {
  HealthVector health;
  for (std::size_t i = 0; i < ports.send.size(); ++i) {
    health.push_back({quantise(ports.send[i]), quantise(ports.receive[i])});
  }
  return health;
}

/// Of one step of the inference.
void expectNear(const HealthVector& got, const HealthVector& expected) {
  ASSERT_EQ(got.size(), expected.size());
  const auto distance = [](int a, int b) { return std::abs(a - b); };
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(distance(got[i].send, expected[i].send), Health::kWhole / PortInference::kSteps)
        << "send port of rank " << i << ": " << got[i].send;
    EXPECT_LE(distance(got[i].receive, expected[i].receive), Health::kWhole / PortInference::kSteps)
        << "receive port of rank " << i << ": " << got[i].receive;
  }
}

constexpr double kShares[] = {0.25, 0.5, 0.75};

TEST(PortInferenceTest, FindsWhoIsSlowInEveryRingAndEveryExchange) {
  for (std::size_t ranks = 3; ranks <= 7; ++ranks) {
    for (std::size_t slow = 0; slow < ranks; ++slow) {
      for (const double share : kShares) {
        SCOPED_TRACE(::testing::Message() << "rank " << slow << " of " << ranks << " at " << share);
        Ports ports = whole(ranks);
        ports.send[slow] = ports.receive[slow] = share;
        expectNear(PortInference(static_cast<int>(ranks)).infer(seenOf(ports, ring(ranks))),
                   healthOf(ports));
        const Flows all = everybodyToEverybody(ranks);
        expectNear(PortInference(static_cast<int>(ranks)).infer(seenOf(ports, all)),
                   healthOf(ports));
        // One direction alone: paths to, and from, everybody tell which end it is.
        for (const bool send : {true, false}) {
          Ports one = whole(ranks);
          (send ? one.send : one.receive)[slow] = share;
          expectNear(PortInference(static_cast<int>(ranks)).infer(seenOf(one, all)), healthOf(one));
        }
      }
    }
  }
}

// A ring does not say which end of its slow path it is; as soon as more is seen, it is right.
TEST(PortInferenceTest, ARingWithOneSlowPathIsAGuessThatIsPutRight) {
  for (const bool send : {true, false}) {
    Ports ports = whole(5);
    (send ? ports.send[2] : ports.receive[3]) = 0.5;
    PortInference inference(5);
    const HealthVector guess = inference.infer(seenOf(ports, ring(5)));
    int slow = 0;
    for (const Health& port : guess) slow += (port.send < 600) + (port.receive < 600);
    EXPECT_EQ(slow, 1);
    expectNear(inference.infer(seenOf(ports, everybodyToEverybody(5))), healthOf(ports));
  }
}

TEST(PortInferenceTest, TwoSlowRanksAreFoundWhereEverybodyTalksToEverybody) {
  for (std::size_t ranks = 5; ranks <= 8; ++ranks) {
    for (std::size_t a = 0; a < ranks; ++a) {
      for (std::size_t b = a + 1; b < ranks; ++b) {
        Ports ports = whole(ranks);
        ports.send[a] = ports.receive[a] = 0.5;
        ports.send[b] = ports.receive[b] = 0.5;
        SCOPED_TRACE(::testing::Message() << a << " and " << b << " of " << ranks);
        expectNear(PortInference(static_cast<int>(ranks))
                       .infer(seenOf(ports, everybodyToEverybody(ranks))),
                   healthOf(ports));
      }
    }
  }
}

TEST(PortInferenceTest, HealthyPortsNeverLookSlowWhateverIsSent) {
  for (std::uint64_t seed = 0; seed < FAULTLINE_DEFAULT_SEEDS; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::size_t ranks = 2 + random.below(7);
    PortInference inference(static_cast<int>(ranks));
    for (int round = 0; round < 3; ++round) {
      Flows flows;
      for (const auto& flow : everybodyToEverybody(ranks)) {
        if (random.below(2) == 0) flows.push_back(flow);
      }
      ASSERT_EQ(inference.infer(seenOf(whole(ranks), flows)), HealthVector(ranks));
    }
  }
}

TEST(PortInferenceTest, WhatIsNotSeenStaysAsItWasAndWhatIsSeenToBeWholeIs) {
  Ports ports = whole(4);
  ports.send[1] = ports.receive[1] = 0.5;
  PortInference inference(4);
  const HealthVector slow = inference.infer(seenOf(ports, ring(4)));
  EXPECT_LT(slow[1].send, 600);
  EXPECT_EQ(inference.infer(std::vector<Observation>(4)), slow) << "idle";
  EXPECT_EQ(inference.infer({}), slow);
  EXPECT_EQ(inference.infer(seenOf(whole(4), {{2, 3}, {3, 0}})), slow) << "others";
  EXPECT_EQ(inference.infer(seenOf(whole(4), ring(4))), HealthVector(4)) << "healed";
}

TEST(PortInferenceTest, ARankThatHasLittleToDoIsNoSlowerThanItWas) {
  // Its port was seen at less than all, and the other end was busy: that says nothing.
  std::vector<Observation> seen(3, {.paths = std::vector<PathRate>(3)});
  seen[0].paths[1].send = 400;
  seen[1].paths[0].receive = 1000;
  EXPECT_EQ(PortInference(3).infer(seen), HealthVector(3));
}

TEST(PortInferenceTest, LostRailsNeedNoTraffic) {
  std::vector<Observation> seen(4, {.paths = std::vector<PathRate>(4)});
  seen[2].live = 256;
  HealthVector expected(4);
  expected[2] = {256, 256};
  PortInference inference(4);
  EXPECT_EQ(inference.infer(seen), expected);
  // And what is left of the port carries all that it can: it is not slow besides.
  Ports ports = whole(4);
  ports.send[2] = ports.receive[2] = 0.25;
  for (const Flows& flows : {ring(4), everybodyToEverybody(4)}) {
    EXPECT_EQ(inference.infer(seenOf(ports, flows, {1, 1, 0.25, 1})), expected);
  }
}

}  // namespace
}  // namespace faultline::plan
