#include "harness/analysis/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/metric_scope.h"
#include "support/sample_result.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using scenario::MetricType;
using scenario::MetricValue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Owner = scenario::Metric::Owner;

std::size_t indexOf(MetricType type) {
  if (type == MetricType::kName || type == MetricType::kText)
    return MetricValue(std::string()).index();
  if (type == MetricType::kFlag) return MetricValue(true).index();
  if (type == MetricType::kInterval) return MetricValue(scenario::ValueRange{}).index();
  return MetricValue(0.0).index();
}

TEST(MetricsTest, LatenciesAreComparedBelowTheKneeOfFaultFree) {
  reports::ScenarioResult result;
  for (const char* strategy : {"fault_free", "hot_repair"}) {
    reports::Summary& row = result.summary.emplace_back();
    row.strategy = strategy;
    for (const double qps : {1.0, 2.0, 4.0}) {
      reports::RateRow& rate = row.rates.emplace_back();
      rate.qps = qps;
      rate.ttft_overhead_pct = reports::Overhead{.median = 10 * qps};
    }
  }
  const auto costs = [&] { return metricsOf(result)("hot_repair", "ttft_overhead_pct"); };
  EXPECT_THAT(costs(), ElementsAre(MetricValue(10.0), MetricValue(20.0), MetricValue(40.0)));
  result.summary[1].knee_qps = 2;
  EXPECT_THAT(costs(), SizeIs(3));
  result.summary[0].knee_qps = 4;
  EXPECT_THAT(costs(), ElementsAre(MetricValue(10.0), MetricValue(20.0)));
}

TEST(MetricsTest, TheUpperEndOfALatencysCostIsThatOfEveryRateOrOfNone) {
  reports::ScenarioResult result;
  reports::Summary& row = result.summary.emplace_back();
  row.strategy = "hot_repair";
  row.rates.resize(2);
  for (reports::RateRow& rate : row.rates) {
    rate.tpot_overhead_pct = reports::Overhead{1, reports::Interval{0.5, 2}, 2.5, true, 10};
  }
  const auto costs = [&](const char* which) {
    return metricsOf(result)("hot_repair", std::string("tpot_overhead_pct") + which);
  };
  EXPECT_THAT(costs(".ci95.hi"), ElementsAre(MetricValue(2.0), MetricValue(2.0)));
  EXPECT_THAT(costs(".at_most"), ElementsAre(MetricValue(2.5), MetricValue(2.5)));
  row.rates[1].tpot_overhead_pct->at_most.reset();
  EXPECT_THAT(costs(".at_most"), IsEmpty()) << "what is not known of a rate holds for none";
  row.rates[0].tpot_overhead_pct.reset();
  EXPECT_THAT(costs(""), IsEmpty());
}

