#include "harness/scenario/fault_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/scenario/fault_list.h"
#include "harness/scenario/json.h"
#include "harness/scenario/lifetime.h"
#include "harness/scenario/reader.h"
#include "injector/faults/registry.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

const Cluster kCluster{.nodes = 4, .rails = 4};
using Kind = Lifetime::Kind;

/// Mean, variance and share below the mean of what is drawn.
struct Sample {
  double mean = 0;
  double variance = 0;
  double below = 0;
};

Sample sampleOf(const Lifetime& lifetime, std::uint64_t seed) {
  constexpr int kDraws = 40'000;
  Random random(Random::mix(seed));
  std::vector<double> values(kDraws);
  Sample sample;
  for (double& value : values) {
    value = drawOfMeanOne(lifetime, random);
    sample.mean += value / kDraws;
    sample.below += (value < 1 ? 1.0 : 0.0) / kDraws;
  }
  for (const double value : values) {
    sample.variance += (value - sample.mean) * (value - sample.mean) / (kDraws - 1);
  }
  return sample;
}

TEST(LifetimeTest, HasTheMomentsOfItsDistribution) {
  // Mean 1; variance, and the distribution function at the mean, from the textbook.
  const double wear = std::tgamma(1 + 2 / 2.0) / std::pow(std::tgamma(1 + 1 / 2.0), 2) - 1;
  const double infant = std::tgamma(1 + 2 / 0.7) / std::pow(std::tgamma(1 + 1 / 0.7), 2) - 1;
  const auto weibullBelow = [](double k) {
    return 1 - std::exp(-std::pow(std::tgamma(1 + 1 / k), k));
  };
  const auto lognormalBelow = [](double s) { return 0.5 * std::erfc(-s / 2 / std::sqrt(2)); };
  const struct {
    Lifetime lifetime;
    double variance;
    double below;
  } cases[] = {
      {{.kind = Kind::kExponential}, 1, 1 - std::exp(-1)},
      {{.kind = Kind::kWeibull, .shape = 2}, wear, weibullBelow(2)},
      {{.kind = Kind::kWeibull, .shape = 0.7}, infant, weibullBelow(0.7)},
      {{.kind = Kind::kLognormal, .sigma = 0.5}, std::exp(0.25) - 1, lognormalBelow(0.5)},
      {{.kind = Kind::kConstant}, 0, 0},
  };
  for (const auto& [lifetime, variance, below] : cases) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
      const Sample sample = sampleOf(lifetime, seed);
      // Six standard errors of 40 000 draws; of the variance, whose error depends on the fourth
      // moment, 15 %.
      EXPECT_NEAR(sample.mean, 1, 6 * std::sqrt(variance / 40'000) + 1e-9)
          << name(lifetime.kind) << seed;
      EXPECT_NEAR(sample.variance, variance, 0.15 * variance + 1e-9) << name(lifetime.kind);
      EXPECT_NEAR(sample.below, below, 6 * 0.5 / 200) << name(lifetime.kind) << seed;
    }
  }
}

TEST(LifetimeTest, IsAcceleratedAndWholeMilliseconds) {
  Random random(1);
  const Lifetime hour{.mean = 1h, .kind = Kind::kConstant};
  EXPECT_EQ(draw(hour, 1, random), 1h);
  EXPECT_EQ(draw(hour, 3600, random), 1s);
  EXPECT_EQ(draw(hour, 1e9, random), 1ms) << "never no time at all";
}

FaultProcess::Kind processKind(const std::string& name, int weight = 1,
                               const std::map<std::string, std::string>& parameters = {}) {
  return {name, *injector::FaultParameters::parse(*injector::findFaultKind(name), parameters),
          weight};
}

/// Sixteen NICs, each of which fails every 8 s: two failures per second, if all find their place.
FaultProcess someProcess() {
  return {.kinds = {processKind("port_down"), processKind("blackhole"),
                    processKind("loss", 1, {{"percent", "30%"}}), processKind("process_stop")},
          .failures = {.mean = 8s},
          .repairs = {.mean = 200ms},
          .nodes = {},
          .rails = {},
          .length = 300s};
}

/// One that nothing holds back: its NICs are all there is.
FaultProcess freeProcess(Lifetime failures, Lifetime repairs) {
  return {.kinds = {processKind("port_down")},
          .failures = failures,
          .repairs = repairs,
          .nodes = {2},
          .rails = {1},
          .spareRails = 0,
          .rest = 0ms,
          .shortest = 1ms,
          .length = 3600s};
}

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

