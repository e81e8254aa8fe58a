#include "resilient_ccl/plan/port_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "base/random.h"

namespace faultline::plan {
namespace {

using Ports = std::vector<PortShare>;

double carried(const Ports& ports, std::size_t from, std::size_t to) {
  return std::min(ports[from].send, ports[to].receive);
}

/// A test over ports that carry exactly what they can, or, with `noise`, that much more or less.
PortTest tested(const Ports& ports, Ports before, int ranksPerNode = 1, double noise = 0,
                std::uint64_t seed = 0) {
  Random random(seed);
  PortTest test(std::move(before), ranksPerNode);
  while (const auto shift = test.nextShift()) {
    std::vector<double> rates;
    for (std::size_t to = 0; to < ports.size(); ++to) {
      const std::size_t from =
          (to + ports.size() - static_cast<std::size_t>(*shift)) % ports.size();
      rates.push_back(carried(ports, from, to) * (1 + noise * (2 * random.unit() - 1)));
    }
    test.measured(*shift, rates);
    if (test.rounds() > static_cast<int>(ports.size())) break;  // it never ends
  }
  return test;
}

/// Sets of up to `most` of `ranks`, as bits.
std::vector<unsigned> setsOf(std::size_t ranks, int most) {
  std::vector<unsigned> sets;
  for (unsigned set = 0; set < 1u << ranks; ++set) {
    if (std::popcount(set) <= most) sets.push_back(set);
  }
  return sets;
}

Ports slowed(std::size_t ranks, unsigned send, unsigned receive, double share) {
  Ports ports(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if ((send >> rank & 1) != 0) ports[rank].send = share;
    if ((receive >> rank & 1) != 0) ports[rank].receive = share;
  }
  return ports;
}

/// Whether enough ports can be seen whole at all for the others to be called slow.
bool mostShow(const Ports& ports) {
  std::size_t whole = 0;
  for (std::size_t rank = 0; rank < ports.size(); ++rank) {
    for (std::size_t other = 0; other < ports.size(); ++other) {
      if (other == rank || carried(ports, rank, other) < 1) continue;
      ++whole;
      break;
    }
    for (std::size_t other = 0; other < ports.size(); ++other) {
      if (other == rank || carried(ports, other, rank) < 1) continue;
      ++whole;
      break;
    }
  }
  const auto most =
      static_cast<std::size_t>(PortTest::kMost * 2 * static_cast<double>(ports.size()));
  return whole >= 2 * ports.size() - most;
}

// All sets of up to three slow ports per direction: what is found explains every path, also those
// that were not measured, and is exact for each port that some other end is faster than.
TEST(PortTestTest, ExactRatesGiveTheExactPorts) {
  int cases = 0;
  for (const std::size_t ranks : {2, 3, 4, 5, 6, 8}) {
    for (const unsigned send : setsOf(ranks, 3)) {
      for (const unsigned receive : setsOf(ranks, 3)) {
        const Ports ports = slowed(ranks, send, receive, 0.5);
        if (!mostShow(ports)) continue;
        ++cases;
        const PortTest test = tested(ports, Ports(ranks));
        const Ports found = test.shares();
        ASSERT_LE(test.rounds(), static_cast<int>(ranks));
        for (std::size_t from = 0; from < ranks; ++from) {
          for (std::size_t to = 0; to < ranks; ++to) {
            if (from == to) continue;
            ASSERT_EQ(carried(found, from, to), carried(ports, from, to))
                << ranks << " ranks, send " << send << ", receive " << receive << ": path " << from
                << " to " << to;
            if (ports[from].send < ports[to].receive) {
              ASSERT_EQ(found[from].send, ports[from].send);
            }
            if (ports[to].receive < ports[from].send) {
              ASSERT_EQ(found[to].receive, ports[to].receive);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 8000);
}

TEST(PortTestTest, SlowPortsOfDifferentSharesAreToldApart) {
  const std::vector<double> shares{0.25, 0.5, 0.75, 0.125};
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::size_t ranks = 4 + random.below(9);
    Ports ports(ranks);
    for (std::uint64_t i = random.below(ranks / 3 + 1); i > 0; --i) {
      ports[random.below(ranks)] = {shares[random.below(4)], shares[random.below(4)]};
    }
    const Ports found = tested(ports, Ports(ranks)).shares();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(found[rank], ports[rank]) << "seed " << seed << " rank " << rank;
    }
  }
}

TEST(PortTestTest, AGlanceWhereNothingIsNewAndThreeRoundsToFindASlowRank) {
  for (const std::size_t ranks : {4, 8, 16}) {
    EXPECT_EQ(tested(Ports(ranks), Ports(ranks)).rounds(), 1);
    for (std::size_t slow = 0; slow < ranks; ++slow) {
      Ports ports(ranks);
      ports[slow] = {0.5, 0.5};
      EXPECT_EQ(tested(ports, Ports(ranks)).rounds(), 1 + 3) << ranks << " ranks, slow " << slow;
      EXPECT_EQ(tested(ports, ports).rounds(), 1) << "known before";
      EXPECT_EQ(tested(Ports(ranks), ports).rounds(), 1 + 1) << "healed";
      ports[slow] = {1, 0.5};
      EXPECT_EQ(tested(ports, Ports(ranks)).rounds(), 1 + 3);
      ports[(slow + 1) % ranks] = {0.5, 1};  // its partner in the first round of others
      EXPECT_EQ(tested(ports, ports).rounds(), 1);
      EXPECT_GT(tested(Ports(ranks), ports).rounds(), 1) << "healed";
    }
  }
}

TEST(PortTestTest, NoiseMakesNoPortSlowAndNoneSlowerThanItIs) {
  double sum = 0;
  constexpr int kSeeds = 2000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::size_t ranks = 4 + seed % 13;
    Ports ports(ranks);
    ASSERT_EQ(tested(ports, ports, 1, 0.07, seed).shares(), ports) << "seed " << seed;
    const std::size_t slow = seed % ranks;
    ports[slow] = {0.5, 0.25};
    const Ports found = tested(ports, Ports(ranks), 1, 0.07, seed).shares();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ASSERT_NEAR(found[rank].send, ports[rank].send, 0.08) << "seed " << seed;
      ASSERT_NEAR(found[rank].receive, ports[rank].receive, 0.05) << "seed " << seed;
      if (rank == slow) continue;
      ASSERT_EQ(found[rank], PortShare()) << "seed " << seed;
    }
    sum += found[slow].send;
  }
  EXPECT_NEAR(sum / kSeeds, 0.5, 0.005) << "on average, among ports that noise has flattered";
}

// Once, by chance: the next round clears both of its ends.
TEST(PortTestTest, OneSlowMeasurementMakesNoPortSlow) {
  for (const int slow : {1, 2}) {
    PortTest test(Ports(4), 1);
    while (const auto shift = test.nextShift()) {
      const double rate = test.rounds() < slow ? 0.4 : 1;
      test.measured(*shift, {1, 1, rate, 1});
    }
    EXPECT_EQ(test.shares(), Ports(4));
    EXPECT_EQ(test.rounds(), 1 + slow);
  }
}

// What it is is what most paths say, not what one of them does.
TEST(PortTestTest, ASlowPortIsAsSlowAsMostPathsSay) {
  Ports ports(4);
  ports[2].send = 0.5;
  for (int odd = 0; odd < 3; ++odd) {
    PortTest test(Ports(4), 1);
    while (const auto shift = test.nextShift()) {
      std::vector<double> rates(4, 1);
      rates[static_cast<std::size_t>(2 + *shift) % 4] = test.rounds() == 1 + odd ? 0.57 : 0.5;
      test.measured(*shift, rates);
    }
    EXPECT_EQ(test.rounds(), 1 + 3);
    EXPECT_EQ(test.shares(), ports);
  }
}

// Two of eight ranks at a quarter or at half in both directions, and looks that are up to 7 %
// slower. With each direction by itself half of these ports had one that was wrong by more than 3
// %.
TEST(PortTestTest, APortThatIsAsSlowInBothDirectionsHasOneRate) {
  int wrong = 0, ports = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    for (const double share : {0.25, 0.5}) {
      const Ports there = slowed(8, 0b1010, 0b1010, share);
      PortTest test(Ports(8), 1);
      while (const auto shift = test.nextShift()) {
        std::vector<double> rates;
        for (std::size_t to = 0; to < 8; ++to) {
          const std::size_t from = (to + 8 - static_cast<std::size_t>(*shift)) % 8;
          rates.push_back(carried(there, from, to) * (1.01 - 0.08 * random.unit()));
        }
        test.measured(*shift, rates);
      }
      const Ports found = test.shares();
      for (const std::size_t rank : {1UL, 3UL}) {
        ++ports;
        EXPECT_EQ(found[rank].send, found[rank].receive) << "seed " << seed;
        const double most =
            std::max(std::abs(found[rank].send - share), std::abs(found[rank].receive - share));
        if (most > 0.03 * share) ++wrong;
      }
    }
  }
  EXPECT_LT(wrong, ports / 4);
}

TEST(PortTestTest, TellsTheSlowestPaths) {
  Ports ports(4);
  ports[2] = {0.5, 0.25};
  const PortTest test = tested(ports, Ports(4));
  const std::vector<PortTest::Path> all = test.slowPaths(32);
  ASSERT_EQ(all.size(), 6u);
  for (std::size_t path = 0; path < 3; ++path) {
    EXPECT_EQ(all[path].to, 2u);
    EXPECT_EQ(all[path].rate, 0.25);
    EXPECT_EQ(all[3 + path].from, 2u);
    EXPECT_EQ(all[3 + path].rate, 0.5);
  }
  EXPECT_EQ(test.slowPaths(2).size(), 2u);
  EXPECT_TRUE(tested(Ports(4), Ports(4)).slowPaths(32).empty());
}

// With every other rank slow all paths of the first round are, too.
TEST(PortTestTest, WhereAllPathsAreSlowOthersAreLookedAt) {
  Ports ports(4);
  ports[1] = ports[3] = {0.75, 0.75};
  EXPECT_EQ(tested(ports, Ports(4)).shares(), ports);
  ports[1] = ports[3] = {0.5, 0.5};
  EXPECT_EQ(tested(ports, Ports(4)).shares(), ports);
}

// What slow processors make of a whole port is another thing each time.
TEST(PortTestTest, PathsThatDoNotAgreeMakeNoPortSlow) {
  PortTest test(Ports(4), 1);
  while (const auto shift = test.nextShift()) {
    std::vector<double> rates(4, 1);
    rates[static_cast<std::size_t>(2 + *shift) % 4] =
        std::array{0.6, 0.5, 0.3, 0.4, 0.65, 0.22, 0.45, 0.35, 0.26}.at(
            static_cast<std::size_t>(test.rounds()));
    test.measured(*shift, rates);
  }
  EXPECT_EQ(test.rounds(), 1 + static_cast<int>(PortTest::kMostRounds)) << "asked again";
  EXPECT_EQ(test.shares(), Ports(4));
}

// A processor that comes late makes a path slow, and never fast: a third of all paths.
TEST(PortTestTest, LateProcessorsHideNoSlowPort) {
  constexpr int kSeeds = 500;
  constexpr std::size_t kRanks = 8;
  int found = 0, accused = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed);
    const std::size_t slow = seed % kRanks;
    Ports ports(kRanks);
    ports[slow] = {0.5, 0.25};
    PortTest test(Ports(kRanks), 1);
    while (const auto shift = test.nextShift()) {
      std::vector<double> rates;
      for (std::size_t to = 0; to < kRanks; ++to) {
        const std::size_t from = (to + kRanks - static_cast<std::size_t>(*shift)) % kRanks;
        const double late = random.unit() < 1.0 / 3 ? 0.4 + 0.6 * random.unit() : 1;
        rates.push_back(carried(ports, from, to) * late);
      }
      test.measured(*shift, rates);
    }
    const Ports shares = test.shares();
    const PortShare& share = shares[slow];
    found += std::abs(share.send - 0.5) <= 0.05 && std::abs(share.receive - 0.25) <= 0.025 ? 1 : 0;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if (rank != slow && shares[rank] != PortShare()) ++accused;
    }
  }
  EXPECT_GE(found, kSeeds * 95 / 100);
  EXPECT_LE(accused, kSeeds * static_cast<int>(kRanks - 1) / 100);
}

