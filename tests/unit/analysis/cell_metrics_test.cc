#include "harness/analysis/cell_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/expectations.h"
#include "harness/scenario/reader.h"

// What expectations say about the cells of a sweep.

namespace faultline::run {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kSmall = 1024;

reports::CollectiveRow cellRow(std::int64_t bytes, double ms) {
  reports::CollectiveRow made;
  made.operation = "all_reduce";
  made.size_bytes = bytes;
  made.p50_ms = ms;
  made.send = made.receive = {1, 0.5};
  made.time_over_bound = ms / 100;
  made.latency_only = bytes < kLargeCell;
  return made;
}

reports::Run cellsRun(const std::string& strategy, double small, double large) {
  reports::Run made;
  made.strategy = strategy;
  made.faulted = true;
  made.collectives = {cellRow(kSmall, small), cellRow(kLargeCell, large)};
  return made;
}

class CellMetricsTest : public ::testing::Test {
 protected:
  CellMetricsTest() {
    result_.runs = {cellsRun("balance", 2, 200), cellsRun("optcc", 4, 104),
                    cellsRun("auto", 2, 106),    cellsRun("balance", 2, 210),
                    cellsRun("optcc", 5, 108),   cellsRun("auto", 2.2, 102)};
  }
  std::vector<double> overBest(const std::string& strategy, Cells which = Cells::kAll) const {
    return cellsOverBest(scopeOf(result_, strategy), which);
  }
  std::vector<double> overBound(const std::string& strategy) const {
    return cellRatios(scopeOf(result_, strategy), Cells::kLarge,
                      &reports::CollectiveRow::time_over_bound);
  }

