#include "harness/scenario/schema.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/metric_table.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

TEST(SchemaTest, CheckedInFileIsWhatTheTablesSay) {
  // Both are long: git shows the difference.
  EXPECT_TRUE(fileText("scenarios/schema.json") == scenarioSchema().dump(2) + "\n")
      << "the tables have changed: write it again with\n"
         "  build/faultline validate --schema > scenarios/schema.json";
}

TEST(SchemaTest, DocumentationIsWhatTheTablesSay) {
  const std::string page = fileText("docs/scenario.md");
  const std::string opening = "```text\n";
  const std::size_t begin = page.find(opening);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```\n", begin + opening.size());
  ASSERT_NE(end, std::string::npos);
  const std::size_t length = end - begin - opening.size();
  EXPECT_TRUE(page.substr(begin + opening.size(), length) == describeScenario())
      << "the tables have changed: put the output of 'build/faultline describe scenario' into "
         "docs/scenario.md; docs/extending.md has the command";
}

TEST(SchemaTest, KnowsEveryFaultStrategyAndParameter) {
  const auto schema = scenarioSchema();
  const auto& faults = schema["properties"]["faults"]["items"]["oneOf"];
  ASSERT_EQ(faults.size(), injector::faultKinds().size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const auto& kind = injector::faultKinds()[i];
    EXPECT_EQ(faults[i]["properties"]["kind"]["const"], kind.name);
    for (const auto& spec : kind.parameters) {
      EXPECT_TRUE(faults[i]["properties"].contains(std::string(spec.name))) << spec.name;
    }
  }
  // One branch for bare names, one per strategy with options.
  EXPECT_EQ(schema["properties"]["strategies"]["items"]["oneOf"].size(),
            baseline::strategies().size() + 1);
  for (const Field& field : scenarioTable().fields) {
    EXPECT_TRUE(schema["properties"].contains(std::string(field.spec.name))) << field.spec.name;
  }
}

TEST(SchemaTest, PatternsAcceptWhatTheReaderAccepts) {
  const auto schema = scenarioSchema();
  const auto pattern = [&](const char* record, const char* key) {
    return std::regex(
        schema["properties"][record]["properties"][key]["pattern"].get<std::string>());
  };
  const std::regex duration = pattern("limits", "deadline");
  for (const char* text : {"20ms", "1.5s", "2min", ".5s", "20", "ms", "20 ms", "-1s", "20msx"}) {
    EXPECT_EQ(std::regex_match(text, duration), parseDuration(text).ok()) << text;
  }
  const std::regex rate = pattern("cluster", "rail_rate");
  for (const char* text : {"400Mbit", "1.5Gbit", "400", "400MiB"}) {
    EXPECT_EQ(std::regex_match(text, rate), parseRate(text).ok()) << text;
  }
}

TEST(TableTest, DefaultsAreValidAndEverythingIsDocumented) {
  const auto check = [](const auto& self, const Record& record) -> void {
    for (const Field& field : record.fields) {
      EXPECT_FALSE(field.spec.meaning.empty()) << field.spec.name;
      if (field.shape == Shape::kRecord) self(self, *field.record);
      if (field.spec.defaultText.empty()) continue;
      const auto value = parseParameter(field.spec, field.spec.defaultText);
      ASSERT_TRUE(value.ok()) << value.status().message();
      EXPECT_EQ(*parseParameter(field.spec, formatParameter(*value)), *value);
    }
  };
  check(check, scenarioTable());
  check(check, faultTable());
}

TEST(TableTest, AlgorithmsOfPlansAreThoseThatThereAre) {
  const Metric* const metric = findMetric("plans.algorithm", /*of_strategy=*/true);
  ASSERT_NE(metric, nullptr);
  std::vector<std::string_view> names;
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    if (algorithm.collective == schedule::Collective::kAllReduce) names.push_back(algorithm.name);
  }
  EXPECT_EQ(std::vector(metric->names.begin(), metric->names.end()), names);
}

TEST(TableTest, PageFitsTheTerminal) {
  std::istringstream lines(describeScenario());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace faultline::scenario