// Half of all looks are up to a fifth too slow (acknowledgements behind what a slow port sends,
// starved processors), a tenth of them caught up to 3 % of a burst. Nine of ten slow ports are
// found to 5 % (eight of ten when the middle of the looks counted), and on average none is slower.
TEST(PortTestTest, LooksThatAreTooSlowHideNotHowFastASlowPortIs) {
  constexpr int kSeeds = 1000;
  for (const std::size_t ranks : {8, 16}) {
    for (const std::size_t slow : {1, 2}) {
      int ports = 0, exact = 0, accused = 0;
      double sum = 0;
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        Random random(seed);
        Ports given(ranks);
        for (std::size_t i = 0; i < slow; ++i) given[1 + 2 * i] = {0.5, 0.5};
        PortTest test(Ports(ranks), 1);
        while (const auto shift = test.nextShift()) {
          std::vector<double> rates;
          for (std::size_t to = 0; to < ranks; ++to) {
            const std::size_t from = (to + ranks - static_cast<std::size_t>(*shift)) % ranks;
            const double kind = random.unit(), size = random.unit();
            const double look = kind < 0.5 ? 1 - 0.2 * size : kind < 0.6 ? 1 + 0.03 * size : 1;
            rates.push_back(carried(given, from, to) * look);
          }
          test.measured(*shift, rates);
        }
        const Ports found = test.shares();
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          for (const auto& [share, real] : {std::pair{found[rank].send, given[rank].send},
                                            std::pair{found[rank].receive, given[rank].receive}}) {
            if (real == 1) {
              accused += share != 1 ? 1 : 0;
              continue;
            }
            ++ports;
            sum += share;
            exact += std::abs(share - real) <= 0.05 * real ? 1 : 0;
          }
        }
      }
      const std::string what = std::to_string(ranks) + " ranks, " + std::to_string(slow) + " slow";
      EXPECT_GE(exact, ports * 9 / 10) << what;
      EXPECT_NEAR(sum / ports, 0.5, 0.006) << what;
      EXPECT_LE(accused, kSeeds * static_cast<int>(ranks) * 3 / 1000) << what;
    }
  }
}