std::vector<Fault> expand(const FaultProcess& process, std::uint64_t seed = 1) {
  return expandProcesses({process}, kCluster, seed);
}

TEST(FaultProcessTest, TheSeedAloneDecides) {
  EXPECT_EQ(expand(someProcess(), 7), expand(someProcess(), 7));
  EXPECT_NE(expand(someProcess(), 7), expand(someProcess(), 8));
}

TEST(FaultProcessTest, AnElementFailsAndIsRepairedAsTheMeansSay) {
  // Renewal: failures in a time are that time over mtbf + mttr, and it is down for mttr / (mtbf +
  // mttr) of it. 3600 cycles of 1 s, exponential: standard error of the number about 1 %.
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const auto faults =
        expand(freeProcess({.mean = 750ms}, {.mean = 250ms, .kind = Kind::kExponential}), seed);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].target, (Target{.node = 2, .rail = 1}));
    const auto strikes = strikesOf(faults);
    EXPECT_NEAR(std::ssize(strikes), 3600, 6 * 50);
    Duration down{};
    for (const Strike& strike : strikes) down += strike.end - strike.begin;
    EXPECT_NEAR(toSeconds(down), 900, 90) << "seed " << seed;
  }
}

TEST(FaultProcessTest, ConstantTimesAreConstantAndAcceleratedTogether) {
  FaultProcess process =
      freeProcess({.mean = 2h, .kind = Kind::kConstant}, {.mean = 30min, .kind = Kind::kConstant});
  process.accelerate = 3600;
  process.length = 10s;
  const auto faults = expand(process);
  const std::vector<Moments::Moment> expected{
      {2s, 500ms}, {4500ms, 500ms}, {7s, 500ms}, {9500ms, 500ms}};
  EXPECT_EQ(std::get<Moments>(faults.at(0).trigger).list, expected);
  EXPECT_EQ(faults[0].times, 4);
  EXPECT_EQ(faults[0].durationOf(3), 500ms);
}

TEST(FaultProcessTest, ElementsDoNotDependOnEachOther) {
  FaultProcess both = freeProcess({.mean = 5s}, {.mean = 300ms});
  FaultProcess one = both;
  both.nodes = {2, 3};
  both.rails = {0, 1};
  one.nodes = {3};
  const auto alone = expandProcesses({one}, kCluster, 9);
  const auto others = expandProcesses({both}, kCluster, 9);
  const auto same = std::ranges::find_if(
      others, [](const Fault& fault) { return fault.target == Target{.node = 3, .rail = 1}; });
  ASSERT_NE(same, others.end());
  // Not all of them find their place beside the others; those that do are where they were.
  EXPECT_EQ(std::get<Moments>(same->trigger).list.front(),
            std::get<Moments>(alone.at(0).trigger).list.front());
}

TEST(FaultProcessTest, KindsAreDrawnByWeight) {
  FaultProcess process = freeProcess({.mean = 300ms}, {.mean = 100ms});
  process.kinds = {processKind("port_down", 3), processKind("blackhole", 1)};
  std::map<std::string, double> counts;
  double all = 0;
  const std::vector<Fault> faults = expand(process);
  for (const Strike& strike : strikesOf(faults)) {
    ++counts[strike.fault->kind];
    ++all;
  }
  ASSERT_GT(all, 5000);
  EXPECT_NEAR(counts["port_down"] / all, 0.75, 0.04);
}

TEST(FaultProcessTest, AFaultIsNeverShorterThanShortestAndAllAreOverInTime) {
  const FaultProcess process = someProcess();
  const std::vector<Fault> faults = expand(process);
  const auto strikes = strikesOf(faults);
  EXPECT_GT(strikes.size(), 250u);
  std::set<std::string> kinds;
  for (const Strike& strike : strikes) {
    kinds.insert(strike.fault->kind);
    EXPECT_GE(strike.end - strike.begin, process.shortest);
    EXPECT_LE(strike.end, process.length);
  }
  EXPECT_EQ(kinds.size(), process.kinds.size());
  for (const Fault& fault : faults) {
    const auto& list = std::get<Moments>(fault.trigger).list;
    EXPECT_EQ(fault.times, std::ssize(list));
    EXPECT_TRUE(std::ranges::is_sorted(list, {}, &Moments::Moment::time));
  }
}

