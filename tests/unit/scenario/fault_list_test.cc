#include "harness/scenario/fault_list.h"

#include <gtest/gtest.h>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

using Mark = After::Mark;

Scenario readOrDie(const std::string& more) {
  const ReadResult read = readScenario(minimal(more), "test.yaml");
  EXPECT_TRUE(read.ok()) << read.mistakes.front().toString();
  const ReadResult again = readScenario(toJson(*read.scenario).dump(), "again.yaml");
  EXPECT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *read.scenario);
  return *read.scenario;
}

std::string mistakesOfFaults(const std::string& more) {
  std::string all;
  for (const Mistake& mistake : readScenario(minimal(more), "test.yaml").mistakes) {
    all += mistake.toString() + "\n";
  }
  return all;
}

TEST(RailGroupTest, IsOneFaultForEachOfItsNodes) {
  const Scenario scenario = readOrDie(
      "faults:\n"
      "- {kind: port_down, target: {rail_group: 1}, at: 1s, duration: 1s}\n"
      "- {kind: port_down, target: {rail_group: 0, nodes: [3, 1]}, during: {iteration: 3}, "
      "duration: 1s, times: 2, every: 2s}\n");
  const std::vector<Fault> all = allFaults(scenario);
  ASSERT_EQ(all.size(), 6u);
  for (int node = 0; node < 4; ++node) {
    EXPECT_EQ(all[node].target, (Target{.node = node, .rail = 1}));
    EXPECT_EQ(all[node].trigger, all[0].trigger);
    EXPECT_EQ(all[node].group, 0);
  }
  EXPECT_EQ(all[4].target, (Target{.node = 3, .rail = 0}));
  EXPECT_TRUE(std::holds_alternative<During>(all[4].trigger));
  EXPECT_EQ(all[5].target, (Target{.node = 1, .rail = 0}));
  EXPECT_EQ(std::get<After>(all[5].trigger), (After{.delay = {}, .mark = Mark::kBegin, .fault = 4}))
      << "the second strikes with the first and not with its own bytes";
  EXPECT_EQ(all[5].times, 2);
  EXPECT_EQ(all[5].group, 4);
}

constexpr const char* kOfRank3 =
    "faults: [{kind: process_stop, target: {rank: 3}, at: 1s, duration: 1s}]\n";

TEST(RankTest, IsOnTheNodeThatTheRankIsOn) {
  const Scenario two = readOrDie(std::string("cluster: {ranks_per_node: 2}\n") + kOfRank3);
  const std::vector<Fault> all = allFaults(two);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].target, (Target{.node = 1, .part = Part::kProcesses, .rank = 3}));
  EXPECT_EQ(inWords(*all[0].target), "rank 3");
  EXPECT_EQ(toJson(two)["faults"][0]["target"].dump(), R"({"rank":3})");
  EXPECT_EQ(allFaults(readOrDie(kOfRank3))[0].target->node, 3);
}

TEST(RankTest, OfACommandIsOnTheNodeThatItsPlaceInTheListSays) {
  const ReadResult read = readScenario(
      std::string("version: 1\nname: n\nworkload: {kind: command, command: {run: [a], nodes: [2, "
                  "0], per_node: 2}}\nstrategies: [unprotected]\n") +
          kOfRank3,
      "test.yaml");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  EXPECT_EQ(allFaults(*read.scenario)[0].target->node, 0);
}

TEST(RankTest, MistakesAreTold) {
  const auto of = [](const std::string& keys) {
    return mistakesOfFaults("faults: [{" + keys + ", at: 1s, duration: 1s}]\n");
  };
  EXPECT_EQ(of("kind: process_stop, target: {rank: 4}"),
            "test.yaml:5:46: rank: there is no rank 4: the job has 4, counted from 0\n");
  EXPECT_NE(of("kind: process_stop, target: {rank: 1, node: 1}")
                .find("node and 'rank' exclude each other"),
            std::string::npos);
  EXPECT_NE(of("kind: port_down, target: {rank: 1}").find("port_down does not act on processes"),
            std::string::npos);
  EXPECT_NE(of("kind: port_down, target: {rank: 1, rail_group: 0}")
                .find("rank and 'rail_group' exclude each other"),
            std::string::npos);
  const ReadResult command = readScenario(
      std::string("version: 1\nname: n\ncluster: {nodes: 2}\nworkload: {kind: command, command: "
                  "{run: [torchrun]}}\nstrategies: [unprotected]\n") +
          kOfRank3,
      "test.yaml");
  ASSERT_EQ(command.mistakes.size(), 1u);
  EXPECT_NE(command.mistakes[0].toString().find("the bench starts 2 processes, counted from 0. "
                                                "Those that a program starts itself it does not "
                                                "tell apart"),
            std::string::npos)
      << command.mistakes[0].toString();
}

TEST(PathTest, IsOneFaultThatNamesBothNodes) {
  const Scenario scenario = readOrDie(
      "faults: [{kind: path_cut, target: {node: 1, rail: 0, peer: 2}, at: 1s, duration: 1s}]\n");
  const std::vector<Fault> all = allFaults(scenario);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].target->peer, 2);
  EXPECT_EQ(inWords(*all[0].target), "nodes 1 and 2, rail 0");
  EXPECT_EQ(toJson(scenario)["faults"][0]["target"]["peer"], 2);
}