// Once it was taken for 0.45.
TEST(PortTestTest, ThereIsAnotherRoundWhenTheFastestTwoDoNotAgree) {
  const std::array<double, 5> looks{0.5, 0.43, 0.45, 0.49, 0.48};
  PortTest test(Ports(8), 1);
  while (const auto shift = test.nextShift()) {
    std::vector<double> rates(8, 1);
    rates[(2 + static_cast<std::size_t>(*shift)) % 8] =
        looks.at(static_cast<std::size_t>(test.rounds()));
    test.measured(*shift, rates);
  }
  EXPECT_EQ(test.rounds(), 1 + 4);
  EXPECT_NEAR(test.shares()[2].send, 0.48, 0.5 / PortTest::kSteps);
}

TEST(PortTestTest, APortThatNobodySeesFasterIsSlowWhateverTheySay) {
  const std::array<double, 8> looks{0, 0.11, 0.5, 0.19, 0.28, 0.36, 0.06, 0.15};
  const auto shareOf = [&looks](std::size_t ranks) {
    PortTest test(Ports(ranks), 1);
    std::set<int> said;
    while (const auto shift = test.nextShift()) {
      std::vector<double> rates(ranks, 1);
      const bool again = test.rounds() > 0 && !said.insert(*shift).second;
      rates[(2 + static_cast<std::size_t>(*shift)) % ranks] =
          test.rounds() == 0 ? 0.5 : (again ? 0 : looks.at(static_cast<std::size_t>(*shift)));
      test.measured(*shift, rates);
    }
    return test.shares()[2].send;
  };
  EXPECT_EQ(shareOf(8), 0.5);
  EXPECT_EQ(shareOf(5), 1) << "four say something, each another thing, and nothing more";
}

