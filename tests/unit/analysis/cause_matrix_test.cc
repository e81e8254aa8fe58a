#include "harness/analysis/cause_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/analysis/metrics.h"
#include "harness/scenario/metric_table.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::run {
namespace {

using reports::AppliedFault;
using reports::ConfusionMatrix;
using reports::Failover;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Row = ConfusionMatrix::Row;

/// A faulted run of hot_repair, put together strike by strike.
class RunOf {
 public:
  RunOf() {
    run_.strategy = "hot_repair";
    run_.faulted = true;
  }
  RunOf& strike(const std::string& kind, const std::map<std::string, std::string>& parameters,
                int node, std::optional<int> rail, double start, double end, bool proved = true) {
    AppliedFault& fault = run_.faults.emplace_back();
    fault.kind = kind;
    fault.parameters = parameters;
    fault.target.node = node;
    fault.target.rail = rail;
    fault.start_ms = start;
    fault.end_ms = end;
    const int index = static_cast<int>(run_.faults.size()) - 1;
    run_.evidence.push_back({index, "look", "seen", proved});
    return *this;
  }
  RunOf& failover(int rank, int peer, int rail, const std::string& cause,
                  std::optional<double> fault, double detected,
                  const std::string& direction = "unknown") {
    Failover& failover = run_.failovers.emplace_back();
    failover.rank = rank;
    failover.peer = peer;
    failover.rail = rail;
    failover.cause = cause;
    failover.dead_direction = direction;
    failover.fault_ms = fault;
    failover.detected_ms = detected;
    failover.fenced_ms = detected + 2;
    failover.resumed_ms = detected + 5;
    failover.pause_ms = 9;
    return *this;
  }
  RunOf& slow(int rank, int peer, int rail, double at) {
    run_.degradations.push_back(
        {.rank = rank, .rail = rail, .peer = peer, .at_ms = at, .until_ms = {}, .share = 0.1});
    return *this;
  }
  reports::Run run_;
};

reports::ScenarioResult resultOf(std::vector<RunOf> runs, int ranksPerNode = 1) {
  reports::ScenarioResult result;
  result.scenario = {{"name", "a"}, {"cluster", {{"ranks_per_node", ranksPerNode}}}};
  for (RunOf& run : runs) result.runs.push_back(std::move(run.run_));
  return result;
}

ConfusionMatrix matrixOf(std::vector<RunOf> runs, int ranksPerNode = 1) {
  const std::vector results{resultOf(std::move(runs), ranksPerNode)};
  return confusionOf(results);
}

const Row& rowOf(const ConfusionMatrix& matrix, const std::string& fault, const std::string& end) {
  for (const Row& row : matrix.rows) {
    if (row.fault == fault && row.end == end) return row;
  }
  throw std::runtime_error("no row of " + fault + ", " + end);
}

int countOf(const ConfusionMatrix& matrix, const Row& row, const std::string& column) {
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    if (matrix.columns[i] == column) return row.counts[i];
  }
  throw std::runtime_error("no column " + column);
}

TEST(ConfusionTest, FailoversAreCountedAtTheEndThatSawThem) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("port_down", {{"how", "carrier"}}, 1, 0, 100, 300)
                    .failover(1, 0, 0, "local_nic", 100, 101)
                    .failover(1, 2, 0, "path", 100, 103, "both")
                    .failover(2, 1, 0, "remote_nic", 100, 104)});
  const Row& own = rowOf(matrix, "port_down carrier", "own");
  EXPECT_EQ(own.strikes, 1);
  EXPECT_EQ(own.expected, "local_nic");
  EXPECT_EQ(countOf(matrix, own, "local_nic"), 1);
  EXPECT_EQ(countOf(matrix, own, "path_both"), 1);
  EXPECT_EQ(own.total(), 2);
  EXPECT_EQ(own.rightPercent(), 50);
  EXPECT_EQ(own.detection_ms.max, 3);
  EXPECT_EQ(own.fence_ms.p50, 2);
  EXPECT_EQ(own.redelivery_ms.p50, 3);
  EXPECT_EQ(own.pause_ms.n, 2);
  EXPECT_EQ(own.pause_ms.p99, std::nullopt) << "of two";
  EXPECT_EQ(rowOf(matrix, "port_down carrier", "peer").rightPercent(), 100);
}

