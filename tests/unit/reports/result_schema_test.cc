#include "reports/result_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/input_file.h"
#include "reports/result_json.h"
#include "support/json_schema.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::schemaViolations;

Json schemaFile() {
  return Json::parse(*readFile(FAULTLINE_SOURCE_DIR "/reports/result.schema.json"));
}

TEST(ResultSchemaTest, CheckedInFileIsWhatTheTablesSay) {
  EXPECT_EQ(schemaFile(), resultSchema())
      << "the model has changed: write it again with\n"
         "  build/faultline report --schema > reports/result.schema.json";
}

TEST(ResultSchemaTest, WhatTheWriterWritesFits) {
  ScenarioResult empty;
  ScenarioResult sample = testing::sampleResult();
  sample.noise = Noise{"again", 12, 1.5, 0.5, std::nullopt, ""};
  sample.summary[1].overhead_pct->ci95 = Interval{1, 2};
  sample.summary[1].latency = Latency{};
  sample.runs[0].duration_ms = std::nan("");
  sample.runs[0].errors = {{1, 2.5, "gone"}};
  for (const ScenarioResult& result : {empty, sample, testing::hostileResult()}) {
    // As a text, as others read it.
    EXPECT_THAT(schemaViolations(schemaFile(), Json::parse(toJsonText(result))), IsEmpty());
  }
}

TEST(ResultSchemaTest, WhatTheReaderRefusesDoesNotFit) {
  const Json good = toJson(testing::sampleResult());
  const auto broken = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    EXPECT_FALSE(fromJson(json).ok()) << pointer;
    return schemaViolations(resultSchema(), json);
  };
  EXPECT_THAT(broken("/schema", "faultline.result/2"), Contains(HasSubstr(".schema: is not")));
  EXPECT_THAT(broken("/runs/0/arm", "both"), Contains(HasSubstr(".runs[0].arm: is none of")));
  EXPECT_THAT(broken("/runs/3/failovers/0/rail", "0"), Contains(HasSubstr("failovers[0].rail")));
  EXPECT_THAT(broken("/summary/1/overhead_pct", 3), Contains(HasSubstr("overhead_pct")));
  EXPECT_THAT(broken("/seed", -1), Contains(HasSubstr("below 0")));
  EXPECT_THAT(broken("/runs/0/counters/x", "many"), Contains(HasSubstr("counters.x")));
  Json without = good;
  without["runs"][0].erase("status");
  EXPECT_THAT(schemaViolations(resultSchema(), without), Contains(HasSubstr("lacks \"status\"")));
}

}  // namespace
}  // namespace faultline::reports
