#include "harness/workload/rank_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/workload_kind.h"

namespace faultline::workload {
namespace {

/// Every number another one, and none its default; five ranks.
model::Training unusualTraining() {
  model::Training training;
  training.model = {.name = "unusual",
                    .family = model::Family::kLlama,
                    .layers = 2,
                    .hidden = 3,
                    .heads = 4,
                    .kvHeads = 5,
                    .ffn = 6,
                    .vocabulary = 7,
                    .sequence = 8,
                    .experts = 9,
                    .activeExperts = 10,
                    .dtype = model::DataType::kF16};
  training.device = {
      .name = "abacus", .gflops = 11, .efficiency = 0.123, .memory = 12, .memoryBandwidth = 18};
  training.parallel = {.data = 5, .tensor = 1, .pipeline = 1, .expert = 1, .zero = 2};
  training.microBatches = 13;
  training.microBatch = 14;
  training.sequence = 15;
  training.buckets = 16;
  training.scale = 17;
  return training;
}

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
  config.workload.model = unusualTraining();
  config.seed = 0xffffffffffffffff;
  config.shrinkPatience = 123ms;
  config.excludeAfter = 45ms;
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
    nlohmann::json changed = complete;
    changed.erase(name);
    const auto config = rankConfigFromJson(changed);
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_THAT(config.status().message(), testing::HasSubstr(name));
  }
}

/// All objects of a document, by their places.
void collectObjects(const nlohmann::json& value, const nlohmann::json::json_pointer& at,
                    std::vector<nlohmann::json::json_pointer>& objects) {
  if (value.is_object()) {
    objects.push_back(at);
    for (const auto& [key, inner] : value.items()) collectObjects(inner, at / key, objects);
  }
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
    collectObjects(value[i], at / i, objects);
  }
}

TEST(RankConfigTest, WhatIsUnknownIsRefusedWhereverItStands) {
  RankConfig config = unusualConfig();
  config.server = ServerConfig{.rates = {{.qps = 1, .requests = {}}}};
  config.workload.serving.emplace();
  const nlohmann::json complete = toJson(config);
  ASSERT_TRUE(rankConfigFromJson(complete).ok()) << rankConfigFromJson(complete).status().message();
  std::vector<nlohmann::json::json_pointer> objects;
  collectObjects(complete, nlohmann::json::json_pointer(), objects);
  EXPECT_GE(objects.size(), 9u);
  for (const auto& place : objects) {
    nlohmann::json changed = complete;
    changed[place / "surplus"] = 1;
    EXPECT_THAT(rankConfigFromJson(changed).status().message(),
                testing::HasSubstr("surplus is unknown"))
        << place;
  }
}

TEST(RankConfigTest, AnotherVersionIsRefused) {
  nlohmann::json changed = toJson(unusualConfig());
  changed["version"] = 99;
  EXPECT_THAT(rankConfigFromJson(changed).status().message(), testing::HasSubstr("version 99"));
}

TEST(RankConfigTest, EveryLimitIsNeeded) {
  const nlohmann::json complete = toJson(unusualConfig());
  for (const auto& [name, value] : complete["limits"].items()) {
    nlohmann::json changed = complete;
    changed["limits"].erase(name);
    EXPECT_THAT(rankConfigFromJson(changed).status().message(),
                testing::HasSubstr("limits." + name));
  }
}

TEST(RankConfigTest, EverythingOfATrainingJobIsNeeded) {
  const nlohmann::json complete = toJson(unusualConfig());
  ASSERT_EQ(complete["workload"]["training"].size(), 27u);
  for (const auto& [name, value] : complete["workload"]["training"].items()) {
    nlohmann::json changed = complete;
    changed["workload"]["training"].erase(name);
    EXPECT_THAT(rankConfigFromJson(changed).status().message(),
                testing::HasSubstr("workload.training." + name));
  }
}

