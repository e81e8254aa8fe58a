#include "harness/scenario/chaos.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

constexpr Cluster kCluster{.nodes = 4, .rails = 4};

Chaos::Kind kind(const std::string& name,
                 const std::map<std::string, std::string>& parameters = {}) {
  return {name, *injector::FaultParameters::parse(*injector::findFaultKind(name), parameters)};
}

Chaos someChaos() {
  return {.kinds = {kind("port_down"), kind("blackhole"), kind("loss", {{"percent", "30%"}}),
                    kind("process_stop")},
          .length = 60s};
}

/// A strike with where it is.
struct Strike {
  const Fault* fault;
  Duration begin;
  Duration end;
};

std::vector<Strike> strikesOf(const std::vector<Fault>& faults) {
  std::vector<Strike> strikes;
  for (const Fault& fault : faults) {
    for (const auto& [time, duration] : std::get<Moments>(fault.trigger).list) {
      strikes.push_back({&fault, time, time + duration});
    }
  }
  std::ranges::sort(strikes, {}, &Strike::begin);
  return strikes;
}

bool onRail(const Strike& strike) { return strike.fault->target->part == Part::kRail; }

TEST(ChaosTest, TheSeedAloneDecides) {
  EXPECT_EQ(expandChaos(someChaos(), kCluster, 7), expandChaos(someChaos(), kCluster, 7));
  EXPECT_NE(expandChaos(someChaos(), kCluster, 7), expandChaos(someChaos(), kCluster, 8));
}

TEST(ChaosTest, StrikesComeAsOftenAndLastAsLongAsWasAskedFor) {
  const Chaos chaos = someChaos();
  const std::vector<Fault> faults = expandChaos(chaos, kCluster, 1);
  const std::vector<Strike> strikes = strikesOf(faults);
  EXPECT_GT(strikes.size(), 140u);  // of 150
  EXPECT_LE(strikes.size(), 150u);
  std::set<std::string> kinds;
  for (const Strike& strike : strikes) {
    kinds.insert(strike.fault->kind);
    EXPECT_GE(strike.end - strike.begin, chaos.shortest);
    EXPECT_LE(strike.end - strike.begin, chaos.longest);
    EXPECT_LE(strike.end, chaos.length);
  }
  EXPECT_EQ(kinds.size(), chaos.kinds.size());
  for (const Fault& fault : faults) {
    const auto& list = std::get<Moments>(fault.trigger).list;
    EXPECT_EQ(fault.times, std::ssize(list));
    EXPECT_TRUE(std::ranges::is_sorted(list, {}, &Moments::Moment::time));
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(fault.durationOf(i), list[i].duration);
      EXPECT_LE(fault.durationOf(i), fault.duration);
    }
  }
}

TEST(ChaosTest, ARailHasOneFaultAtATimeAndThenRests) {
  const Chaos chaos = someChaos();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Fault> faults = expandChaos(chaos, kCluster, seed);
    std::map<int, Duration> free;
    for (const Strike& strike : strikesOf(faults)) {
      if (!onRail(strike)) continue;
      Duration& from = free[strike.fault->target->rail];
      EXPECT_GE(strike.begin, from) << "seed " << seed;
      from = strike.end + chaos.rest;
    }
  }
}

TEST(ChaosTest, SoManyRailsAreWholeAtEveryMoment) {
  for (const int spare : {1, 2, 3}) {
    Chaos chaos = someChaos();
    chaos.spareRails = spare;
    chaos.every = 50ms;  // more than there is place for
    int most = 0;
    const std::vector<Fault> faults = expandChaos(chaos, kCluster, 3);
    const std::vector<Strike> strikes = strikesOf(faults);
    for (const Strike& at : strikes) {
      const auto busy = std::ranges::count_if(strikes, [&](const Strike& other) {
        return onRail(other) && other.begin <= at.begin && at.begin < other.end + chaos.rest;
      });
      most = std::max(most, static_cast<int>(busy));
    }
    EXPECT_EQ(most, kCluster.rails - spare);
  }
}