  reports::ScenarioResult result_;
};

TEST_F(CellMetricsTest, TheBestIsThatOfTheOthersWhoseAlgorithmIsFixed) {
  EXPECT_THAT(overBest("auto"), ElementsAre(DoubleNear(1.05, 1e-9), DoubleNear(104.0 / 106, 1e-9)))
      << "medians of the runs: 2.1 against balance's 2, 104 against optcc's 106";
  EXPECT_THAT(overBest("optcc"), ElementsAre(DoubleNear(2.25, 1e-9), DoubleNear(106.0 / 205, 1e-9)))
      << "auto is no rival";
  EXPECT_THAT(overBest("auto", Cells::kLarge), ElementsAre(DoubleNear(104.0 / 106, 1e-9)));
}

TEST_F(CellMetricsTest, OfAllReduceAloneOthersCellsAreNotInTheWay) {
  for (reports::Run& run : result_.runs) {
    reports::CollectiveRow gather = run.collectives[1];
    gather.operation = "all_gather";
    gather.p50_ms = 100;
    run.collectives.push_back(gather);
  }
  EXPECT_THAT(overBest("optcc", Cells::kLarge), SizeIs(2));
  EXPECT_THAT(overBest("optcc", Cells::kLargeAllReduce),
              ElementsAre(DoubleNear(106.0 / 205, 1e-9)));
}

TEST_F(CellMetricsTest, RivalsMetTheSameFaultsWithTheSamePorts) {
  reports::Run reference = cellsRun("fault_free", 1, 50);
  reference.faulted = false;
  result_.runs.push_back(reference);
  reports::Run hot = cellsRun("hot_repair", 1, 50);
  hot.collectives[0].send = {1, 1};
  hot.collectives[1].send.clear();  // they changed meanwhile
  result_.runs.push_back(hot);
  EXPECT_THAT(overBest("auto", Cells::kLarge), ElementsAre(DoubleNear(104.0 / 106, 1e-9)));
  std::erase_if(result_.runs, [](const auto& one) {
    return one.strategy == "balance" || one.strategy == "optcc";
  });
  EXPECT_THAT(overBest("auto"), IsEmpty()) << "nobody is left to be compared with";
}

TEST_F(CellMetricsTest, ACallThatMetAFaultHasNoRivalInOneThatDidNot) {
  for (reports::Run& run : result_.runs) {
    if (run.strategy == "auto") run.collectives[1].struck = 1;
  }
  EXPECT_THAT(overBest("auto"), IsEmpty());
  for (reports::Run& run : result_.runs) run.collectives[1].struck = 1;
  EXPECT_THAT(overBest("auto"), SizeIs(2));
}

TEST_F(CellMetricsTest, RatiosAreMediansAndACellWithoutOneIsNotPassedOver) {
  EXPECT_THAT(overBound("optcc"), ElementsAre(DoubleNear(1.06, 1e-9))) << "small ones have none";
  result_.runs[4].collectives[1].time_over_bound.reset();
  EXPECT_THAT(overBound("optcc"), IsEmpty());
}

TEST_F(CellMetricsTest, WhatIsKeptIsOfFaultFreeAndACellThatItDidNotRunIsNotPassedOver) {
  const auto kept = [&] { return cellsKept(scopeOf(result_, "optcc"), Cells::kLarge); };
  EXPECT_THAT(kept(), IsEmpty()) << "nothing to compare with";
  result_.runs.push_back(cellsRun("fault_free", 1, 80));
  result_.runs.push_back(cellsRun("fault_free", 1, 100));
  for (reports::Run* run : {&result_.runs[6], &result_.runs[7]}) run->faulted = false;
  EXPECT_THAT(kept(), ElementsAre(DoubleNear(100 * 90.0 / 106, 1e-9)));
  EXPECT_THAT(cellsKept(scopeOf(result_, "optcc"), Cells::kAll), SizeIs(1)) << "small: latency";
  reports::CollectiveRow more = cellRow(2 * kLargeCell, 200);
  result_.runs[1].collectives.push_back(more);
  EXPECT_THAT(kept(), IsEmpty()) << "fault_free has no such cell";
}

TEST_F(CellMetricsTest, WhatIsKeptIsOfTheRowFaultFreeAlone) {
  // A second row and a drift check are fault-free runs, too, and may be the first.
  for (const auto& [row, ms] :
       {std::pair{"fault_free", 90.0}, std::pair{"drift_check", 50.0}, std::pair{"again", 60.0}}) {
    reports::Run run = cellsRun(row, 1, ms);
    run.kind = "fault_free";
    run.faulted = false;
    result_.runs.insert(result_.runs.begin(), run);
  }
  const auto kept = [&](const std::string& row) {
    return cellsKept(scopeOf(result_, row), Cells::kLarge);
  };
  EXPECT_THAT(kept("optcc"), ElementsAre(DoubleNear(100 * 90.0 / 106, 1e-9)));
  EXPECT_THAT(kept("again"), ElementsAre(DoubleNear(100 * 90.0 / 60, 1e-9)));
  std::erase_if(result_.runs, [](const auto& run) { return run.strategy == "fault_free"; });
  EXPECT_THAT(kept("optcc"), IsEmpty()) << "nothing to compare with";
}

TEST_F(CellMetricsTest, MoreIsNotKeptThanTheBoundLetsThrough) {
  result_.runs.push_back(cellsRun("fault_free", 1, 53));
  result_.runs.back().faulted = false;
  const auto tooMuch = [&] { return cellKeptTooMuch(scopeOf(result_, "optcc")); };
  EXPECT_THAT(tooMuch(), IsEmpty()) << "no least";
  for (reports::Run& run : result_.runs) run.collectives[1].least = 2;
  EXPECT_THAT(tooMuch(), IsEmpty()) << "53 of 106";
  result_.runs.back().collectives[1].p50_ms = 54;
  EXPECT_THAT(tooMuch(), HasSubstr("kept 50.9 % of fault_free, of 50.0 %"));
}

TEST_F(CellMetricsTest, AMisMeasuredCellMakesExpectationsOfItVoid) {
  const auto read = scenario::readScenario(
      "version: 1\nname: s\ncluster: {nodes: 2}\n"
      "workload: {kind: collective, collective: {sizes: [1KiB, 8MiB]}}\n"
      "strategies: [balance, optcc, auto]\n"
      "expect: ['optcc.cells.large.time_over_bound <= 1.07', 'auto.cells.time_over_best <= 1.06',\n"
      "  'balance.cells.large.time_over_bound <= 3', 'optcc.cells.time_over_best < 1']\n",
      "s");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  for (reports::Run& run : result_.runs) run.faulted = false;
  auto lines = evaluateExpectations(*read.scenario, result_);
  EXPECT_TRUE(lines[0].pass && lines[1].pass && lines[2].pass) << lines[0].message;
  EXPECT_FALSE(lines[3].pass);
  EXPECT_EQ(lines[3].value, 2.25);
  EXPECT_FALSE(lines[3].is_void);

  result_.runs[1].collectives[1].mis_measured = true;  // of optcc
  lines = evaluateExpectations(*read.scenario, result_);
  EXPECT_TRUE(lines[0].is_void);
  EXPECT_THAT(lines[0].message, HasSubstr("all_reduce of 8388608 bytes of optcc, block 1"));
  EXPECT_TRUE(lines[1].is_void) << "it may be compared with just that one";
  EXPECT_FALSE(lines[2].is_void) << "balance's own are in order";
}

}  // namespace
}  // namespace faultline::run
