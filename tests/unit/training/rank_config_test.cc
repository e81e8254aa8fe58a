#include "harness/workload/rank_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::workload {
namespace {

RankConfig unusualConfig() {
  RankConfig config;
  config.rank = 2;
  config.size = 5;
  config.jobKey = auth::JobKey::fromHex("00112233445566778899aabbccddeeff").value();
  config.nics = {{"rail0", "10.1.0.3"}, {"rail1", "10.2.0.3"}};
  config.managementAddress = "10.0.0.3";
  config.rendezvousAddress = "10.0.0.1";
  config.rendezvousPort = 4711;
  config.controlTos = 16;
  config.resilient = false;
  config.policy = channel::Policy::kPull;
  config.segments = 3;
  int number = 0;  // each another one, and none its default
  scenario::eachLimit(config.limits, [&](const char*, auto& limit) {
    limit += std::remove_reference_t<decltype(limit)>(++number);
  });
  config.algorithm = "auto";
  config.planned = true;
  config.telemetry = scenario::TelemetryMode::kNull;
  config.ioThreads = 2;
  config.workload.iterations = 17;
  config.workload.warmupIterations = 3;
  config.workload.compute = {.duration = 7ms, .burn = true};
  config.workload.gradient = {.size = 96,
                              .buckets = 2,
                              .dtype = scenario::DataType::kI64,
                              .data = scenario::DataKind::kRandom};
  config.workload.collective = {
      .operations = {schedule::Collective::kReduce, schedule::Collective::kSendRecv},
      .sizes = {8, 1 << 30},
      .dtypes = {scenario::DataType::kBf16, scenario::DataType::kU8},
      .ops = {reduction::ReduceOp::kMax},
      .place = scenario::Place::kBoth};
  config.seed = 0xffffffffffffffff;
  config.shrinkPatience = 123ms;
  config.checkpointEvery = 5;
  config.checkpointPath = "/run/of/rank2";
  config.corruptOneElement = true;
  return config;
}

TEST(RankConfigTest, ComesBackAsItWas) {
  const auto parsed = nlohmann::json::parse(toJson(unusualConfig()).dump());
  const auto config = rankConfigFromJson(parsed);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(*config, unusualConfig());
}

TEST(RankConfigTest, EveryFieldIsNeeded) {
  const nlohmann::json complete = toJson(unusualConfig());
  for (const auto& [name, value] : complete.items()) {
    nlohmann::json json = complete;
    json.erase(name);
    const auto config = rankConfigFromJson(json);
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_THAT(config.status().message(), testing::HasSubstr(name));
  }
}

TEST(RankConfigTest, EveryLimitIsNeeded) {
  const nlohmann::json complete = toJson(unusualConfig());
  for (const auto& [name, value] : complete["limits"].items()) {
    nlohmann::json json = complete;
    json["limits"].erase(name);
    EXPECT_THAT(rankConfigFromJson(json).status().message(), testing::HasSubstr("limits." + name));
  }
}

TEST(RankConfigTest, NonsenseIsNamed) {
  const auto messageWith = [](std::string_view pointer, const nlohmann::json& value) {
    nlohmann::json json = toJson(unusualConfig());
    json[nlohmann::json::json_pointer(std::string(pointer))] = value;
    return rankConfigFromJson(json).status().message();
  };
  EXPECT_THAT(messageWith("/rank", 5), testing::HasSubstr("rank is out of range"));
  EXPECT_THAT(messageWith("/rank", "one"), testing::HasSubstr("rank has another type"));
  EXPECT_THAT(messageWith("/limits/give_up", -1), testing::HasSubstr("limits.give_up is negative"));
  EXPECT_THAT(messageWith("/limits/chunk", 0), testing::HasSubstr("limits.chunk is nothing"));
  EXPECT_THAT(messageWith("/nics", 7), testing::HasSubstr("nics is not a list"));
  EXPECT_THAT(messageWith("/nics/0", 7), testing::HasSubstr("nics. is not an object"));
  EXPECT_THAT(messageWith("/policy", "push"), testing::HasSubstr("policy is an unknown word"));
  EXPECT_THAT(messageWith("/algorithm", "rings"), testing::HasSubstr("algorithm is unknown"));
  EXPECT_THAT(messageWith("/planned", false), testing::HasSubstr("algorithm is unknown"))
      << "'auto' is for the planner";
  EXPECT_THAT(messageWith("/seed", "12x"), testing::HasSubstr("seed is not a 64-bit number"));
  EXPECT_THAT(messageWith("/workload/gradient_bytes", 97), testing::HasSubstr("whole number"));
  EXPECT_THAT(messageWith("/workload/dtype", "f8"), testing::HasSubstr("workload.dtype"));
  EXPECT_FALSE(rankConfigFromJson("text").ok());
}

}  // namespace
}  // namespace faultline::workload