TEST(ConfusionTest, AFailoverWhoseFaultHasNoMomentHasAVerdictAndNoTimeOfDetection) {
  RunOf run;
  run.strike("blackhole", {}, 1, 0, 100, 400)
      .failover(1, 0, 0, "path", 100, 130, "both")
      .failover(1, 2, 0, "path", 100, 195, "both")
      .failover(0, 1, 0, "rail", 100, 196);
  for (const std::size_t late : {1, 2}) run.run_.failovers[late].fault_within_ms = 90;
  const ConfusionMatrix matrix = matrixOf({run});
  const Row& own = rowOf(matrix, "blackhole", "own");
  EXPECT_EQ(countOf(matrix, own, "path_both"), 2);
  EXPECT_EQ(own.rightPercent(), 100);
  EXPECT_EQ(own.detection_ms.n, 1);
  EXPECT_EQ(own.detection_ms.max, 30);
  EXPECT_EQ(own.fence_ms.n, 2) << "from the detection on all is known";
  EXPECT_EQ(own.redelivery_ms.n, 2);
  EXPECT_EQ(own.pause_ms.n, 2);
  const Row& peer = rowOf(matrix, "blackhole", "peer");
  EXPECT_EQ(countOf(matrix, peer, "rail"), 1);
  EXPECT_EQ(peer.rightPercent(), 0) << "a wrong verdict is wrong at any time";
  EXPECT_EQ(peer.detection_ms.n, 0);
}

TEST(ConfusionTest, ASlowRailIsFoundByEitherEndOrMissedByBoth) {
  const std::map<std::string, std::string> tenth{{"rate", "10%"}, {"direction", "both"}};
  const ConfusionMatrix matrix = matrixOf({RunOf()
                                               .strike("throttle", tenth, 1, 0, 100, 500)
                                               .slow(1, 2, 0, 180)
                                               .strike("throttle", tenth, 1, 0, 800, 1200)
                                               .slow(0, 1, 0, 880)
                                               .slow(1, 2, 0, 890)
                                               .strike("throttle", tenth, 1, 0, 1500, 1900)
                                               .slow(1, 2, 0, 3000)
                                               .slow(0, 2, 0, 1600)
                                               .slow(1, 2, 1, 1600)});
  const Row& own = rowOf(matrix, "throttle 10%", "own");
  EXPECT_EQ(own.expected, "degraded");
  EXPECT_EQ(countOf(matrix, own, "degraded"), 2);
  EXPECT_EQ(countOf(matrix, own, "none"), 1) << "the third";
  const Row& peer = rowOf(matrix, "throttle 10%", "peer");
  EXPECT_EQ(countOf(matrix, peer, "degraded"), 1);
  EXPECT_EQ(countOf(matrix, peer, "none"), 1);
  const Row& nothing = rowOf(matrix, std::string(ConfusionMatrix::kNoFault), "");
  EXPECT_EQ(countOf(matrix, nothing, "degraded"), 3) << "too late, another node, another rail";
  EXPECT_THAT(matrix.complaint(), HasSubstr("degraded"));
}

TEST(ConfusionTest, AStrikeThatAnEndDoesNotAnswerCountsThereAsNone) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("blackhole", {}, 1, 0, 100, 300)
                    .strike("blackhole", {}, 1, 0, 1000, 1300)
                    .failover(0, 1, 0, "path", 1000, 1050, "both")
                    .strike("throttle", {{"rate", "10%"}}, 2, 1, 2000, 2300)});
  const Row& own = rowOf(matrix, "blackhole", "own");
  EXPECT_EQ(countOf(matrix, own, "none"), 2);
  EXPECT_EQ(own.rightPercent(), 0) << "both were missed";
  const Row& peer = rowOf(matrix, "blackhole", "peer");
  EXPECT_EQ(countOf(matrix, peer, "none"), 1);
  EXPECT_EQ(peer.rightPercent(), 50);
  const Row& slow = rowOf(matrix, "throttle 10%", "own");
  EXPECT_EQ(countOf(matrix, slow, "none"), 1);
  EXPECT_EQ(slow.rightPercent(), 0) << "somebody should have said that it was slow";
}

