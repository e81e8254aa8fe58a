#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/schedule_reader.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/written/schedule_json.h"
#include "tests/support/recorded_schedule.h"
#include "tests/support/run_program.h"
#include "tests/unit/scenario/quickstart.h"

// {planned: {schedule: FILE}}: read once, relative to the scenario, and only what is right and
// fits.

namespace faultline::scenario {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string textOf(const schedule::Schedule& made) {
  json all = schedule::headAsJson(made);
  all["lanes"] = json::array();
  for (int rank = 0; rank < made.ranks(); ++rank) {
    for (int lane = 0; lane < made.lanes(); ++lane) {
      all["lanes"].push_back(schedule::laneAsJson(made, rank, lane, -1));
    }
  }
  return all.dump();
}

std::string scheduleText(std::string_view algorithm, const schedule::ScheduleRequest& request) {
  return textOf(**schedule::makeSchedule(algorithm, request));
}

std::string ring(int ranks = 4) {
  return scheduleText("ring", {.ranks = ranks, .elements = 64, .segments = 2});
}

/// Strategies are in line 5.
std::string scenarioOf(const std::string& strategies,
                       const std::string& workload = "{kind: training}",
                       const std::string& more = "") {
  return "version: 1\nname: n\ncluster: {nodes: 4, rails: 2}\nworkload: " + workload +
         "\nstrategies: " + strategies + "\n" + more;
}

class WrittenScheduleTest : public ::testing::Test {
 protected:
  ReadResult read(const std::string& yaml) {
    return readScenarioFile(folder_.write("scenario.yaml", yaml));
  }
  /// Of a scenario in which one thing is wrong.
  std::string mistake(const std::string& yaml) {
    const ReadResult result = read(yaml);
    EXPECT_EQ(result.mistakes.size(), 1u);
    std::string all;
    for (const Mistake& one : result.mistakes) all += one.toString() + "\n";
    return all;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(WrittenScheduleTest, IsReadBesideTheScenarioAndNamesItsRow) {
  folder_.write("two ring.v2.json", ring());
  const ReadResult result =
      read(scenarioOf("[fault_free, {planned: {schedule: two ring.v2.json}}]", "{kind: training}",
                      "expect: [two_ring_v2.overhead_pct.median <= 50]\n"));
  ASSERT_TRUE(result.ok()) << result.mistakes.front().toString();
  const Strategy& row = result.scenario->strategies.at(1);
  EXPECT_EQ(row.name, "two_ring_v2");
  EXPECT_EQ(row.kind(), "planned");
  EXPECT_EQ(row.options.get<std::string>(baseline::kSchedule), "two ring.v2.json");
  EXPECT_EQ(row.options.get<std::string>(baseline::kContent), ring());
}

TEST_F(WrittenScheduleTest, AResultsScenarioCanBeReadAgainWithoutTheFile) {
  const std::string file = folder_.write("ring4.json", ring());
  const ReadResult first =
      read(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}, {planned: {schedule: "
                      "ring4.json, as: again}}]"));
  ASSERT_TRUE(first.ok()) << first.mistakes.front().toString();
  ASSERT_EQ(std::remove(file.c_str()), 0);
  const ReadResult again = readScenario(toJson(*first.scenario).dump(2), "elsewhere/again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *first.scenario);
}

TEST_F(WrittenScheduleTest, AFileThatChangesLaterDoesNotMatter) {
  folder_.write("ring4.json", ring());
  const ReadResult first = read(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}]"));
  ASSERT_TRUE(first.ok());
  folder_.write("ring4.json", "{}");
  EXPECT_EQ(first.scenario->strategies.at(1).options.get<std::string>(baseline::kContent), ring());
  EXPECT_THAT(mistake(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}]")),
              HasSubstr("'ring4.json': ranks: a whole number"));
}

TEST_F(WrittenScheduleTest, RowsNeedNamesOfTheirOwn) {
  folder_.write("ring4.json", ring());
  folder_.write("optcc.json", ring());
  EXPECT_THAT(mistake(scenarioOf("[{planned: {schedule: optcc.json}}, fault_free]")),
              HasSubstr("would be called 'optcc' as its file, and that is the name of a strategy"));
  EXPECT_THAT(mistake(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}, "
                                 "{planned: {schedule: ring4.json}}]")),
              HasSubstr("'ring4' is listed twice"));
  EXPECT_TRUE(read(scenarioOf("[fault_free, {planned: {schedule: optcc.json, as: mine}}]")).ok());
  EXPECT_EQ(rowNameOf("a/b/x y.json"), "x_y");
  EXPECT_EQ(rowNameOf(std::string(100, 'x') + ".xml"), std::string(64, 'x'));
}