constexpr const char* kYaml =
    "chaos:\n"
    "  kinds: [port_down, {throttle: {rate: 10%}}, {port_down: {how: admin}}, process_stop]\n"
    "  every: 300ms\n"
    "  spare_rails: 1\n"
    "  for: 20s\n";

TEST(ChaosTest, IsReadWrittenAndExpandedWithTheScenariosOwnFaults) {
  const ReadResult read = readScenario(
      minimal(std::string(kYaml) +
              "faults: [{kind: port_down, target: {node: 1, rail: 1}, at: 1s, until: end}]\n"),
      "test.yaml");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  const Chaos& chaos = *read.scenario->chaos;
  ASSERT_EQ(chaos.kinds.size(), 4u);
  EXPECT_EQ(std::get<Percent>(chaos.kinds[1].parameters.value("rate")), Percent{10});
  EXPECT_EQ(chaos.kinds[2].parameters.get<std::string>("how"), "admin");
  EXPECT_EQ(chaos.every, 300ms);
  EXPECT_EQ(chaos.length, 20s);
  EXPECT_EQ(chaos.rest, Chaos{}.rest) << "scenario.h and table.cc disagree";
  EXPECT_EQ(chaos.shortest, Chaos{}.shortest);
  EXPECT_EQ(chaos.longest, Chaos{}.longest);
  const ReadResult again = readScenario(toJson(*read.scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *read.scenario);
  const std::vector<Fault> all = allFaults(*read.scenario);
  EXPECT_EQ(all.front(), read.scenario->faults.front());
  EXPECT_EQ(all.size(), 1 + expandChaos(chaos, read.scenario->cluster, 1).size());
}

TEST(ChaosTest, WhatCannotBeIsAMistakeWithItsPlace) {
  const auto mistakeOf = [](const std::string& assignment) {
    const std::vector<std::string> overrides{assignment};
    const ReadResult read = readScenario(minimal(kYaml), "test.yaml", overrides);
    EXPECT_EQ(read.mistakes.size(), 1u) << assignment;
    return read.ok() ? std::string() : read.mistakes.front().toString();
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"chaos.kinds.0=process_kill", "process_kill cannot strike at random"},
      {"chaos.kinds.0=host_overload", "host_overload cannot strike at random"},
      {"chaos.kinds.0=port_dwn", "did you mean 'port_down'"},
      {"chaos.kinds.0=throttle", "throttle needs the key 'rate'"},
      {"chaos.kinds.1.throttle.speed=3", "unknown key 'speed'"},
      {"chaos.kinds=port_down", "kinds: a list"},
      {"chaos.spare_rails=2", "of 2 rails 2 are to be whole"},
      {"chaos.longest=50ms", "is less than shortest"},
      {"chaos.for=100ms", "is too short for a strike"},
      {"chaos.for=60s", "is not over when the run ends"},
      {"workload.time=20s", "is not over when the work ends"},
      {"workload.time=60s", "time: 1min is never over"},
      {"cluster.nodes=1", "a cluster of one node"},
  };
  for (const auto& [assignment, message] : cases) {
    EXPECT_NE(mistakeOf(assignment).find(message), std::string::npos)
        << assignment << ": " << mistakeOf(assignment);
  }
}

TEST(ChaosTest, NeedsItsKeysAndAStrategyThatMeetsIt) {
  const ReadResult keys = readScenario(minimal("chaos: {every: 1s}\n"), "test.yaml");
  EXPECT_EQ(keys.mistakes.size(), 2u);  // kinds, for
  const ReadResult bare = readScenario(minimal("chaos: 7\n"), "test.yaml");
  EXPECT_EQ(bare.mistakes.size(), 1u);
  const ReadResult unmet = readScenario(
      "version: 1\nname: a\nworkload: {kind: training}\nstrategies: [armed]\n" + std::string(kYaml),
      "test.yaml");
  ASSERT_EQ(unmet.mistakes.size(), 1u);
  EXPECT_NE(unmet.mistakes[0].message.find("remove 'chaos'"), std::string::npos);
}

}  // namespace
}  // namespace faultline::scenario