TEST(ConfusionTest, AConnectionThatCarriedNothingHasAVerdictAndNoTimes) {
  RunOf run;
  run.strike("blackhole", {}, 1, 0, 100, 300).failover(0, 1, 0, "path", 100, 150, "both");
  run.run_.idle_failovers = std::move(run.run_.failovers);
  run.run_.failovers.clear();
  const ConfusionMatrix matrix = matrixOf({run});
  const Row& peer = rowOf(matrix, "blackhole", "peer");
  EXPECT_EQ(countOf(matrix, peer, "path_both"), 1);
  EXPECT_EQ(countOf(matrix, peer, "none"), 0);
  EXPECT_EQ(peer.pause_ms.n, 0);
  EXPECT_EQ(peer.detection_ms.n, 0);
}

TEST(ConfusionTest, TheDeadDirectionBelongsToTheVerdictOfAPath) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("one_way_loss", {{"direction", "in"}}, 1, 0, 100, 300)
                    .failover(1, 0, 0, "path", 100, 140, "incoming")
                    .failover(0, 1, 0, "path", 100, 140, "outgoing")
                    .failover(2, 1, 0, "path", 100, 140, "both")
                    .failover(2, 1, 0, "path", 100, 140)});
  EXPECT_EQ(rowOf(matrix, "one_way_loss in", "own").rightPercent(), 100);
  const Row& peer = rowOf(matrix, "one_way_loss in", "peer");
  EXPECT_EQ(countOf(matrix, peer, "path_out"), 1);
  EXPECT_EQ(countOf(matrix, peer, "path_both"), 1);
  EXPECT_EQ(countOf(matrix, peer, "path_unsure"), 1);
  EXPECT_NEAR(*peer.rightPercent(), 100.0 / 3, 1e-9);
}

TEST(ConfusionTest, AFailoverComesFromTheLatestStrikeOfItsRailAndNodes) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("port_down", {{"how", "admin"}}, 1, 0, 100, 900)
                    .strike("blackhole", {}, 2, 1, 100, 900)
                    .strike("blackhole", {}, 3, 0, 200, 900)
                    .failover(1, 2, 0, "local_nic", 100, 110)
                    .failover(1, 2, 1, "path", 100, 160, "both")
                    .failover(3, 1, 0, "path", 200, 260, "both")});
  EXPECT_EQ(rowOf(matrix, "port_down admin", "own").pause_ms.n, 1);
  EXPECT_EQ(rowOf(matrix, "port_down admin", "peer").pause_ms.n, 0);
  EXPECT_EQ(rowOf(matrix, "blackhole", "own").pause_ms.n, 1);
  EXPECT_EQ(rowOf(matrix, "blackhole", "peer").pause_ms.n, 1) << "rank 1 towards node 2";
}

TEST(ConfusionTest, OfAWholeRailEitherEndMayBeBlamedByBoth) {
  const std::map<std::string, std::string> carrier{{"how", "carrier"}};
  RunOf run;
  for (const int node : {0, 1, 2}) run.strike("port_down", carrier, node, 1, 100 + node, 300);
  // Rank 0 sees its own port, rank 1 is told of rank 0's; nobody uses the rail to rank 3.
  run.strike("port_down", carrier, 3, 1, 104, 300);
  run.failover(0, 1, 1, "local_nic", 101, 103).failover(1, 0, 1, "remote_nic", 101, 103);
  run.failover(1, 2, 1, "local_nic", 102, 104).failover(2, 1, 1, "remote_nic", 102, 104);
  const ConfusionMatrix matrix = matrixOf({run});
  const Row& own = rowOf(matrix, "port_down carrier", "own");
  const Row& peer = rowOf(matrix, "port_down carrier", "peer");
  EXPECT_EQ(countOf(matrix, own, "local_nic"), 2);
  EXPECT_EQ(countOf(matrix, own, "remote_nic"), 0);
  EXPECT_EQ(countOf(matrix, own, "none"), 1) << "of node 3, and not of 2, which blamed node 1";
  EXPECT_EQ(countOf(matrix, peer, "remote_nic"), 2);
  EXPECT_EQ(countOf(matrix, peer, "local_nic"), 0);
  EXPECT_EQ(countOf(matrix, peer, "none"), 1);
  // Links that are struck at different times have two ends each.
  const ConfusionMatrix apart = matrixOf({RunOf()
                                              .strike("port_down", carrier, 0, 1, 100, 200)
                                              .strike("port_down", carrier, 1, 1, 300, 400)
                                              .failover(1, 0, 1, "local_nic", 101, 103)});
  EXPECT_EQ(countOf(apart, rowOf(apart, "port_down carrier", "peer"), "local_nic"), 1);
}