TEST_F(WrittenScheduleTest, MistakesSayWhereAndWhatToDo) {
  const auto row = [](const std::string& file) {
    return fmt::format("[fault_free, {{planned: {{schedule: {}}}}}]", file);
  };
  EXPECT_THAT(mistake(scenarioOf("[fault_free, planned]")), HasSubstr("schedule"));
  EXPECT_THAT(mistake(scenarioOf(row("none.json"))), HasSubstr(":5:47: schedule: "));
  folder_.write("words.xml", "what\n");
  EXPECT_THAT(mistake(scenarioOf(row("words.xml"))), HasSubstr("neither MSCCL XML"));
  folder_.write("bytes.xml", "<algo>\n\xff");
  EXPECT_THAT(mistake(scenarioOf(row("bytes.xml"))),
              HasSubstr("'bytes.xml': line 2: byte 0xff is not text"));
  folder_.write("five.json", ring(5));
  EXPECT_THAT(mistake(scenarioOf(row("five.json"))),
              HasSubstr("'five.json': is for 5 ranks, and the cluster has 4"));
  folder_.write("ring4.json", ring());
  EXPECT_THAT(
      mistake(scenarioOf(row("ring4.json"), "{kind: training, gradient: {size: 64B, buckets: 4}}")),
      HasSubstr("has 8 chunks, and a bucket of the gradient has 4 elements"));
  EXPECT_THAT(mistake(scenarioOf(row("ring4.json"),
                                 "{kind: collective, collective: {operations: [all_gather]}}")),
              HasSubstr("is a schedule for all_reduce, and the workload calls all_gather: write "
                        "'operations: [all_reduce]'"));
  EXPECT_THAT(mistake(scenarioOf(row("ring4.json"),
                                 "{kind: collective, collective: {operations: [all_reduce], sizes: "
                                 "[16B, 1MiB]}}")),
              HasSubstr("a call of 16B in f32 has 4 elements"));
  folder_.write("gather.json", scheduleText("ring_all_gather", {.ranks = 4, .elements = 64}));
  EXPECT_THAT(mistake(scenarioOf(row("gather.json"))),
              HasSubstr("is a schedule for all_gather, and the workload calls all_reduce"));
  EXPECT_TRUE(read(scenarioOf(row("gather.json"),
                              "{kind: collective, collective: {operations: [all_gather]}}"))
                  .ok());
  EXPECT_THAT(mistake(scenarioOf("[fault_free, {hot_repair: {content: x}}]")),
              HasSubstr("unknown key 'content'"));
}

/// What the verifier finds is a mistake of the scenario.
TEST_F(WrittenScheduleTest, WrongSchedulesAreRefusedByName) {
  const std::string rows = "[fault_free, {planned: {schedule: wrong.json}}]";
  json wrong = json::parse(ring());
  for (json& lane : wrong["lanes"]) {
    for (json& op : lane["ops"]) {
      if (lane["rank"] == 2 && lane["lane"] == 1 && op["kind"] == "recvReduce") op["kind"] = "recv";
    }
  }
  folder_.write("wrong.json", wrong.dump());
  EXPECT_THAT(mistake(scenarioOf(rows)), HasSubstr("schedule: 'wrong.json': is wrong: rank "));
  // Everybody receives first.
  wrong = json::parse(ring());
  for (json& lane : wrong["lanes"]) {
    for (json& op : lane["ops"]) op["waits"] = json::array();
    auto& ops = lane["ops"];
    std::stable_partition(ops.begin(), ops.end(),
                          [](const json& op) { return op["kind"] != "send"; });
    json::size_type last = 0;
    while (last < ops.size() && ops[last]["kind"] != "send") ++last;
    ops[last]["waits"] = {{{"lane", lane["lane"]}, {"op", last - 1}, {"count", 1}}};
  }
  folder_.write("wrong.json", wrong.dump());
  EXPECT_THAT(mistake(scenarioOf(rows)), HasSubstr("deadlock"));
}