TEST(PortTestTest, PortsThatAreAllSlowerThanTheReferenceAreWhole) {
  PortTest test(Ports(4), 1);
  while (const auto shift = test.nextShift()) test.measured(*shift, {0.8, 0.75, 0.8, 0.72});
  EXPECT_EQ(test.rounds(), 1 + 2) << "at others, to be sure";
  EXPECT_EQ(test.shares(), Ports(4));
  // The reference was measured in a bad moment: half is still half of what the others carry.
  Ports ports{{2, 2}, {1, 1}, {2, 2}, {2, 2}};
  ports = tested(ports, Ports(4)).shares();
  EXPECT_EQ(ports[0], PortShare());
  EXPECT_EQ(ports[1], (PortShare{0.5, 0.5}));
}

// Of every path to the next rank one end is slow, and the reference is not what it should be.
TEST(PortTestTest, EverySecondRankIsSlow) {
  for (const double reference : {1.0, 1.25, 0.65}) {
    Ports ports(4);
    for (const std::size_t rank : {1, 3}) ports[rank] = {0.5, 0.5};
    Ports measured = ports;
    for (PortShare& port : measured) port = {port.send / reference, port.receive / reference};
    EXPECT_EQ(tested(measured, Ports(4)).shares(), ports) << reference;
  }
}

