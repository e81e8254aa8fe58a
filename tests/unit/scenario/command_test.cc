#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "tests/unit/scenario/expect_mistake.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

using command::Take;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// `keys` of `command` in line 5, the rest from line 6 on.
std::string withCommand(const std::string& keys, const std::string& more = "") {
  return "version: 1\nname: n\ncluster: {nodes: 3, rails: 2, ranks_per_node: 2}\nworkload:\n" +
         fmt::format("  {{kind: command, command: {{{}}}}}\n", keys) +
         (more.find("strategies:") == std::string::npos ? "strategies: [fault_free, unprotected]\n"
                                                        : "") +
         more;
}

const command::Command& commandOf(const ReadResult& read) {
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return read.scenario->workload.command;
}

TEST(CommandTest, DefaultsAreThoseOfTheCluster) {
  const ReadResult read = readScenario(withCommand("run: [iperf3, -s, 5201, true]"), "f");
  const command::Command& command = commandOf(read);
  EXPECT_THAT(command.run, ElementsAre("iperf3", "-s", "5201", "true"));
  EXPECT_EQ(command.perNode, 2);
  EXPECT_THAT(command.nodes, ElementsAre(0, 1, 2));
  EXPECT_EQ(command.processes(), 6);
  EXPECT_THAT(command.successExit, ElementsAre(0));
  EXPECT_FALSE(command.timeLimit.has_value());
}

TEST(CommandTest, EverythingCanBeSaid) {
  const ReadResult read = readScenario(
      withCommand(
          "run: [a, '{rank}'], per_node: 1, nodes: [2, 0], env: {A: 1, B: '{node}'}, "
          "workdir: '{output}', time_limit: 5s, success_exit: [0, 3], progress: p, "
          "throughput: fast, metrics: {fast: {regex: 'v ([0-9]+)', unit: GB/s, take: max}, "
          "slow: {json: x.json, path: a.0}}",
          "strategies: [fault_free, {unprotected: {as: plugin, env: {NCCL_NET_PLUGIN: x}}}]\n"
          "expect: [plugin.metrics.fast >= 5, plugin.exit_code == 0, plugin.status == ok]\n"),
      "f");
  const command::Command& command = commandOf(read);
  EXPECT_EQ(command.perNode, 1);
  EXPECT_THAT(command.nodes, ElementsAre(2, 0));
  EXPECT_THAT(command.environment, ElementsAre(Pair("A", "1"), Pair("B", "{node}")));
  EXPECT_EQ(command.workingDirectory, "{output}");
  EXPECT_EQ(command.timeLimit, Duration(5s));
  EXPECT_THAT(command.successExit, ElementsAre(0, 3));
  EXPECT_EQ(command.progress, "p");
  EXPECT_EQ(command.throughput, "fast");
  ASSERT_EQ(command.metrics.size(), 2u);
  EXPECT_EQ(command.metrics[0], (command::Metric{.name = "fast",
                                                 .regex = "v ([0-9]+)",
                                                 .json = "",
                                                 .path = "",
                                                 .unit = "GB/s",
                                                 .take = Take::kMax}));
  EXPECT_EQ(command.metrics[1].json, "x.json");
  EXPECT_EQ(command.metrics[1].path, "a.0");
  const Strategy* const row = read.scenario->find("plugin");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->kind(), "unprotected");
  EXPECT_THAT(row->environment, ElementsAre(Pair("NCCL_NET_PLUGIN", "x")));
  // A result has it as it was read, so that it can be read again.
  const auto again = readScenario(toJson(*read.scenario).dump(), "f");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *read.scenario);
}