/// A Broadcast of two chunks to four ranks. Each receives the first one where the second belongs,
/// copies it to its place, and receives the second: right as long as both are equally large.
std::string broadcastThroughTheOtherChunk() {
  constexpr int kReceivers = 3;
  json all{{"algorithm", "moved"},
           {"collective", "broadcast"},
           {"ranks", 1 + kReceivers},
           {"elements", 2},
           {"root", 0},
           {"lanes", json::array()}};
  for (int rank = 0; rank <= kReceivers; ++rank) {
    for (int lane = 0; lane < kReceivers; ++lane) {
      json ops = json::array();
      const auto waitsFor = [&](int op) {
        return json::array({{{"lane", lane}, {"op", op}, {"count", 1}}});
      };
      if (rank == 0) {
        for (int chunk = 0; chunk < 2; ++chunk) {
          ops.push_back({{"kind", "send"}, {"peer", lane + 1}, {"offset", chunk}, {"count", 1}});
        }
      } else if (rank == lane + 1) {
        ops.push_back({{"kind", "recv"}, {"peer", 0}, {"offset", 1}, {"count", 1}});
        ops.push_back({{"kind", "copy"},
                       {"offset", 0},
                       {"source_offset", 1},
                       {"count", 1},
                       {"waits", waitsFor(0)}});
        ops.push_back(
            {{"kind", "recv"}, {"peer", 0}, {"offset", 1}, {"count", 1}, {"waits", waitsFor(1)}});
      }
      all["lanes"].push_back({{"rank", rank}, {"lane", lane}, {"ops", std::move(ops)}});
    }
  }
  return all.dump();
}

std::string sweepOf(std::string_view operation, std::string_view sizes) {
  return fmt::format("{{kind: collective, collective: {{operations: [{}], sizes: [{}]}}}}",
                     operation, sizes);
}

TEST_F(WrittenScheduleTest, IsProvedForEachSizeWithUnequalChunks) {
  folder_.write("moved.json", broadcastThroughTheOtherChunk());
  const std::string rows = "[fault_free, {planned: {schedule: moved.json}}]";
  const ReadResult equal = read(scenarioOf(rows, sweepOf("broadcast", "8B, 24B, 1MiB")));
  EXPECT_TRUE(equal.ok()) << equal.mistakes.front().toString();
  const std::string wrong = mistake(scenarioOf(rows, sweepOf("broadcast", "8B, 12B")));
  EXPECT_THAT(wrong, HasSubstr("'moved.json': is wrong where a call of 12B in f32 has 3 elements"));
  EXPECT_THAT(wrong, HasSubstr("equal where a call has a multiple of 2 elements"));
  // Who moves nothing to another place may have unequal chunks.
  folder_.write("ring4.json", ring());
  const ReadResult unequal = read(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}]",
                                             sweepOf("all_reduce", "36B, 1020B")));
  EXPECT_TRUE(unequal.ok()) << unequal.mistakes.front().toString();
}

TEST_F(WrittenScheduleTest, SizesThatNeedAProofAreBounded) {
  folder_.write("ring4.json", ring());
  const std::string rows = "[fault_free, {planned: {schedule: ring4.json}}]";
  const auto sizes = [](int many, int step) {
    std::string list;
    for (int i = 0; i < many; ++i) list += fmt::format("{}{}B", i == 0 ? "" : ", ", 36 + step * i);
    return list;
  };
  EXPECT_TRUE(read(scenarioOf(rows, sweepOf("all_reduce", sizes(64, 32)))).ok());
  EXPECT_THAT(mistake(scenarioOf(rows, sweepOf("all_reduce", sizes(65, 32)))),
              HasSubstr("more than 64 sizes that are no multiple of its 8 chunks"));
}