TEST(RankConfigTest, ADeviceThatTrainsNeedsNoBandwidthOfItsMemory) {
  RankConfig config = unusualConfig();
  config.workload.model->device.memoryBandwidth = 0;
  const auto read = rankConfigFromJson(toJson(config));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, config);
  config.workload.model->device.memoryBandwidth = -1;
  EXPECT_THAT(rankConfigFromJson(toJson(config)).status().message(),
              testing::HasSubstr("memory_bandwidth is negative"));
}

TEST(RankConfigTest, AServerComesBackAsItWas) {
  RankConfig config = unusualConfig();
  config.size = 6;
  config.workload.kind = scenario::findWorkloadKind("inference");
  config.workload.model->parallel = {.tensor = 3};
  inference::Serving& serving = config.workload.serving.emplace();
  serving.batch = 5;
  serving.prefillTokens = 6;
  serving.disaggregated = true;
  config.server = ServerConfig{
      .rates = {{.qps = 1.5,
                 .requests = {{.id = 1, .arrival = 0.1, .prompt = 2, .output = 3},
                              {.id = 4, .arrival = 1.0 / 3, .prompt = 5, .output = 6}}},
                {.qps = 2, .requests = {}}},
      .firstRate = 7,
      .rateStart = TimePoint(8ns),
      .usualPrompt = 9,
      .usualOutput = 10};
  const nlohmann::json complete = nlohmann::json::parse(toJson(config).dump());
  const auto read = rankConfigFromJson(complete);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, config);
  const auto messageWith = [&](std::string_view pointer, const nlohmann::json& value) {
    nlohmann::json changed = complete;
    changed[nlohmann::json::json_pointer(std::string(pointer))] = value;
    return rankConfigFromJson(changed).status().message();
  };
  EXPECT_THAT(messageWith("/server", nullptr), testing::HasSubstr("server is missing"));
  EXPECT_THAT(messageWith("/server/rates", 1), testing::HasSubstr("server.rates is not a list"));
  EXPECT_THAT(messageWith("/server/rates/0/requests/1", {1, 2, 3}),
              testing::HasSubstr("server.rates.requests has one that is not four numbers"));
  EXPECT_THAT(messageWith("/workload/serving/batch", 0), testing::HasSubstr("batch is below 1"));
  EXPECT_THAT(messageWith("/size", 3), testing::HasSubstr("degrees of parallelism"));
}

TEST(RankConfigTest, DegreesOfParallelismComeBackEachInItsPlace) {
  RankConfig config = unusualConfig();
  config.size = 2 * 3 * 4 * 5;
  config.workload.model->parallel = {.data = 2, .tensor = 3, .pipeline = 4, .expert = 5, .zero = 1};
  const auto read = rankConfigFromJson(toJson(config));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, config);
}

TEST(RankConfigTest, SumsOfATrainingJobAreOfItsGroups) {
  RankConfig config = unusualConfig();
  config.workload.gradient = {.dtype = scenario::DataType::kBf16};  // 32 ranks add up exactly
  config.workload.model->model.dtype = model::DataType::kBf16;
  config.size = 64;
  config.workload.model->parallel = {.data = 32, .pipeline = 2};
  EXPECT_TRUE(rankConfigFromJson(toJson(config)).ok());
  config.workload.model->parallel = {.data = 32, .expert = 2};
  EXPECT_THAT(rankConfigFromJson(toJson(config)).status().message(),
              testing::HasSubstr("exact sums of bf16"));
}

TEST(RankConfigTest, NonsenseIsNamed) {
  const auto messageWith = [](std::string_view pointer, const nlohmann::json& value) {
    nlohmann::json changed = toJson(unusualConfig());
    changed[nlohmann::json::json_pointer(std::string(pointer))] = value;
    return rankConfigFromJson(changed).status().message();
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
  EXPECT_THAT(messageWith("/workload/training/scale", 0), testing::HasSubstr("scale is below 1"));
  EXPECT_THAT(messageWith("/workload/training/family", "bert"), testing::HasSubstr("family"));
  EXPECT_THAT(messageWith("/workload/training/data_parallel", 4), testing::HasSubstr("product"));
  EXPECT_FALSE(rankConfigFromJson("text").ok());
}

}  // namespace
}  // namespace faultline::workload