TEST(CommandTest, MistakesInWhatIsStarted) {
  expectMistake("version: 1\nname: n\nworkload: {kind: command}\nstrategies: [armed]\n", "3:18",
                "needs the key 'command'");
  expectMistake(withCommand("per_node: 1"), "5:28", "needs the key 'run'");
  expectMistake(withCommand("run: iperf3 -s"), "5:34", "for a shell write [sh, -c, 'text']");
  expectMistake(withCommand("run: []"), "5:34", "a list of 1 to 100 texts");
  expectMistake(withCommand("run: [a, '{rnak}']"), "5:34", "there is no placeholder '{rnak}'");
  expectMistake(withCommand("run: [a, '{address_3}']"), "5:34", "'{address_3}'");
  expectMistake(withCommand("run: [a], nodes: [0, 3]"), "5:46", "there is no node 3");
  expectMistake(withCommand("run: [a], nodes: [0, 0]"), "5:50", "is listed twice");
  expectMistake(withCommand("run: [a], env: [A]"), "5:44", "a mapping like {NAME: value}");
  expectMistake(withCommand("run: [a], time_limit: 2min"), "5:51", "is never reached");
  expectMistake(withCommand("run: [a], shell: true"), "5:39", "unknown key 'shell'");
}

TEST(CommandTest, MistakesInMetrics) {
  const auto withMetric = [](const std::string& metric, const std::string& name = "m") {
    return withCommand(fmt::format("run: [a], metrics: {{{}: {}}}", name, metric));
  };
  expectMistake(withMetric("{unit: s}"), "5:49", "either 'regex' or 'json'");
  expectMistake(withMetric("{regex: 'a ([0-9])', json: x, path: y}"), "5:49",
                "either 'regex' or 'json'");
  expectMistake(withMetric("{json: x}"), "5:49", "belong together");
  expectMistake(withMetric("{regex: 'a'}"), "5:60", "0 groups");
  expectMistake(withMetric("{regex: '('}"), "5:60", "no regular expression");
  expectMistake(withMetric("{regex: '(a)\\1'}"), "5:60", "at character 4: a back reference");
  expectMistake(withMetric("{regex: '(a)" + std::string(1100, 'a') + "'}"), "5:60",
                "1024 are possible");
  expectMistake(withMetric("{regex: 'a ([0-9])'}", "a.b"), "5:49", "'a.b' is no name");
  expectMistake(withCommand("run: [a], throughput: fast"), "5:51", "'metrics' has no 'fast'");
}