TEST(ConfusionTest, WhatNoFaultExplainsIsOfAStoppedPeerOrOfNothing) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("process_stop", {}, 1, std::nullopt, 1000, 2000)
                    .failover(0, 1, 0, "path", std::nullopt, 1500, "both")
                    .failover(0, 2, 0, "path", std::nullopt, 1500, "both")
                    .failover(0, 1, 0, "rail", std::nullopt, 9000)});
  const Row& stopped = rowOf(matrix, "process_stop", "peer");
  EXPECT_EQ(countOf(matrix, stopped, "path_both"), 1);
  EXPECT_EQ(stopped.rightPercent(), 0);
  EXPECT_EQ(rowOf(matrix, "process_stop", "own").rightPercent(), 100);
  const Row& nothing = rowOf(matrix, "nothing", "");
  EXPECT_EQ(nothing.total(), 2);
  EXPECT_EQ(nothing.rightPercent(), 0);
  EXPECT_EQ(matrix.rows.back().fault, "nothing");
}

TEST(ConfusionTest, AFaultThatWasOverWhenAPeerWasStoppedIsNotBehindIt) {
  const auto rightOf = [](double stopped, const std::string& fault) {
    const ConfusionMatrix matrix =
        matrixOf({RunOf()
                      .strike("throttle", {{"rate", "10%"}}, 1, 0, 100, 300)
                      .slow(0, 1, 0, 200)
                      .strike("process_stop", {}, 1, std::nullopt, stopped, 1000)
                      .failover(0, 1, 0, "path", 100, 1001)});
    return rowOf(matrix, fault, "peer").rightPercent();
  };
  EXPECT_EQ(rightOf(800, "throttle 10%"), 100);
  EXPECT_EQ(rightOf(800, "process_stop"), 0);
  EXPECT_EQ(rightOf(200, "throttle 10%"), 50) << "both were there";
}

TEST(ConfusionTest, OfTheManagementNetworkNoRailIsGivenUp) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf().strike("blackhole", {}, 1, std::nullopt, 100, 300)});
  EXPECT_EQ(rowOf(matrix, "blackhole (mgmt)", "own").rightPercent(), 100);
}

TEST(ConfusionTest, StrikesWithoutEvidenceAndRunsThatCannotFailOverDoNotCount) {
  RunOf stop;
  stop.strike("blackhole", {}, 1, 0, 100, 300);
  stop.run_.strategy = "fail_stop";
  RunOf plain;
  plain.strike("blackhole", {}, 1, 0, 100, 300);
  plain.run_.faulted = false;
  const ConfusionMatrix matrix = matrixOf({stop, plain,
                                           RunOf()
                                               .strike("blackhole", {}, 1, 0, 100, 300, false)
                                               .failover(1, 0, 0, "path", 100, 150, "both")});
  EXPECT_EQ(matrix.runs, 1);
  EXPECT_EQ(matrix.strikes, 0);
  EXPECT_EQ(matrix.unproved, 1);
  EXPECT_THAT(matrix.rows, IsEmpty());
}

TEST(ConfusionTest, RanksOfOneNodeAreOneEnd) {
  const ConfusionMatrix matrix = matrixOf({RunOf()
                                               .strike("blackhole", {}, 1, 0, 100, 300)
                                               .failover(2, 1, 0, "path", 100, 150, "both")
                                               .failover(3, 0, 0, "path", 100, 150, "both")},
                                          /*ranksPerNode=*/2);
  EXPECT_EQ(countOf(matrix, rowOf(matrix, "blackhole", "own"), "path_both"), 2);
  EXPECT_EQ(countOf(matrix, rowOf(matrix, "blackhole", "peer"), "none"), 1);
}