TEST(MetricsTest, EveryMetricOfTheTableHasValuesOfItsType) {
  reports::ScenarioResult rich = testing::hugeResult(10, 30);
  for (reports::Run& run : rich.runs) run.errors = {{.rank = 0, .at_ms = 9e6, .message = "gone"}};
  for (reports::Run& run : rich.runs) run.resources.push_back({.rank = 0, .sent_bytes = 1 << 20});
  for (reports::Run& run : rich.runs) run.shrinks.emplace_back().fault_ms = 1;
  for (reports::Run& run : rich.runs) run.rebuilds.emplace_back().fault_ms = 1;
  for (reports::Run& run : rich.runs) run.exclusions.emplace_back().rank = 1;
  for (reports::Run& run : rich.runs) {
    run.plans.emplace_back().algorithm = "ring";
    run.processes.emplace_back();
    run.metrics["<name>"].value = 5;
    reports::CollectiveRow& row = run.collectives.emplace_back();
    row.operation = "all_reduce";
    row.size_bytes = 8 << 20;
    row.p50_ms = 100;
    row.time_over_bound = row.time_over_ideal = row.time_over_model = 1.5;
    row.time_over_formula = 1.5;
  }
  for (reports::Run& run : rich.runs) {
    if (run.failovers.empty()) continue;
    reports::AppliedFault& fault = run.faults.emplace_back();
    fault.target.node = run.failovers.front().peer;
    fault.target.rail = 0;
    fault.end_ms = run.failovers.front().resumed_ms;
  }
  rich.summary = summarise(sampleScenario(), rich.runs, 7);
  for (reports::Summary& row : rich.summary) {
    if (row.overhead_pct)
      row.overhead_pct = row.exposed_overhead_pct =
          reports::Overhead{1, reports::Interval{0.5, 2}, 2, true};
    const reports::Percentiles times{.p50 = 1, .p95 = 2, .p99 = 3, .max = 4, .n = 300};
    row.latency = reports::Latency{times, times, times};
    reports::RateRow& rate = row.rates.emplace_back();
    rate.ttft_overhead_pct = rate.tpot_overhead_pct = rate.ttft_p95_overhead_pct =
        rate.tpot_p95_overhead_pct = reports::Overhead{5, reports::Interval{4, 6}, 6, true};
    row.knee_qps = 6;
    row.after_pct = reports::AfterSpread{.median = 99, .min = 97, .n = 10};
    row.back_to_95_pct_ms = reports::BackSpread{.median = 20, .max = 30, .n = 10, .never = 0};
  }
  rich.noise.emplace().drift_pct = 0.1;
  const auto lookup = metricsOf(rich);
  for (const scenario::Metric& metric : scenario::metricTable()) {
    const std::string path(metric.path);
    std::vector<std::string> owners;
    if (metric.owner != Owner::kStrategy) owners.push_back("");
    // No strategy has everything: one fails over, the other restarts.
    if (metric.owner != Owner::kGlobal) {
      owners.push_back(path.starts_with("restarts.") ? "fail_stop" : "hot_repair");
    }
    for (const std::string& owner : owners) {
      const auto values = lookup(owner, path);
      EXPECT_FALSE(values.empty()) << owner << " " << path;
      for (const MetricValue& value : values) {
        EXPECT_EQ(value.index(), indexOf(metric.type)) << owner << " " << path;
      }
    }
  }
  EXPECT_THAT(lookup("hot_repair", "charm"), IsEmpty());
}

TEST(MetricsTest, ErrorsAreCountedComparedAndTimed) {
  auto dead = faultedRun("hot_repair", 0, 8);
  ASSERT_FALSE(dead.faults.empty());
  const double fault = dead.faults.back().start_ms;
  dead.errors = {{0, fault + 100, "rank 0: rank 1 is gone"},
                 {2, fault + 120, "rank 0: rank 1 is gone"}};
  auto torn = dead;
  torn.errors[1].message = "rank 2: rank 1 is gone";
  const reports::ScenarioResult result = summarised({dead, torn});
  const auto lookup = metricsOf(result);
  EXPECT_THAT(lookup("hot_repair", "errors.count"),
              ElementsAre(MetricValue(2.0), MetricValue(2.0)));
  EXPECT_THAT(lookup("hot_repair", "errors.distinct"),
              ElementsAre(MetricValue(1.0), MetricValue(2.0)));
  EXPECT_THAT(
      lookup("hot_repair", "errors.after_ms"),
      ElementsAre(MetricValue(100.0), MetricValue(120.0), MetricValue(100.0), MetricValue(120.0)));
}

TEST(MetricsTest, TheRanksThatErrorsNameWithoutTheOnesThatSayThem) {
  auto dead = faultedRun("hot_repair", 0, 8);
  const auto named = [&](const std::string& message) {
    dead.errors = {{0, 0, message}};
    const reports::ScenarioResult result = summarised({dead});
    return metricsOf(result)("hot_repair", "errors.names");
  };
  EXPECT_THAT(named("rank 0: the process of rank 1 is gone: its rails have ended"),
              ElementsAre(MetricValue(1.0)));
  EXPECT_THAT(named("rank 1 has not been heard on any path for 3 s (rail 0: path, rail 1: path)"),
              ElementsAre(MetricValue(1.0)));
  EXPECT_THAT(named("rank 0: rail 1 to rank 12 has made no progress, unlike rank 3"),
              ElementsAre(MetricValue(12.0), MetricValue(3.0)));
  EXPECT_THAT(named("rank 2: out of memory"), ElementsAre(MetricValue(-1.0)));
  EXPECT_THAT(named("rank"), ElementsAre(MetricValue(-1.0)));
}

