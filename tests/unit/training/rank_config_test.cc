#include "harness/workload/rank_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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
                testing::HasSubstr("surplus: is unknown"))
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

std::vector<std::string> keysOf(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(RankConfigTest, EverythingOfATrainingJobIsNeeded) {
  const nlohmann::json complete = toJson(unusualConfig());
  int fields = 0;
  for (const auto& [part, value] : complete["workload"]["training"].items()) {
    const std::vector<std::string> names =
        value.is_object() ? keysOf(value) : std::vector<std::string>{""};
    for (const std::string& name : names) {
      nlohmann::json changed = complete;
      nlohmann::json& training = changed["workload"]["training"];
      name.empty() ? training.erase(part) : training[part].erase(name);
      EXPECT_THAT(
          rankConfigFromJson(changed).status().message(),
          testing::HasSubstr("workload.training." + part + (name.empty() ? "" : "." + name)));
      ++fields;
    }
  }
  EXPECT_EQ(fields, 27);
}

TEST(RankConfigTest, ADeviceThatTrainsNeedsNoBandwidthOfItsMemory) {
  RankConfig config = unusualConfig();
  config.workload.model->device.memoryBandwidth = 0;
  const auto read = rankConfigFromJson(toJson(config));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, config);
  config.workload.model->device.memoryBandwidth = -1;
  EXPECT_THAT(rankConfigFromJson(toJson(config)).status().message(),
              testing::HasSubstr("device.memory_bandwidth: expected at least 0, found -1"));
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
  EXPECT_THAT(messageWith("/server", nullptr), testing::HasSubstr("server: a server needs it"));
  EXPECT_THAT(messageWith("/server/rates", 1),
              testing::HasSubstr("server.rates: expected an array"));
  EXPECT_THAT(messageWith("/server/rates/0/requests/1", {1, 2, 3}),
              testing::HasSubstr("server.rates[0].requests[1]: expected an object"));
  EXPECT_THAT(messageWith("/workload/serving/batch", 0),
              testing::HasSubstr("batch: expected at least 1, found 0"));
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
  const auto refuses = [&](std::string_view pointer, const nlohmann::json& value,
                           std::string_view why) {
    EXPECT_THAT(messageWith(pointer, value), testing::HasSubstr(std::string(why)));
  };
  refuses("/rank", 5, "rank: there are not so many");
  refuses("/rank", "one", "configuration.rank: expected an integer");
  refuses("/control_tos", 256, "control_tos: expected 0 to 255, found 256");
  refuses("/limits/give_up", -1, "configuration.limits.give_up: expected at least 0, found -1");
  refuses("/limits/chunk", 0, "configuration.limits.chunk: expected at least 1, found 0");
  refuses("/job_key", "12", "configuration.job_key: ");
  refuses("/nics", 7, "configuration.nics: expected an array");
  refuses("/nics", nlohmann::json::array(), "nics: is an empty list");
  refuses("/nics/0", 7, "configuration.nics[0]: expected an object");
  refuses("/policy", "push", "configuration.policy: expected one of pinned, pull");
  refuses("/algorithm", "rings", "algorithm: is unknown");
  refuses("/planned", false, "algorithm: is unknown");  // 'auto' is for the planner
  refuses("/seed", "12", "configuration.seed: expected an integer");
  refuses("/checkpoint_path", "", "checkpoint_path: is needed");
  refuses("/workload/gradient/size", 97, "workload.gradient: size: 97 is not a whole number");
  refuses("/workload/gradient/dtype", "f8", "workload.gradient.dtype: expected one of f16, bf16");
  refuses("/workload/collective/sizes", {8, 0},
          "collective.sizes[1]: expected at least 1, found 0");
  refuses("/workload/collective/ops", nlohmann::json::array(), "ops: is an empty list");
  refuses("/workload/training/scale", 0, "training.scale: expected at least 1, found 0");
  refuses("/workload/training/device/efficiency", 0, "device: efficiency: is nothing");
  refuses("/workload/training/model/family", "bert", "model.family: expected one of gpt, llama");
  refuses("/workload/training/parallel/data", 4, "product");
  EXPECT_FALSE(rankConfigFromJson("text").ok());
}

}  // namespace
}  // namespace faultline::workload