TEST(ConfusionTest, AFlapMayPassUnnoticedAndAnythingMayBeSaidOfALossyLink) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("port_flap", {{"how", "carrier"}}, 1, 0, 100, 300)
                    .strike("loss", {{"percent", "30%"}}, 1, 1, 100, 300)
                    .failover(1, 0, 1, "rail", 100, 150)
                    .failover(1, 0, 1, "meteor", 100, 150)});
  EXPECT_EQ(rowOf(matrix, "port_flap carrier", "own").rightPercent(), 100);
  const Row& loss = rowOf(matrix, "loss 30%", "own");
  EXPECT_FALSE(loss.judged);
  EXPECT_EQ(loss.rightPercent(), std::nullopt);
  EXPECT_EQ(countOf(matrix, loss, "other"), 1) << "a cause that this program does not know";
}

TEST(ConfusionTest, AShortOutageOfAPathIsAPathInAnyDirectionOrARailOrNothing) {
  const ConfusionMatrix matrix = matrixOf({RunOf()
                                               .strike("path_flap", {}, 1, 0, 100, 300)
                                               .failover(1, 0, 0, "rail", 100, 130)
                                               .failover(0, 1, 0, "path", 100, 130)
                                               .failover(1, 2, 0, "path", 100, 130, "both")
                                               .failover(2, 1, 0, "remote_nic", 100, 130)});
  EXPECT_EQ(rowOf(matrix, "path_flap", "own").rightPercent(), 100);
  EXPECT_EQ(rowOf(matrix, "path_flap", "peer").rightPercent(), 50);
  EXPECT_EQ(rowOf(matrix, "path_flap", "own").expected, "path or rail or none");
}

TEST(ConfusionTest, APathBetweenTwoNodesIsBetweenThemAndConcernsNobodyElse) {
  auto run = RunOf()
                 .strike("path_cut", {}, 1, 0, 100, 300)
                 .failover(1, 2, 0, "path", 100, 150, "both")
                 .failover(2, 1, 0, "path", 100, 150, "both")
                 .failover(2, 1, 0, "path", 100, 150, "both")
                 .failover(1, 0, 0, "path", 100, 150, "both");
  run.run_.faults[0].target.peer = 2;
  const std::vector<std::string> where{"between", "between", "remote", "between"};
  for (std::size_t i = 0; i < where.size(); ++i) run.run_.failovers[i].where = where[i];
  const ConfusionMatrix matrix = matrixOf({run});
  const Row& own = rowOf(matrix, "path_cut", "own");
  EXPECT_EQ(own.rightPercent(), 100);
  EXPECT_EQ(own.total(), 1);
  EXPECT_EQ(own.places.right, 1);
  const Row& peer = rowOf(matrix, "path_cut", "peer");
  EXPECT_EQ(peer.places.right, 1);
  EXPECT_EQ(peer.places.wrong, 1) << "the link of the other is whole";
  const Row& nothing = rowOf(matrix, std::string(ConfusionMatrix::kNoFault), "");
  EXPECT_EQ(countOf(matrix, nothing, "path_both"), 1) << "the path to node 0 was whole";
}

TEST(ConfusionTest, APlaceIsRightWhereTheCauseIsRightToo) {
  auto run = RunOf()
                 .strike("blackhole", {}, 1, 0, 100, 300)
                 .failover(1, 0, 0, "path", 100, 150, "both")
                 .failover(1, 2, 0, "path", 100, 150, "both")
                 .failover(1, 2, 0, "path", 100, 150, "both")
                 .failover(0, 1, 0, "path", 100, 150, "both")
                 .failover(2, 1, 0, "path", 100, 150, "incoming")
                 .strike("connection_reset", {}, 1, 1, 100, 300)
                 .failover(1, 0, 1, "rail", 100, 150);
  const std::vector<std::string> where{"local",  "between", "unknown",
                                       "remote", "remote",  "unknown"};
  for (std::size_t i = 0; i < where.size(); ++i) run.run_.failovers[i].where = where[i];
  const ConfusionMatrix matrix = matrixOf({run});
  const Row& own = rowOf(matrix, "blackhole", "own");
  EXPECT_EQ(own.places.right, 1);
  EXPECT_EQ(own.places.wrong, 1);
  EXPECT_EQ(own.places.unknown, 1);
  EXPECT_NEAR(own.placedPercent().value(), 33.3, 0.1);
  const Row& peer = rowOf(matrix, "blackhole", "peer");
  EXPECT_EQ(peer.places.right, 1);
  EXPECT_EQ(peer.places.wrong, 1) << "the direction is not";
  EXPECT_EQ(rowOf(matrix, "connection_reset", "own").placedPercent(), std::nullopt);
  EXPECT_THAT(confusionText(matrix), HasSubstr("cause and place of each failover"));
  EXPECT_EQ(confusionJson(matrix)["rows"][0]["places"]["unknown"], 1);
  EXPECT_THAT(confusionHtml(matrix), HasSubstr("Place too, %"));
}