TEST(PortTestTest, AllPathsOfARoundLeadToOtherNodes) {
  PortTest test(Ports(12), 3);
  std::vector<int> shifts;
  while (const auto shift = test.nextShift()) {
    shifts.push_back(*shift);
    test.measured(*shift, std::vector<double>(12, *shift == 3 ? 0.5 : 0.4));
  }
  std::ranges::sort(shifts);
  EXPECT_EQ(shifts, (std::vector{3, 3, 6, 9}));
  EXPECT_EQ(PortTest(Ports(4), 4).nextShift(), std::nullopt) << "all on one node";
  EXPECT_EQ(PortTest(Ports(1), 1).nextShift(), std::nullopt);
}

/// A test over nodes of `ranksPerNode` ranks that share what their node's ports carry as they come:
/// what a path between two nodes can is split by random weights of 1 to 3.
PortTest testedUnevenly(const Ports& nodes, std::size_t ranksPerNode, std::uint64_t seed) {
  Random random(seed);
  const std::size_t ranks = nodes.size() * ranksPerNode;
  PortTest test(Ports(ranks), static_cast<int>(ranksPerNode));
  while (const auto shift = test.nextShift()) {
    std::vector<double> rates;
    for (std::size_t to = 0; to < nodes.size(); ++to) {
      const std::size_t from =
          (to + nodes.size() - static_cast<std::size_t>(*shift) / ranksPerNode) % nodes.size();
      std::vector<double> weights(ranksPerNode);
      std::ranges::generate(weights, [&] { return 1 + 2 * random.unit(); });
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (const double weight : weights) {
        rates.push_back(carried(nodes, from, to) * static_cast<double>(ranksPerNode) * weight /
                        sum);
      }
    }
    test.measured(*shift, rates);
  }
  return test;
}

// The two ranks of a node at half were once found at 0.56 and 0.39, and planned for as 0.39.
TEST(PortTestTest, RanksThatShareAPortHaveEqualPartsOfWhatItCarries) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::size_t nodes = 3 + seed % 6, ranksPerNode = 2 + seed % 3;
    Ports ports(nodes);
    EXPECT_EQ(testedUnevenly(ports, ranksPerNode, seed).rounds(), 1) << "seed " << seed;
    ports[seed % nodes] = {0.5, seed % 2 == 0 ? 0.75 : 1};
    const Ports found = testedUnevenly(ports, ranksPerNode, seed).shares();
    ASSERT_EQ(found.size(), nodes * ranksPerNode);
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      ASSERT_EQ(found[rank], ports[rank / ranksPerNode]) << "seed " << seed << " rank " << rank;
    }
  }
}

TEST(PortTestTest, WhatWasKnownOfANodeIsWhatWasKnownOfItsRanks) {
  Ports before(6);
  before[2] = {0.5, 1};
  before[3] = {0.25, 1};
  Ports nodes(3);
  nodes[1].send = 0.375;
  PortTest test(before, 2);
  test.measured(*test.nextShift(), {1, 1, 1, 1, 0.5, 0.25});
  EXPECT_EQ(test.nextShift(), std::nullopt) << "nothing is new";
  const Ports found = test.shares();
  for (std::size_t rank = 0; rank < found.size(); ++rank) EXPECT_EQ(found[rank], nodes[rank / 2]);
}

// Half of what a node receives is not what its port can.
TEST(PortTestTest, NothingIsLearntFromAPartOfANode) {
  PortTest test(Ports(8), 2);
  while (const auto shift = test.nextShift()) {
    test.measured(*shift, {0.5, 0.5, 1, 1, 0, 0.25, 1, 1});
  }
  Ports half(8);
  half[0].receive = half[1].receive = 0.5;
  EXPECT_EQ(test.shares(), half);
  EXPECT_EQ(test.slowPaths(32).front().rate, 0.25) << "but it is told";
}

TEST(PortTestTest, WhatIsNotLearntStaysAsItWas) {
  Ports before(4);
  before[2] = {0.25, 0.5};
  PortTest test(before, 1);
  while (const auto shift = test.nextShift()) test.measured(*shift, {0, 0, 0, 0});
  EXPECT_EQ(test.shares(), before);
  // Healed.
  EXPECT_EQ(tested(Ports(4), before).shares(), Ports(4));
}

}  // namespace
}  // namespace faultline::plan