TEST(MetricsTest, ValuesPerRunEventAndSummary) {
  auto hot = faultedRun("hot_repair", 0, 8);
  hot.wrong_elements = 3;
  hot.digest = "other";
  hot.iterations.push_back({9, 800, 95});  // done twice
  reports::Failover failover;
  failover.rail = 1;
  failover.cause = "remote_nic";
  failover.where = "remote";
  failover.dead_direction = "both";
  failover.verdict = "told_by_peer";
  failover.fault_ms = 100;
  failover.detected_ms = 104;
  failover.pause_ms = 12.5;
  failover.resent_bytes = 77;
  failover.duplicate_bytes = 5;
  hot.failovers = {failover, failover};
  hot.failovers[1].detected_ms = 108;
  hot.failovers[1].pause_ms = 14.5;
  hot.failbacks.resize(3);
  hot.degradations.resize(2);
  reports::Restart restart;
  restart.hang_ms = 601;
  restart.isolate_ms = 900;
  restart.load_ms = 45;
  restart.lost_iterations = 4;
  hot.restarts = {restart};
  hot.resources = {{0, 1000, 1500, 2000, 30, 29, 32}, {1, 500, 400, 500, 30, 30, 30}};
  const auto result =
      summarised({sampleRun("fault_free", 0, 10), hot, faultedRun("hot_repair", 1, 6)});
  const auto lookup = metricsOf(result);
  const auto numbers = [&](const char* metric, const char* strategy = "hot_repair") {
    std::vector<double> values;
    for (const auto& value : lookup(strategy, metric)) values.push_back(std::get<double>(value));
    return values;
  };
  EXPECT_THAT(numbers("wrong_elements"), ElementsAre(3, 0));
  EXPECT_THAT(numbers("wrong_elements", ""), ElementsAre(0, 3, 0));
  EXPECT_THAT(numbers("checked_elements"), ElementsAre(1000, 1000));
  EXPECT_THAT(numbers("duration"), ElementsAre(735, 735));
  EXPECT_THAT(numbers("duration", ""), ElementsAre(5000));
  EXPECT_THAT(numbers("runs.count"), ElementsAre(2));
  EXPECT_THAT(numbers("runs.count", ""), ElementsAre(3));
  EXPECT_THAT(numbers("iterations.count"), ElementsAre(10, 10)) << "repeated ones once";
  EXPECT_THAT(numbers("iteration_ms.p50"), ElementsAre(60));
  EXPECT_THAT(numbers("iteration_ms.max"), ElementsAre(95));
  EXPECT_THAT(numbers("throughput.median"), ElementsAre(7));
  EXPECT_THAT(numbers("overhead_pct.median"), ElementsAre(::testing::DoubleNear(25, 1e-9)));
  EXPECT_THAT(numbers("overhead_pct.ci95.lo"), IsEmpty());
  EXPECT_THAT(numbers("failovers.count"), ElementsAre(2, 0));
  EXPECT_THAT(numbers("failovers.rail"), ElementsAre(1, 1));
  EXPECT_THAT(numbers("failovers.resent_bytes"), ElementsAre(77, 77));
  EXPECT_THAT(numbers("failovers.duplicate_bytes"), ElementsAre(5, 5));
  EXPECT_THAT(numbers("failover_pause_ms.p50"), ElementsAre(13.5));
  EXPECT_THAT(numbers("failover_pause_ms.p95"), IsEmpty());
  EXPECT_THAT(numbers("failover_pause_ms.max"), ElementsAre(14.5));
  EXPECT_THAT(numbers("failover_pause_ms.n"), ElementsAre(2));
  EXPECT_THAT(numbers("failover_pause_ms.n", "fault_free"), ElementsAre(0));
  EXPECT_THAT(numbers("detection_ms.p50"), ElementsAre(6));
  EXPECT_THAT(numbers("detection_ms.max"), ElementsAre(8));
  EXPECT_THAT(numbers("failbacks.count"), ElementsAre(3, 0));
  EXPECT_THAT(numbers("degradations.unexplained"), ElementsAre(2, 0));
  EXPECT_THAT(numbers("degradations.missed"), ElementsAre(0, 0)) << "nothing was throttled";
  EXPECT_THAT(numbers("restarts.count"), ElementsAre(1, 0));
  EXPECT_THAT(numbers("restarts.hang_ms"), ElementsAre(601));
  EXPECT_THAT(numbers("restarts.isolate_ms"), ElementsAre(900));
  EXPECT_THAT(numbers("restarts.load_ms"), ElementsAre(45));
  EXPECT_THAT(numbers("restarts.lost_iterations"), ElementsAre(4));
  EXPECT_THAT(numbers("memory_growth_bytes.end"), ElementsAre(500, -100)) << "of each rank";
  EXPECT_THAT(numbers("memory_growth_bytes.max"), ElementsAre(1000, 0));
  EXPECT_THAT(numbers("open_files_growth.end"), ElementsAre(-1, 0));
  EXPECT_THAT(numbers("open_files_growth.max"), ElementsAre(2, 0));
  const MetricValue ok = std::string("ok"), cause = std::string("remote_nic"),
                    verdict = std::string("told_by_peer");
  EXPECT_THAT(lookup("hot_repair", "status"), ElementsAre(ok, ok));
  EXPECT_THAT(lookup("hot_repair", "failovers.cause"), ElementsAre(cause, cause));
  const MetricValue where = std::string("remote"), direction = std::string("both");
  EXPECT_THAT(lookup("hot_repair", "failovers.where"), ElementsAre(where, where));
  EXPECT_THAT(lookup("hot_repair", "failovers.dead_direction"), ElementsAre(direction, direction));
  EXPECT_THAT(lookup("hot_repair", "failovers.verdict"), ElementsAre(verdict, verdict));
  EXPECT_THAT(lookup("hot_repair", "digest_matches"),
              ElementsAre(MetricValue(false), MetricValue(false)))
      << "another digest; no fault_free in block 1";
  EXPECT_THAT(lookup("fault_free", "digest_matches"), ElementsAre(MetricValue(true)));
}

