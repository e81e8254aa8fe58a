#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "run_fixture.h"

// Schedules from files, from 'faultline schedule show' to the result.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

/// Four ranks, two rails of which node 1 loses one in the middle of iteration 8.
std::string scenarioOf(const std::string& rows) {
  return fmt::format(R"(version: 1
name: written
cluster: {{kind: netns, nodes: 4, rails: 2, rail_rate: 400Mbit}}
workload:
  kind: training
  iterations: 16
  warmup_iterations: 2
  compute: 10ms
  gradient: {{size: 2MiB, buckets: 2, dtype: f32, data: integers}}
strategies: [fault_free, {}]
faults: {}
limits: {{deadline: 60s, give_up: 10s}}
seed: 7
expect: [wrong_elements == 0]
)",
                     rows, portDown("carrier", "300ms"));
}

class WrittenScheduleRunTest : public RunTest {
 protected:
  /// Writes what 'schedule show' prints into a file beside the scenario.
  void write(const std::string& name, const std::vector<std::string>& flags) {
    std::vector<std::string> words{"schedule", "show"};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto shown = testing::runFaultline(words, folder_.path());
    ASSERT_EQ(shown.exit, 0) << shown.err;
    folder_.write(name, shown.out);
  }
};

TEST_F(WrittenScheduleRunTest, RowsOfFilesAreRightAndSurviveAFault) {
  write("ring4.xml",
        {"--algorithm", "ring", "--ranks", "4", "--segments", "2", "--format", "msccl-xml"});
  write("slow1.json", {"--algorithm", "optcc", "--ranks", "4", "--straggler", "1:0.5", "--segments",
                       "4", "--size", "1MiB", "--json", "--max-ops", "-1"});
  const auto others = readFile(FAULTLINE_SOURCE_DIR "/tests/data/fuzz/msccl/fused_ring.xml");
  ASSERT_TRUE(others.ok());
  folder_.write("fused.xml", *others);
  const auto ran =
      run(scenarioOf("hot_repair, {planned: {schedule: ring4.xml}}, {planned: "
                     "{schedule: slow1.json}}, {planned: {schedule: fused.xml, as: "
                     "of_others}}"));
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::ScenarioResult result = this->result();
  for (const char* const name : {"ring4", "slow1", "of_others"}) {
    SCOPED_TRACE(name);
    const reports::Run row = runOf(result, name);
    EXPECT_EQ(row.kind, "planned");
    EXPECT_EQ(row.status, reports::RunStatus::kOk) << row.message;
    EXPECT_EQ(row.wrong_elements, 0);
    // As many as of the ring, each equal to the exact sum.
    EXPECT_EQ(row.checked_elements, runOf(result, "fault_free").checked_elements);
    EXPECT_GE(row.failovers.size(), 1u) << "nothing was repaired";
    EXPECT_FALSE(row.options.contains("content")) << "the scenario has it";
    EXPECT_THAT(ran.out, HasSubstr(name));
  }
  // What ranks send says whose schedule they followed: with optcc for a slow rank 1, that one sends
  // what it must and the others more; in a ring all send the same.
  const auto sent = [&](const std::string& strategy, int node) {
    double bytes = 0;
    for (const reports::RailTotals& rail : runOf(result, strategy).rails) {
      if (rail.node == node) bytes += static_cast<double>(rail.tx_bytes);
    }
    return bytes;
  };
  EXPECT_NEAR(sent("ring4", 0) / sent("ring4", 1), 1, 0.1);
  EXPECT_NEAR(sent("of_others", 0) / sent("of_others", 1), 1, 0.1);
  EXPECT_GT(sent("slow1", 0) / sent("slow1", 1), 1.3);
  const auto page = readFile(out() + "/report.html");
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, HasSubstr("slow1.json"));
}

TEST_F(WrittenScheduleRunTest, TheScenarioOfAResultRunsAgainWithoutTheFile) {
  write("ring4.xml", {"--algorithm", "ring", "--ranks", "4", "--format", "msccl-xml"});
  const auto first = run(scenarioOf("{planned: {schedule: ring4.xml}}"));
  ASSERT_EQ(first.exit, 0) << first.out << first.err;
  std::filesystem::remove(folder_.path() / "ring4.xml");
  const auto text = readFile(out() + "/result.json");
  ASSERT_TRUE(text.ok());
  const auto again = run(nlohmann::json::parse(*text).at("scenario").dump(2));
  ASSERT_EQ(again.exit, 0) << again.out << again.err;
  const reports::Run row = runOf(result(), "ring4");
  EXPECT_EQ(row.wrong_elements, 0);
  EXPECT_GT(row.checked_elements, 0);
}

TEST_F(WrittenScheduleRunTest, AWrongScheduleIsRefusedBeforeAnythingRuns) {
  write("wrong.json", {"--algorithm", "ring", "--ranks", "4", "--size", "64", "--segments", "1",
                       "--json", "--max-ops", "-1"});
  const auto text = readFile(folder_.path() / "wrong.json");
  ASSERT_TRUE(text.ok());
  nlohmann::json wrong = nlohmann::json::parse(*text);
  for (auto& op : wrong["lanes"][1]["ops"]) {
    if (op["kind"] == "recvReduce") op["kind"] = "recv";
  }
  folder_.write("wrong.json", wrong.dump());
  const auto ran = run(scenarioOf("{planned: {schedule: wrong.json}}"));
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("schedule: 'wrong.json': is wrong: rank "));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

}  // namespace
}  // namespace faultline::run
