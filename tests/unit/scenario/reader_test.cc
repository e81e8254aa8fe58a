#include "harness/scenario/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "harness/scenario/json.h"
#include "harness/scenario/language_table.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

Scenario readWell(const std::string& yaml, std::vector<std::string> overrides = {}) {
  const ReadResult result = readScenario(yaml, "test.yaml", overrides);
  for (const Mistake& mistake : result.mistakes) ADD_FAILURE() << mistake.toString();
  return result.scenario.value_or(Scenario{});
}

TEST(ReaderTest, QuickstartIsReadAsTheContractShowsIt) {
  const Scenario scenario = readWell(quickstart());
  EXPECT_EQ(scenario.name, "quickstart");
  EXPECT_EQ(scenario.cluster.nodes, 4);
  EXPECT_EQ(scenario.cluster.ranks(), 4);
  EXPECT_EQ(scenario.cluster.rails, 2);
  EXPECT_EQ(scenario.cluster.railRate, 400'000'000);
  EXPECT_EQ(scenario.workload.iterations, 60);
  EXPECT_EQ(scenario.workload.compute, (Compute{20ms, false}));
  EXPECT_EQ(scenario.workload.gradient,
            (Gradient{4 << 20, 4, DataType::kF32, DataKind::kIntegers}));
  ASSERT_EQ(scenario.strategies.size(), 3u);
  EXPECT_EQ(scenario.strategies[1].name, "fail_stop");
  EXPECT_EQ(scenario.strategies[1].options.get<Duration>("watchdog"), 600ms);
  EXPECT_EQ(scenario.strategies[1].options.get<std::int64_t>("checkpoint_every"), 5);
  ASSERT_EQ(scenario.faults.size(), 1u);
  const Fault& fault = scenario.faults[0];
  EXPECT_EQ(fault.kind, "port_down");
  EXPECT_EQ(fault.parameters.get<std::string>("how"), "carrier");
  EXPECT_EQ(fault.target, (Target{1, 0}));
  EXPECT_EQ(std::get<During>(fault.trigger), (During{20, 0.5}));
  EXPECT_EQ(fault.duration, 1500ms);
  EXPECT_EQ(scenario.limits, (Limits{60s, 10s}));
  EXPECT_EQ(scenario.telemetry, TelemetryMode::kOff);
  EXPECT_EQ(scenario.ioThreads, 0);
  EXPECT_EQ(scenario.repeat, 3);
  EXPECT_EQ(scenario.seed, 7u);
  ASSERT_EQ(scenario.expect.size(), 4u);
  EXPECT_EQ(scenario.expect[1].strategy, "hot_repair");
  EXPECT_EQ(scenario.expect[1].metric, "failovers.count");
}

TEST(ReaderTest, WhatIsNotGivenHasItsDefaultInStructAndTableAlike) {
  const Scenario scenario = readWell(minimal());
  Scenario defaults;
  defaults.name = "small";
  defaults.strategies = scenario.strategies;
  EXPECT_EQ(scenario, defaults) << "scenario.h and language_table.cc disagree:\n"
                                << toJson(scenario).dump(2) << toJson(defaults).dump(2);
  EXPECT_FALSE(scenario.strategies[0].options.get<bool>("corrupt_one_element"));
}

TEST(ReaderTest, OtherSpellings) {
  const Scenario scenario = readWell(
      "version: 1\nname: other\nworkload: {kind: training, compute: {burn: 5ms}}\n"
      "strategies: [{hot_repair: {corrupt_one_element: true}}, armed, {fault_free: }]\n"
      "faults:\n"
      "- {kind: none, at: 2s, until: end}\n"
      "- {kind: throttle, rate: 25%, target: {node: 0, rail: 1}, at: 0s, duration: 1s}\n"
      "- {kind: throttle, rate: 40Mbit, target: {node: 3, rail: 1}, during: {iteration: 0},\n"
      "   until: end}\n");
  EXPECT_EQ(scenario.workload.compute, (Compute{5ms, true}));
  EXPECT_TRUE(scenario.strategies[0].options.get<bool>("corrupt_one_element"));
  EXPECT_EQ(scenario.find("armed"), &scenario.strategies[1]);
  EXPECT_EQ(scenario.find("fail_stop"), nullptr);
  EXPECT_FALSE(scenario.faults[0].target.has_value());
  EXPECT_FALSE(scenario.faults[0].duration.has_value());
  EXPECT_EQ(std::get<Percent>(scenario.faults[1].parameters.value("rate")), Percent{25});
  EXPECT_EQ(std::get<Rate>(scenario.faults[2].parameters.value("rate")), Rate{40'000'000});
  EXPECT_EQ(std::get<During>(scenario.faults[2].trigger).progress, 0.5);
}

TEST(ReaderTest, TelemetryHasThreeModesAndYamlsNullIsOne) {
  EXPECT_EQ(readWell(minimal("telemetry: off\n")).telemetry, TelemetryMode::kOff);
  EXPECT_EQ(readWell(minimal("telemetry: on\n")).telemetry, TelemetryMode::kOn);
  EXPECT_EQ(readWell(minimal("io_threads: 2\n")).ioThreads, 2);
  for (const char* spelling : {"telemetry: null\n", "telemetry: \"null\"\n"}) {
    const Scenario scenario = readWell(minimal(spelling));
    EXPECT_EQ(scenario.telemetry, TelemetryMode::kNull);
    EXPECT_EQ(readWell(toJson(scenario).dump()), scenario);
  }
}