TEST(CommandTest, WhatOnlyRanksOfOursKnowIsRefused) {
  const auto with = [](const std::string& more) { return withCommand("run: [a]", more); };
  expectMistake(with("strategies: [armed, hot_repair]\n"), "6:21", "needs ranks that are ours");
  expectMistake(with("strategies: [{armed: {telemetry: on}}]\n"), "6:23", "has none for programs");
  const std::string failing_over =
      "strategies: [{nccl: {mode: port_failover, as: a, env: {A: b}}}]\n";
  EXPECT_THAT(mistakesOf(with(failing_over +
                              "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, "
                              "duration: 1s}]\n")),
              IsEmpty());
  expectMistake(with(failing_over), "6:28", "nothing to fail over from");
  EXPECT_THAT(mistakesOf(with("strategies: [{nccl: {mode: stock}}]\n")), IsEmpty());
  for (const char* mode : {"abort_reinit", "shrink"}) {
    const std::string rebuilding = fmt::format("strategies: [{{nccl: {{mode: {}}}}}]\n", mode);
    expectMistake(with(rebuilding), "6:28", "nothing to recover from");
    EXPECT_THAT(mistakesOf(with(rebuilding +
                                "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, "
                                "duration: 1s}]\n")),
                IsEmpty());
  }
  const std::string killing =
      "faults: [{kind: process_kill, target: {node: 1}, at: 1s, until: end}]\n";
  expectMistake(with("strategies: [{nccl: {mode: abort_reinit}}]\n" + killing), "6:28",
                "nobody starts a process again");
  EXPECT_THAT(mistakesOf(with("strategies: [{nccl: {mode: shrink, wait: 1s}}]\n" + killing)),
              IsEmpty());
  expectMistake(with("strategies: [{nccl: {mode: stock, wait: 1s}}]\n"), "6:41",
                "wait: only of the modes");
  const std::string rows = "strategies: [{nccl: {mode: shrink}}, unprotected]\n" + killing;
  EXPECT_THAT(mistakesOf(with(rows + "expect: [nccl.shrinks.ranks == 3]\n")), IsEmpty());
  expectMistake(with(rows + "expect: [nccl.rebuilds.count == 1]\n"), "8:10",
                "only a row of 'nccl' with 'mode: abort_reinit'");
  expectMistake(with(rows + "expect: [unprotected.shrinks.count == 1]\n"), "8:10",
                "only a row of 'nccl' with 'mode: shrink'");
  expectMistake(with("strategies: [{nccl: {mode: prayer}}]\n"), "6:28",
                "is not one of stock, port");
  expectMistake(with("telemetry: on\n"), "7:12", "know nothing of it");
  expectMistake(with("io_threads: 2\n"), "7:13", "know nothing of it");
  expectMistake(with("limits: {deadline: 5s, give_up: 1s}\n"), "7:33", "know nothing of it");
  EXPECT_THAT(mistakesOf(with("limits: {deadline: 5s}\n")), IsEmpty());
  expectMistake(with("expect: [wrong_elements == 0]\n"), "7:10", "nobody sees that");
  expectMistake(with("expect: [unprotected.failovers.count == 0]\n"), "7:10", "nobody sees that");
  expectMistake(with("expect: [unprotected.metrics.busbw >= 5]\n"), "7:10", "has no 'busbw'");
  for (const char* key : {"iterations: 5", "warmup_iterations: 5", "time: 5s", "compute: 5ms",
                          "gradient: {size: 4MiB}", "collective: {sizes: 4MiB}"}) {
    expectMistake(fmt::format("version: 1\nname: n\nworkload: {{kind: command, command: {{run: "
                              "[a]}}, {}}}\nstrategies: [armed]\n",
                              key),
                  fmt::format("3:{}", 48 + std::string(key).find(':') + 2),
                  "a workload of kind command has none");
  }
}

TEST(CommandTest, WhatOnlyProgramsHaveIsRefusedElsewhere) {
  const auto with = [](const std::string& strategies, const std::string& more = "") {
    return "version: 1\nname: n\nworkload: {kind: training}\nstrategies: [armed, " + strategies +
           "]\n" + more;
  };
  expectMistake(with("unprotected"), "4:21", "only for 'workload: {kind: command}'");
  expectMistake(with("nccl"), "4:21", "only for 'workload: {kind: command}'");
  expectMistake(with("{balance: {env: {A: b}}}"), "4:32", "only the programs");
  expectMistake(with("balance", "expect: [armed.exit_code == 0]\n"), "5:10", "only programs");
  expectMistake(with("balance", "expect: [armed.metrics.x == 0]\n"), "5:10", "only programs");
  expectMistake(
      "version: 1\nname: n\nworkload: {kind: training, command: {run: [a]}}\n"
      "strategies: [armed]\n",
      "3:37", "a workload of kind training has none");
}

TEST(CommandTest, FaultsDuringAnIterationNeedAProgressFile) {
  const auto with = [](const std::string& keys, int iteration) {
    return withCommand("run: [a]" + keys,
                       fmt::format("faults: [{{kind: port_down, target: {{node: 1, rail: 0}}, "
                                   "during: {{iteration: {}}}, duration: 1s}}]\n",
                                   iteration));
  };
  expectMistake(with("", 3), "7:64", "'workload.command.progress'");
  expectMistake(with(", progress: p", 0), "7:64", "iteration 0 has none");
  EXPECT_THAT(mistakesOf(with(", progress: p", 3000)), IsEmpty()) << "it counts by itself";
}

}  // namespace
}  // namespace faultline::scenario