TEST(FaultProcessTest, ARailHasOneFaultAtATimeAndThenRests) {
  // Also of different processes.
  const std::vector<FaultProcess> two{someProcess(), someProcess()};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Fault> faults = expandProcesses(two, kCluster, seed);
    std::map<int, Duration> free;
    for (const Strike& strike : strikesOf(faults)) {
      if (!onRail(strike)) continue;
      Duration& from = free[strike.fault->target->rail];
      EXPECT_GE(strike.begin, from) << "seed " << seed;
      from = strike.end + two[0].rest;
    }
  }
}

TEST(FaultProcessTest, SoManyRailsAreWholeAndSoFewFaultsAtATime) {
  for (const int spare : {1, 2, 3}) {
    FaultProcess process = someProcess();
    process.kinds = {processKind("port_down")};
    process.spareRails = spare;
    process.failures.mean = 1s;  // more than there is place for
    process.rest = 0ms;
    FaultProcess single = process;
    single.atMost = 1;
    const auto most = [](const std::vector<Fault>& faults) {
      std::ptrdiff_t highest = 0;
      const auto strikes = strikesOf(faults);
      for (const Strike& at : strikes) {
        highest = std::max(highest, std::ranges::count_if(strikes, [&](const Strike& other) {
                             return other.begin <= at.begin && at.begin < other.end;
                           }));
      }
      return highest;
    };
    EXPECT_EQ(most(expand(process, 3)), kCluster.rails - spare);
    EXPECT_EQ(most(expand(single, 3)), 1);
  }
}

TEST(FaultProcessTest, AWholeRailFailsAtAllItsNodesAtOnce) {
  FaultProcess process = freeProcess({.mean = 2s}, {.mean = 300ms});
  process.per = FaultProcess::Element::kRail;
  process.nodes = {};
  Scenario scenario;
  scenario.cluster = kCluster;
  scenario.processes = {process};
  const std::vector<Fault> faults = allFaults(scenario);
  ASSERT_EQ(faults.size(), 4u);
  for (int node = 0; node < 4; ++node) {
    EXPECT_EQ(faults[node].target, (Target{.node = node, .rail = 1}));
    EXPECT_EQ(faults[node].trigger, faults[0].trigger);
  }
}

constexpr const char* kYaml =
    "fault_processes:\n"
    "- kinds: [port_down, {throttle: {rate: 10%, weight: 5}}, {port_down: {how: admin}}, "
    "process_stop]\n"
    "  mtbf: 2h\n"
    "  mttr: 20min\n"
    "  repairs: {distribution: lognormal, sigma: 0.8}\n"
    "  accelerate: 3600\n"
    "  spare_rails: 1\n"
    "  for: 20s\n";