TEST(MetricsTest, AFaultWithoutAMomentHasVerdictsAndNoTimeOfDetection) {
  reports::Failover failover;
  failover.cause = "path";
  failover.fault_ms = 100;
  failover.detected_ms = 130;
  failover.pause_ms = 40;
  auto run = faultedRun("hot_repair", 0, 8);
  run.failovers = {failover, failover};
  run.failovers[1].fault_within_ms = 90;
  run.failovers[1].detected_ms = 195;
  const auto numbers = [&](const char* metric) {
    return metricsOf(summarised({run}))("hot_repair", metric);
  };
  EXPECT_THAT(numbers("detection_ms.p50"), ElementsAre(MetricValue(30.0)));
  EXPECT_THAT(numbers("detection_ms.max"), ElementsAre(MetricValue(30.0)));
  EXPECT_THAT(numbers("failovers.count"), ElementsAre(MetricValue(2.0)));
  EXPECT_THAT(numbers("failovers.cause"), SizeIs(2));
  EXPECT_THAT(numbers("failover_pause_ms.n"), ElementsAre(MetricValue(2.0)))
      << "a stop is a stop, whenever the fault struck";
  run.failovers[0].fault_within_ms = 90;
  EXPECT_THAT(numbers("detection_ms.p50"), IsEmpty());
  EXPECT_THAT(numbers("detection_ms.max"), IsEmpty());
}

