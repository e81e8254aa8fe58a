#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/reader.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ReadResult readWith(const std::vector<std::string>& overrides) {
  return readScenario(quickstart(), "f", overrides);
}

Scenario well(const std::vector<std::string>& overrides) {
  const ReadResult result = readWith(overrides);
  for (const Mistake& mistake : result.mistakes) ADD_FAILURE() << mistake.toString();
  return result.scenario.value_or(Scenario{});
}

TEST(OverrideTest, ChangesAndAddsValues) {
  const Scenario scenario =
      well({"workload.iterations=30", "faults.0.duration=2s", "workload.warmup_iterations=3",
            "strategies.1.fail_stop.watchdog=1s", "strategies.hot_repair.corrupt_one_element=true",
            "workload.compute={burn: 1ms}", "name=\"2\"", "expect=[]"});
  EXPECT_EQ(scenario.workload.iterations, 30);
  EXPECT_EQ(scenario.workload.warmupIterations, 3);
  EXPECT_EQ(scenario.faults[0].duration, 2s);
  EXPECT_EQ(scenario.strategies[1].options.get<Duration>("watchdog"), 1s);
  EXPECT_TRUE(scenario.strategies[2].options.get<bool>("corrupt_one_element"));
  EXPECT_TRUE(scenario.workload.compute.burn);
  EXPECT_EQ(scenario.name, "2");
  EXPECT_TRUE(scenario.expect.empty());
}

TEST(OverrideTest, ARowIsMeantByItsName) {
  const ReadResult result = readScenario(
      "version: 1\nname: n\nworkload: {kind: training}\n"
      "strategies: [{armed: {as: recorded}}, armed]\n",
      "f",
      std::vector<std::string>{"strategies.recorded.telemetry=on",
                               "strategies.armed.telemetry=null"});
  ASSERT_TRUE(result.ok());
  const Scenario& scenario = *result.scenario;
  EXPECT_EQ(scenario.telemetryOf(*scenario.find("recorded")), TelemetryMode::kOn);
  EXPECT_EQ(scenario.telemetryOf(*scenario.find("armed")), TelemetryMode::kNull);
}

TEST(OverrideTest, LaterOnesWinAndMissingMappingsAreMade) {
  EXPECT_EQ(well({"seed=1", "seed=2"}).seed, 2u);
  const ReadResult result = readScenario(
      minimal(), "f", std::vector<std::string>{"cluster.nodes=2", "limits.give_up=5s"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.scenario->cluster.nodes, 2);
  EXPECT_EQ(result.scenario->limits.giveUp, 5s);
}

TEST(OverrideTest, MistakesNameTheOverride) {
  const auto only = [](const std::string& assignment) {
    const ReadResult result = readWith({"seed=1", assignment});
    EXPECT_EQ(result.mistakes.size(), 1u) << assignment;
    return result.mistakes.empty() ? "" : result.mistakes[0].toString();
  };
  EXPECT_EQ(only("workload.iteratons=3"),
            "f: --set workload.iteratons=3: unknown key 'iteratons' in 'workload' (did you mean "
            "'iterations'?)");
  EXPECT_THAT(only("workload.compute=3"),
              HasSubstr("f: --set workload.compute=3: compute: '3' has no unit"));
  EXPECT_THAT(only("faults.0.target.rail=5"), HasSubstr("rail: there is no rail 5"));
  EXPECT_THAT(only("faults.1.duration=2s"), HasSubstr("'faults' has no element '1': it has 1"));
  EXPECT_THAT(only("strategies.armed.x=1"), HasSubstr("no element 'armed'"));
  EXPECT_THAT(only("name.first=x"), HasSubstr("'name' is a single value and has no part 'first'"));
  EXPECT_THAT(only("seed"), HasSubstr("is not path=value"));
  EXPECT_THAT(only("=5"), HasSubstr("is not path=value"));
  EXPECT_THAT(only("a..b=5"), HasSubstr("empty part"));
  EXPECT_THAT(only("seed="), HasSubstr("its value: there is nothing in it"));
  EXPECT_THAT(only("seed=[1"), HasSubstr("its value: a key must be"));
  EXPECT_THAT(only("seed=*x"), HasSubstr("its value:"));
}

TEST(OverrideTest, ManyAtDifferentPlacesStayApart) {
  const ReadResult result = readWith({"a=1", "b=2"});
  ASSERT_EQ(result.mistakes.size(), 2u);
  EXPECT_EQ(result.mistakes[0].source, "f: --set a=1");
  EXPECT_EQ(result.mistakes[1].source, "f: --set b=2");
}

}  // namespace
}  // namespace faultline::scenario