TEST(FaultProcessTest, IsReadWrittenAndExpandedWithTheScenariosOwnFaults) {
  const ReadResult read = readScenario(
      minimal(std::string(kYaml) +
              "faults: [{kind: port_down, target: {node: 1, rail: 1}, at: 1s, until: end}]\n"),
      "test.yaml");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  const FaultProcess& process = read.scenario->processes.at(0);
  ASSERT_EQ(process.kinds.size(), 4u);
  EXPECT_EQ(std::get<Percent>(process.kinds[1].parameters.value("rate")), Percent{10});
  EXPECT_EQ(process.kinds[1].weight, 5);
  EXPECT_EQ(process.kinds[2].parameters.get<std::string>("how"), "admin");
  EXPECT_EQ(process.failures.mean, 2h);
  EXPECT_EQ(process.repairs, (Lifetime{.mean = 20min, .kind = Kind::kLognormal, .sigma = 0.8}));
  EXPECT_EQ(process.accelerate, 3600);
  EXPECT_EQ(process.length, 20s);
  const FaultProcess defaults;
  EXPECT_EQ(process.rest, defaults.rest) << "scenario.h and language_table.cc disagree";
  EXPECT_EQ(process.shortest, defaults.shortest);
  EXPECT_EQ(process.atMost, defaults.atMost);
  const ReadResult again = readScenario(toJson(*read.scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *read.scenario);
  const std::vector<Fault> all = allFaults(*read.scenario);
  EXPECT_EQ(all.front(), read.scenario->faults.front());
  EXPECT_EQ(all.size(),
            1 + expandProcesses(read.scenario->processes, read.scenario->cluster, 1).size());
}

TEST(FaultProcessTest, ARatePerHourIsAMeanTime) {
  std::string text = kYaml;
  text.replace(text.find("mtbf: 2h"), 8, "failures_per_hour: 0.5");
  const ReadResult read = readScenario(minimal(text), "test.yaml");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  EXPECT_EQ(read.scenario->processes.at(0).failures.mean, 2h);
}

TEST(FaultProcessTest, SaysWhatItDoesInWords) {
  const ReadResult read = readScenario(minimal(kYaml), "test.yaml");
  EXPECT_EQ(inWords(read.scenario->processes.at(0), read.scenario->cluster),
            "each of 8 NICs fails every 2h (exponential) on average and is repaired after 20min "
            "(lognormal, sigma 0.8); these times pass 3600 times faster, 1h in 1s");
}

TEST(FaultProcessTest, WhatCannotBeIsAMistakeWithItsPlace) {
  const auto mistakeOf = [](const std::string& assignment) {
    const std::vector<std::string> overrides{assignment};
    const ReadResult read = readScenario(minimal(kYaml), "test.yaml", overrides);
    EXPECT_EQ(read.mistakes.size(), 1u) << assignment;
    return read.ok() ? std::string() : read.mistakes.front().toString();
  };
  const std::string path = "fault_processes.0.";
  const std::vector<std::pair<std::string, std::string>> cases{
      {path + "kinds.0=process_kill", "process_kill cannot strike at random"},
      {path + "kinds.0=host_overload", "host_overload cannot strike at random"},
      {path + "kinds.0=port_dwn", "did you mean 'port_down'"},
      {path + "kinds.0=throttle", "throttle needs the key 'rate'"},
      {path + "kinds.1.throttle.speed=3", "unknown key 'speed'"},
      {path + "kinds.1.throttle.weight=0", "weight: '0' is out of range"},
      {path + "kinds=port_down", "kinds: a list"},
      {path + "per=rail", "process_stop cannot strike a whole rail"},
      {path + "failures_per_hour=2", "exclude each other"},
      {path + "repairs.shape=2", "shape: only with 'distribution: weibull'"},
      {path + "repairs.distribution=gamma", "is not one of exponential"},
      {path + "repairs.sigma=wide", "sigma: 'wide' is not a number"},
      {path + "mttr=1min", "is 16.7 ms here"},
      {path + "nodes=[0,4]", "nodes: the cluster has no 4"},
      {path + "rails=2", "rails: the cluster has no 2"},
      {path + "spare_rails=2", "of 2 rails 2 are to be whole"},
      {path + "mtbf=1s", "makes 576000 failures"},
      {path + "mtbf=1000000h", "with seed 1 nothing fails"},
      {path + "for=50ms", "is too short for a fault"},
      {path + "for=60s", "is not over when the run ends"},
      {"workload.time=20s", "is not over when the work ends"},
      {"cluster.nodes=1", "a cluster of one node"},
  };
  for (const auto& [assignment, message] : cases) {
    const std::string mistake = mistakeOf(assignment);
    EXPECT_NE(mistake.find(message), std::string::npos) << assignment << ": " << mistake;
  }
  const ReadResult placed = readScenario(
      minimal(
          "fault_processes:\n- {kinds: [port_down], mtbf: 1s, mttr: 1s, for: 2s, rails: [7]}\n"),
      "test.yaml");
  ASSERT_EQ(placed.mistakes.size(), 1u);
  EXPECT_EQ(placed.mistakes[0].line, 6);
}

TEST(FaultProcessTest, NeedsItsKeysAndAStrategyThatMeetsIt) {
  const ReadResult keys = readScenario(minimal("fault_processes: [{rest: 1s}]\n"), "test.yaml");
  EXPECT_EQ(keys.mistakes.size(), 4u);  // kinds, mtbf, mttr, for
  const ReadResult bare = readScenario(minimal("fault_processes: [7]\n"), "test.yaml");
  EXPECT_EQ(bare.mistakes.size(), 1u);
  const ReadResult map = readScenario(minimal("fault_processes: {mtbf: 1s}\n"), "test.yaml");
  EXPECT_EQ(map.mistakes.size(), 1u);
  const ReadResult unmet = readScenario(
      "version: 1\nname: a\nworkload: {kind: training}\nstrategies: [armed]\n" + std::string(kYaml),
      "test.yaml");
  ASSERT_EQ(unmet.mistakes.size(), 1u);
  EXPECT_NE(unmet.mistakes[0].message.find("remove 'fault_processes'"), std::string::npos);
}

}  // namespace
}  // namespace faultline::scenario
