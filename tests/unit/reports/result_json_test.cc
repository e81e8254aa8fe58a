#include "reports/result_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/sample_result.h"

namespace faultline::reports {
namespace {

Json sampleJson() { return toJson(testing::sampleResult()); }

std::string errorOf(const Json& json) {
  const auto result = fromJson(json);
  return result.ok() ? "" : result.status().message();
}

TEST(ResultJsonTest, EveryFieldComesBack) {
  ScenarioResult result = testing::sampleResult();
  result.interrupted = true;
  result.environment.gpu = "example";
  result.summary[1].overhead_pct->ci95 = Interval{40.5, 51.25};
  result.summary[1].origin = Origin::kModelled;
  Latency latency;
  latency.ttft_ms.p95 = 12.5;
  latency.tpot_ms.n = 61;
  result.summary[2].latency = latency;
  const Json written = toJson(result);
  const auto read = fromJson(written);
  ASSERT_TRUE(read.ok()) << read.status().message();
  // The writer knows every field, so that equal text means equal results.
  EXPECT_EQ(toJson(*read).dump(), written.dump());
  EXPECT_EQ(read->summary[1].overhead_pct->ci95->hi, 51.25);
  EXPECT_EQ(read->summary[1].origin, Origin::kModelled);
  EXPECT_FALSE(read->summary[0].overhead_pct.has_value());
}

TEST(ResultJsonTest, HasTheKeysThatScriptsMayUse) {
  const Json json = sampleJson();
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "faultline.result/1");
  for (const char* key :
       {"scenario", "seed", "environment", "verdict", "runs", "summary", "expectations"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"kernel", "cpu", "gpu", "nccl", "versions", "git"}) {
    EXPECT_TRUE(json["environment"].contains(key)) << key;
  }
  const Json& run = json["runs"][2];
  for (const char* key : {"strategy", "options", "block", "arm", "faulted", "status", "iterations",
                          "wrong_elements", "checked_elements", "digest", "throughput", "failovers",
                          "failbacks", "restarts", "rails", "evidence", "counters"}) {
    EXPECT_TRUE(run.contains(key)) << key;
  }
  for (const char* key :
       {"rank", "rail", "peer", "direction", "cause", "verdict", "fault_ms", "detected_ms",
        "fenced_ms", "resumed_ms", "restored_ms", "pause_ms", "resent_bytes", "duplicate_bytes"}) {
    EXPECT_TRUE(run["failovers"][0].contains(key)) << key;
  }
  for (const char* key : {"hang_ms", "isolate_ms", "load_ms", "lost_iterations"}) {
    EXPECT_TRUE(json["runs"][1]["restarts"][0].contains(key)) << key;
  }
  const Json& row = json["summary"][2];
  for (const char* key : {"strategy", "origin", "n", "overhead_pct", "bound_pct",
                          "failover_pause_ms", "throughput", "latency"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_TRUE(row["overhead_pct"]["ci95"].is_null());
  EXPECT_TRUE(row["failover_pause_ms"]["p95"].is_null());
}

TEST(ResultJsonTest, AddedKeysAreIgnored) {
  Json json = sampleJson();
  json["added"] = {{"anything", 1}};
  json["runs"][0]["failovers_by_colour"] = 3;
  EXPECT_EQ(errorOf(json), "");
}

TEST(ResultJsonTest, AMissingOptionalKeyKeepsItsDefault) {
  const auto result = parseResult(
      R"({"schema": "faultline.result/1", "verdict": "pass",
          "runs": [{"strategy": "s", "arm": "plain", "status": "ok"}]})");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->runs[0].wrong_elements, 0);
  EXPECT_FALSE(result->runs[0].throughput.has_value());
}

TEST(ResultJsonTest, MistakesNameTheirPlace) {
  Json json = sampleJson();
  json["runs"][2]["failovers"][0]["rail"] = "zero";
  EXPECT_EQ(errorOf(json), "runs[2].failovers[0].rail: expected an integer, found a string");

  json = sampleJson();
  json["runs"][0]["status"] = "fine";
  EXPECT_EQ(errorOf(json),
            "runs[0].status: expected one of ok, failed, hung, invalid, found \"fine\"");

  json = sampleJson();
  json["runs"][0].erase("strategy");
  EXPECT_EQ(errorOf(json), "runs[0].strategy: is missing");

  json = sampleJson();
  json["runs"][0]["block"] = 1e30;
  EXPECT_EQ(errorOf(json), "runs[0].block: expected an integer, found a number");

  json = sampleJson();
  json["runs"][0]["block"] = std::int64_t{1} << 40;
  EXPECT_EQ(errorOf(json), "runs[0].block: 1099511627776 is out of range");

  json = sampleJson();
  json["summary"][1]["overhead_pct"]["ci95"] = {1};
  EXPECT_EQ(
      errorOf(json),
      "summary[1].overhead_pct.ci95: expected an array of two numbers [lo, hi], found an array");

  json = sampleJson();
  json["environment"] = Json::array();
  EXPECT_EQ(errorOf(json), "environment: expected an object, found an array");
}

TEST(ResultJsonTest, OtherFilesAreRefused) {
  EXPECT_NE(errorOf(Json::object()).find("not a result"), std::string::npos);
  EXPECT_NE(errorOf({{"schema", "faultline.result/2"}}).find("reads faultline.result/1"),
            std::string::npos);
  EXPECT_NE(errorOf(Json::array()).find("expected an object"), std::string::npos);
  for (const char* text : {"", "{", "nonsense", "{\"schema\": \"faultline.result/1\""}) {
    const auto result = parseResult(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.status().message().find("is not JSON"), std::string::npos);
  }
}

TEST(ResultJsonTest, NumbersThatJsonDoesNotKnowBecomeNull) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].duration_ms = std::nan("");
  result.summary[1].bound_pct = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(toJsonText(result));
  EXPECT_TRUE(json["runs"][0]["duration_ms"].is_null());
  EXPECT_TRUE(json["summary"][1]["bound_pct"].is_null());
  const auto read = fromJson(json);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::isnan(read->runs[0].duration_ms));
}

TEST(ResultJsonTest, HostileTextComesBackAsValidJson) {
  const auto read = parseResult(toJsonText(testing::hostileResult()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_NE(scenarioName(*read).find("</script>"), std::string::npos);
}

TEST(ResultJsonTest, ListsOfNumbersStandOnOneLine) {
  ScenarioResult result;
  result.runs.resize(1);
  result.runs[0].strategy = "a \"b\"";
  result.runs[0].rail_series = {{0, 1, 0, 10, {1, 2, 3}}};
  const std::string text = toJsonText(result);
  EXPECT_NE(text.find("\n   \"strategy\": \"a \\\"b\\\"\",\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\"tx_bytes\": [1,2,3]\n"), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text).dump(), toJson(result).dump()) << "nothing else is changed";
}

}  // namespace
}  // namespace faultline::reports