TEST(MetricsTest, OfFailoversPerConnectionTheIdleOnesCountToo) {
  const auto at = [](int rank, int peer, int rail) {
    reports::Failover failover;
    failover.rank = rank;
    failover.peer = peer;
    failover.rail = rail;
    return failover;
  };
  auto flapping = faultedRun("hot_repair", 0, 8);
  flapping.failovers = {at(0, 1, 0), at(1, 0, 0), at(0, 1, 1), at(0, 2, 0)};
  flapping.idle_failovers = {at(0, 1, 0), at(0, 2, 0), at(0, 1, 0)};
  auto idle = faultedRun("hot_repair", 1, 8);
  idle.idle_failovers = {at(0, 1, 0)};
  const reports::ScenarioResult result =
      summarised({flapping, idle, faultedRun("hot_repair", 2, 8)});
  EXPECT_THAT(metricsOf(result)("hot_repair", "failovers.per_connection"),
              ElementsAre(MetricValue(3.0), MetricValue(1.0), MetricValue(0.0)));
}

TEST(MetricsTest, IntervalsAndTailsWhereThereAreEnough) {
  std::vector<reports::Run> runs;
  for (int block = 0; block < 6; ++block) {
    runs.push_back(sampleRun("fault_free", block, 10));
    runs.push_back(faultedRun("hot_repair", block, block < 3 ? 8 : 5));
    for (int i = 1; i <= 50; ++i) runs.back().failovers.emplace_back().pause_ms = i;
  }
  const auto result = summarised(runs);
  const auto value = [&](const char* metric) {
    return std::get<double>(metricsOf(result)("hot_repair", metric).at(0));
  };
  EXPECT_NEAR(value("overhead_pct.ci95.lo"), 25, 1e-9);
  EXPECT_NEAR(value("overhead_pct.ci95.hi"), 100, 1e-9);
  EXPECT_NEAR(value("failover_pause_ms.p95"), 48, 1e-9);
  EXPECT_NEAR(value("failover_pause_ms.p99"), 50, 1e-9);
}

TEST(MetricsTest, OfStrategiesThatMeetFaultsOnlyFaultedRunsCount) {
  auto runs = std::vector{faultedRun("hot_repair", 0), sampleRun("hot_repair", 1)};
  EXPECT_EQ(metricsOf(summarised(runs))("hot_repair", "failovers.count").size(), 1u);
  runs.erase(runs.begin());
  EXPECT_EQ(metricsOf(summarised(runs))("hot_repair", "failovers.count").size(), 1u)
      << "a scenario without faults";
}

TEST(MetricsTest, DigestsThatWereNeverMadeDoNotMatch) {
  auto runs = std::vector{sampleRun("fault_free", 0), faultedRun("hot_repair", 0)};
  runs[0].digest = runs[1].digest = "";
  EXPECT_THAT(metricsOf(summarised(runs))("hot_repair", "digest_matches"), IsEmpty());
  runs[0].digest = "d1";
  EXPECT_THAT(metricsOf(summarised(runs))("hot_repair", "digest_matches"),
              ElementsAre(MetricValue(false)));
}

TEST(MetricsTest, RunsWithoutAllResultsHaveNoDigestToCompare) {
  auto runs = std::vector{sampleRun("fault_free", 0), faultedRun("hot_repair", 0)};
  runs[1].digest = "of a part";
  runs[1].status = reports::RunStatus::kFailed;
  EXPECT_THAT(metricsOf(summarised(runs))("hot_repair", "digest_matches"), IsEmpty());
  runs[1].status = reports::RunStatus::kOk;
  runs[0].status = reports::RunStatus::kFailed;
  EXPECT_THAT(metricsOf(summarised(runs))("hot_repair", "digest_matches"), IsEmpty());
}

TEST(MetricsTest, EffortIsPerByteThatTheRanksSent) {
  auto run = sampleRun("armed", 0);
  run.resources = {{.rank = 0, .cpu_ms = 1500, .system_calls = 100, .sent_bytes = 512 << 20},
                   {.rank = 1, .cpu_ms = 500, .system_calls = 924, .sent_bytes = 512 << 20}};
  const auto result = summarised({run, sampleRun("armed", 1)});  // the second one told nothing
  const auto lookup = metricsOf(result);
  EXPECT_THAT(lookup("armed", "cpu_s_per_gib"), ElementsAre(MetricValue(2.0)));
  EXPECT_THAT(lookup("armed", "system_calls_per_mib"), ElementsAre(MetricValue(1.0)));
}

}  // namespace
}  // namespace faultline::run
