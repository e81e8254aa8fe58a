#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"

// The scenarios of the repository.

namespace faultline::scenario {
namespace {

namespace fs = std::filesystem;

const fs::path kScenarios = fs::path(FAULTLINE_SOURCE_DIR) / "scenarios";

TEST(ScenarioFilesTest, AreWithoutMistakes) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kScenarios)) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const ReadResult read = readScenarioFile(entry.path().string());
    ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
    // As a result has it, so that a run can be made again from its result alone.
    const ReadResult again =
        readScenario(toJson(*read.scenario).dump(), "result of " + read.scenario->name);
    ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
    EXPECT_EQ(*again.scenario, *read.scenario) << entry.path();
  }
  EXPECT_GT(files, 0);
}

TEST(ScenarioFilesTest, NightsCanBeHeldAgainstEachOther) {
  constexpr int kValuesOfASide = 5;  // compare calls fewer of them too few
  std::set<std::string, std::less<>> kinds;
  for (const fs::directory_entry& entry : fs::directory_iterator(kScenarios / "nightly")) {
    const ReadResult read = readScenarioFile(entry.path().string());
    ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
    EXPECT_GE(read.scenario->repeat, kValuesOfASide) << entry.path();
    EXPECT_FALSE(read.scenario->expect.empty()) << entry.path();
    kinds.insert(std::string(read.scenario->workload.kind->name));
  }
  for (const std::string_view kind : {"training", "inference", "collective"}) {
    EXPECT_TRUE(kinds.contains(kind)) << "no scenario of kind " << kind;
  }
}

TEST(ScenarioFilesTest, NightsRunFourStrategiesOrMoreFaultFreeAmongThemAndModelledOnesNot) {
  constexpr std::size_t kLeastStrategies = 4;
  for (const fs::directory_entry& entry : fs::directory_iterator(kScenarios / "nightly")) {
    const ReadResult read = readScenarioFile(entry.path().string());
    ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
    std::set<std::string, std::less<>> run;  // two rows of one strategy count once
    for (const Strategy& strategy : read.scenario->strategies) {
      if (!baseline::isModelled(strategy.kind())) run.insert(strategy.kind());
    }
    EXPECT_TRUE(run.contains(baseline::kReferenceRow)) << entry.path();
    EXPECT_GE(run.size(), kLeastStrategies) << entry.path();
  }
}

}  // namespace
}  // namespace faultline::scenario