TEST(ReaderTest, TheNodesCongestionControlIsTheMachinesWhereNoneIsNamed) {
  EXPECT_EQ(readWell(minimal()).cluster.congestionControl, "");
  EXPECT_EQ(readWell(minimal("cluster: {congestion_control: cubic}\n")).cluster.congestionControl,
            "cubic");
}

TEST(ReaderTest, JsonOfAScenarioIsTheSameScenario) {
  for (const std::string& yaml :
       {quickstart(), minimal(), minimal("cluster: {congestion_control: dctcp}\n"),
        minimal("faults: [{kind: throttle, rate: 12.5%, target: {node: 1, rail: 1}, "
                "at: 1500ms, until: end}]\n"
                "seed: 9007199254740991\ndescription: \"quote \\\" and \\\\, colon: #5\\n\"\n")}) {
    const Scenario scenario = readWell(yaml);
    EXPECT_EQ(readWell(toJson(scenario).dump(2)), scenario) << toJson(scenario).dump(2);
  }
}

TEST(ReaderTest, EveryLimitOfTheTableIsReadAndStandsInTheResult) {
  const auto fields = scenarioTable().fields;
  const auto limits =
      std::ranges::find(fields, "limits", [](const Field& f) { return f.spec.name; });
  ASSERT_NE(limits, fields.end());
  const auto defaults = toJson(readWell(minimal()))["limits"];
  EXPECT_EQ(defaults.size(), limits->record->fields.size());
  for (const Field& field : limits->record->fields) {
    const std::string name(field.spec.name);
    EXPECT_TRUE(defaults.contains(name)) << name;
    const bool size = field.spec.type == ParameterType::kSize;
    const bool number = field.spec.type == ParameterType::kInteger;
    const std::string value = number ? "7" : size ? "20KiB" : name == "deadline" ? "70s" : "9s";
    // What others must not be longer than.
    std::string given = name + ": " + value;
    if (name == "return_probe_interval") given += ", longest_return_probe_interval: 9s";
    if (name == "idle_probe_interval") given += ", give_up: 30s";
    const auto read = toJson(readWell(minimal("limits: {" + given + "}\n")))["limits"];
    if (number) {
      EXPECT_EQ(read[name], 7) << name;
    } else {
      EXPECT_EQ(read[name], value) << name;
    }
    EXPECT_NE(read[name], defaults[name]) << name;
  }
}

TEST(ReaderTest, AScenarioCanComeThroughAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string text = quickstart();
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
  ::close(ends[1]);
  const ReadResult result = readScenarioFile(fmt::format("/dev/fd/{}", ends[0]));
  ::close(ends[0]);
  EXPECT_TRUE(result.ok()) << result.mistakes.front().toString();
}

TEST(ReaderTest, APipeWithoutAWriterIsAMistakeAndNoWait) {
  const std::string path = ::testing::TempDir() + "faultline_reader_pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const ReadResult result = readScenarioFile(path);
  std::remove(path.c_str());
  ASSERT_EQ(result.mistakes.size(), 1u);
  EXPECT_NE(result.mistakes[0].message.find("it is a pipe"), std::string::npos);
}

TEST(ReaderTest, FilesThatCannotBeReadAreMistakes) {
  for (const char* path : {"/nowhere/at/all.yaml", "/", "/dev/zero", ""}) {
    const ReadResult result = readScenarioFile(path);
    ASSERT_EQ(result.mistakes.size(), 1u) << path;
    EXPECT_NE(result.mistakes[0].message.find("cannot read the scenario"), std::string::npos);
    EXPECT_FALSE(result.ok());
  }
}

TEST(ReaderTest, AStrategyMayHaveSeveralRows) {
  const ReadResult result = readScenario(
      "version: 1\nname: n\nworkload: {kind: training}\ntelemetry: null\n"
      "strategies: [fault_free, {fault_free: {as: again}}, {armed: {as: b, telemetry: on}}]\n"
      "expect: [again.overhead_pct.median <= 1]\n",
      "f");
  for (const Mistake& mistake : result.mistakes) ADD_FAILURE() << mistake.toString();
  ASSERT_TRUE(result.ok());
  const Scenario& scenario = *result.scenario;
  ASSERT_EQ(scenario.strategies.size(), 3u);
  EXPECT_EQ(scenario.strategies[0].kind(), "fault_free");
  EXPECT_EQ(scenario.strategies[1].name, "again");
  EXPECT_EQ(scenario.strategies[1].kind(), "fault_free");
  EXPECT_EQ(scenario.telemetryOf(scenario.strategies[1]), TelemetryMode::kNull);
  EXPECT_EQ(scenario.telemetryOf(scenario.strategies[2]), TelemetryMode::kOn);
  EXPECT_EQ(scenario.expect[0].strategy, "again");
  const ReadResult same = readScenario(toJson(scenario).dump(), "again");
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same.scenario, scenario);
}

}  // namespace
}  // namespace faultline::scenario