TEST_F(WrittenScheduleTest, BlocksThatAreNoWholeChunksAreRefused) {
  folder_.write("gather.json", scheduleText("ring_all_gather", {.ranks = 4, .elements = 6}));
  EXPECT_THAT(mistake(scenarioOf("[fault_free, {planned: {schedule: gather.json}}]",
                                 sweepOf("all_gather", "48B"))),
              HasSubstr("6 chunks of the data, which 4 ranks cannot share evenly"));
}

TEST_F(WrittenScheduleTest, TextsOfAllRowsTogetherAreBounded) {
  folder_.write("ring4.json", ring() + std::string(kMostScheduleText / 2, ' '));
  EXPECT_TRUE(read(scenarioOf("[{planned: {schedule: ring4.json}}]")).ok());
  EXPECT_THAT(mistake(scenarioOf("[{planned: {schedule: ring4.json}}, {planned: {schedule: "
                                 "ring4.json, as: b}}]")),
              HasSubstr("with it the schedules of this scenario have"));
  // Whatever is read can be read again from a result.
  folder_.write("quotes.json", ring() + std::string(kMostScheduleText - ring().size(), '\n'));
  const ReadResult longest = read(scenarioOf("[{planned: {schedule: quotes.json}}]"));
  ASSERT_TRUE(longest.ok()) << longest.mistakes.front().toString();
  EXPECT_TRUE(readScenario(toJson(*longest.scenario).dump(2), "again.yaml").ok());
  folder_.write("long.json", ring() + std::string(kMostScheduleText, ' '));
  EXPECT_THAT(mistake(scenarioOf("[{planned: {schedule: long.json}}]")), HasSubstr("long.json"));
}

TEST_F(WrittenScheduleTest, AProofThatTakesTooMuchIsRefused) {
  // All data move on by one element, and so does each cut of them: nobody could wait for the proof.
  constexpr std::int64_t kElements = std::int64_t{1} << 30;
  schedule::RecordedSchedule creeping(4, 1, kElements);
  for (int rank = 0; rank < 4; ++rank) {
    creeping.at(rank, 0) = {schedule::Op{.kind = schedule::OpKind::kSend,
                                         .peer = (rank + 1) % 4,
                                         .piece = {0, kElements - 1},
                                         .source = {}},
                            schedule::Op{.kind = schedule::OpKind::kRecv,
                                         .peer = (rank + 3) % 4,
                                         .piece = {1, kElements - 1},
                                         .source = {}}};
  }
  folder_.write("creeping.json", textOf(creeping));
  const TimePoint begin = now();
  EXPECT_THAT(
      mistake(scenarioOf("[fault_free, {planned: {schedule: creeping.json}}]")),
      HasSubstr("'creeping.json': its proof takes too much: more than 8589 million steps, in "
                "the cutting of its data into pieces. Write it with fewer operations"));
  EXPECT_LT(now() - begin, 2min);
}

TEST_F(WrittenScheduleTest, OnlyRanksThatAllReduceTogetherCanFollowIt) {
  folder_.write("ring4.json", ring());
  EXPECT_THAT(
      mistake(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}]",
                         "{kind: inference, model: llama3.1-8b, device: a100, parallel: {tensor: "
                         "4}, scale: 5000, inference: {qps: [10], requests: 40}}")),
      HasSubstr("a server reduces among the ranks of each copy"));
  const ReadResult programs = read(scenarioOf("[fault_free, {planned: {schedule: ring4.json}}]",
                                              "{kind: command, command: {run: [true]}}"));
  ASSERT_EQ(programs.mistakes.size(), 2u);  // the row, and its option
  EXPECT_THAT(programs.mistakes[0].message, HasSubstr("planned needs ranks that are ours"));
}

}  // namespace
}  // namespace faultline::scenario