TEST(RailGroupTest, WhatCannotBeIsAMistakeWithItsPlace) {
  const auto fault = [](const std::string& kind, const std::string& target) {
    return mistakesOfFaults("faults:\n- {kind: " + kind + ", target: {" + target +
                            "}, at: 1s, duration: 1s}\n");
  };
  EXPECT_EQ(fault("blackhole", "rail_group: 1"),
            "test.yaml:6:42: rail_group: blackhole cannot strike a whole rail: what proves it are "
            "the other ports of the same switch\n");
  EXPECT_NE(fault("process_stop", "rail_group: 1").find("does not act on links"),
            std::string::npos);
  EXPECT_NE(fault("port_down", "rail_group: 2").find("there is no rail 2"), std::string::npos);
  EXPECT_NE(fault("port_down", "rail_group: 1, nodes: [0, 4]").find("there is no node 4"),
            std::string::npos);
  EXPECT_NE(fault("port_down", "rail_group: 1, nodes: [1, 1]").find("listed twice"),
            std::string::npos);
  EXPECT_NE(fault("port_down", "rail_group: 1, node: 1").find("node and 'rail_group' exclude"),
            std::string::npos);
  EXPECT_NE(fault("port_down", "rail: 1").find("needs the key 'node'"), std::string::npos);
}

TEST(RailGroupTest, TheOnlyRailMayBeGoneForLessThanTheRanksWait) {
  const auto only = [](const std::string& duration, const std::string& more) {
    return mistakesOfFaults(
        "cluster: {rails: 1}\nlimits: {give_up: 5s}\nfaults: [{kind: port_down, " +
        std::string("target: {rail_group: 0}, at: 1s, ") + duration + "}]\n" + more);
  };
  EXPECT_EQ(only("duration: 4s", ""), "");
  EXPECT_NE(only("duration: 5s", "").find("this is the only rail"), std::string::npos);
  EXPECT_NE(only("until: end", "").find("this is the only rail"), std::string::npos);
  EXPECT_EQ(only("until: end", "expect: [hot_repair.status == failed]\n"), "");
}

constexpr const char* kSequence =
    "sequences:\n"
    "- repeat: 3\n"
    "  pause: 700ms\n"
    "  faults:\n"
    "  - {kind: port_down, target: {node: 1, rail: 0}, at: 1s, duration: 400ms}\n"
    "  - {kind: throttle, rate: 10%, target: {rail_group: 1}, after: 200ms, duration: 500ms}\n"
    "  - {kind: process_stop, target: {node: 2}, after: 100ms, from: begin, duration: 50ms}\n";

TEST(SequenceTest, EachFaultWaitsForTheOneBeforeAndTheFirstForTheLast) {
  const Scenario scenario =
      readOrDie("faults: [{kind: port_down, target: {node: 0, rail: 0}, at: 30s, until: end}]\n" +
                std::string(kSequence));
  const std::vector<Fault> all = allFaults(scenario);
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(std::get<At>(all[1].trigger).time, 1s);
  EXPECT_EQ(all[1].again, (After{.delay = 700ms, .mark = Mark::kEnd, .fault = 6}));
  for (int member = 2; member < 6; ++member) {
    EXPECT_EQ(std::get<After>(all[member].trigger),
              (After{.delay = 200ms, .mark = Mark::kEnd, .fault = 1}));
    EXPECT_FALSE(all[member].again);
  }
  EXPECT_EQ(std::get<After>(all[6].trigger),
            (After{.delay = 100ms, .mark = Mark::kBegin, .fault = 2}));
  for (int i = 1; i < 7; ++i) EXPECT_EQ(all[i].times, 3);
  // 1 s, then 400 + 200 + 100 + 50 ms; and 700 ms more between two of three.
  EXPECT_EQ(earliestEnd(scenario.sequences.at(0)), 1s + 3 * 750ms + 2 * 700ms);
  EXPECT_EQ(inWords(all[2]),
            "throttle direction=both rate=10%, node 0, rail 1, 200ms after the end of fault 1 for "
            "500ms, 3 times");
}

TEST(SequenceTest, WhatCannotBeIsAMistakeWithItsPlace) {
  const auto mistakeOf = [](const std::string& assignment) {
    const std::vector<std::string> overrides{"sequences.0." + assignment};
    const ReadResult read = readScenario(minimal(kSequence), "test.yaml", overrides);
    EXPECT_EQ(read.mistakes.size(), 1u) << assignment;
    return read.ok() ? std::string() : read.mistakes.front().message;
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"faults.0.after=1s", "nothing is before the first fault"},
      {"faults.1.at=1s", "only the first fault of a sequence has it"},
      {"faults.1.times=2", "times: not in a sequence"},
      {"faults.1.from=middle", "is not one of begin, end, recovery"},
      {"faults.1.duration=100s", "is longer than a run"},
      {"faults.2.target.node=9", "there is no node 9"},
      {"repeat=100", "the last of these faults is over after"},
      {"faults=[]", "faults: a list"},
      {"faults.1={kind: throttle, rate: 10%, target: {rail_group: 1}, duration: 1s}",
       "never strikes: write 'after"},
      {"faults.1={kind: throttle, rate: 10%, target: {rail_group: 1}, after: 0s, until: end}",
       "a fault of a sequence that is repeated must end"},
  };
  for (const auto& [assignment, message] : cases) {
    const std::string mistake = mistakeOf(assignment);
    EXPECT_NE(mistake.find(message), std::string::npos) << assignment << ": " << mistake;
  }
  const std::vector<std::string> slow{"strategies=[{fail_stop: {watchdog: 400ms}}]"};
  const ReadResult unseen = readScenario(minimal(kSequence), "test.yaml", slow);
  ASSERT_EQ(unseen.mistakes.size(), 1u);
  EXPECT_NE(unseen.mistakes[0].message.find("400ms of port_down (sequences.0.faults.0)"),
            std::string::npos);
  EXPECT_NE(mistakesOfFaults("faults: [{kind: port_down, target: {node: 0, rail: 0}, after: 1s, "
                             "duration: 1s}]\n")
                .find("unknown key 'after'"),
            std::string::npos);
}

}  // namespace
}  // namespace faultline::scenario