TEST(ConfusionTest, ExpectationsSeeTheMatrixOfTheirStrategysRuns) {
  const auto right = RunOf()
                         .strike("port_down", {{"how", "carrier"}}, 1, 0, 100, 300)
                         .failover(1, 0, 0, "local_nic", 100, 101)
                         .failover(0, 1, 0, "remote_nic", 100, 101);
  auto wrong = RunOf()
                   .strike("port_down", {{"how", "carrier"}}, 1, 0, 100, 300)
                   .failover(1, 0, 0, "path", 100, 101)
                   .failover(0, 1, 0, "remote_nic", 100, 101)
                   .failover(2, 0, 1, "path", std::nullopt, 900);
  wrong.run_.strategy = "balance";
  const reports::ScenarioResult result = resultOf({right, right, wrong});
  const auto lookup = metricsOf(result);
  using scenario::MetricValue;
  using ::testing::ElementsAre;
  EXPECT_THAT(lookup("hot_repair", "verdicts.right_pct"),
              ElementsAre(MetricValue(100.0), MetricValue(100.0)));
  EXPECT_THAT(lookup("hot_repair", "verdicts.unexplained"), ElementsAre(MetricValue(0.0)));
  EXPECT_THAT(lookup("balance", "verdicts.right_pct"),
              ElementsAre(MetricValue(0.0), MetricValue(100.0)));
  EXPECT_THAT(lookup("balance", "verdicts.unexplained"), ElementsAre(MetricValue(1.0)));
}

TEST(ConfusionTest, EveryExpectedWordIsOneThatFailoversHave) {
  const auto has = [](const char* metric, std::string_view word) {
    return std::ranges::count(scenario::findMetric(metric, true)->names, word) > 0;
  };
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    for (const injector::Signature& signature : kind.signatures) {
      for (const injector::Finding& finding : {signature.own, signature.peer}) {
        if (finding.cause.empty() || finding.cause == injector::kAnyCause) continue;
        if (finding.cause == "degraded") continue;  // no failover at all
        EXPECT_TRUE(has("failovers.cause", finding.cause)) << kind.name;
        if (finding.deadDirection.empty()) continue;
        EXPECT_TRUE(has("failovers.dead_direction", finding.deadDirection)) << kind.name;
      }
    }
  }
}

TEST(ConfusionReportTest, TextJsonAndPageSayTheSame) {
  const ConfusionMatrix matrix =
      matrixOf({RunOf()
                    .strike("port_down", {{"how", "<b>"}}, 1, 0, 100, 300)
                    .failover(1, 0, 0, "local_nic", 100, 101)
                    .failover(0, 1, 0, "rail", 100, 104)});
  const std::string text = confusionText(matrix);
  EXPECT_THAT(text, HasSubstr("1 strikes in 1 runs of 1 results"));
  EXPECT_THAT(text, HasSubstr("[1]"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  const reports::Json json = confusionJson(matrix);
  EXPECT_EQ(json["rows"][1]["counts"]["rail"], 1);
  EXPECT_EQ(json["rows"][1]["right_pct"], 0);
  EXPECT_EQ(json["rows"][0]["detection_ms"]["p50"], 1);
  EXPECT_TRUE(json["rows"][0]["pause_ms"]["p99"].is_null());
  const std::string page = confusionHtml(matrix);
  EXPECT_THAT(page, HasSubstr("<td class=\"number right\">1</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"number wrong\">1</td>"));
  EXPECT_THAT(page, HasSubstr("port_down &lt;b&gt;"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("{{")));
}

}  // namespace
}  // namespace faultline::run
