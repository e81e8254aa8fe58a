#include "reports/renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "reports/result_json.h"
#include "reports/text.h"
#include "support/sample_result.h"
#include "support/trace_rules.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// A directory that is gone afterwards.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (fs::temp_directory_path() / "faultline-reports-XXXXXX").string();
    path_ = ::mkdtemp(path.data());
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path() const { return path_; }

 private:
  std::string path_;
};

std::size_t filesIn(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(RendererTest, AllFilesAreWrittenAndCanBeMadeAgain) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/a/b";
  ScenarioResult result = testing::sampleResult();
  result.runs.front().collectives.emplace_back();  // so that every file has something in it
  ASSERT_TRUE(renderAll(result, directory).ok());
  std::map<std::string, std::string> first;
  for (const auto& renderer : allRenderers()) {
    const std::string path = directory + "/" + renderer->fileName();
    first[path] = *readFile(path);
    EXPECT_FALSE(first[path].empty()) << path;
    if (path.find("result.json") == std::string::npos) fs::remove(path);
  }
  EXPECT_EQ(first.size(), allRenderers().size());
  ASSERT_TRUE(renderDirectory(directory).ok());
  for (const auto& [path, text] : first) EXPECT_EQ(*readFile(path), text) << path;
  EXPECT_EQ(filesIn(directory), first.size() + 1) << "and the record; a temporary file was left";
}

TEST(RendererTest, MadeAgainIsOnlyWhatIsOfTheResult) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  ASSERT_TRUE(renderAll(testing::sampleResult(), directory).ok());
  ASSERT_TRUE(renderDirectory(directory).ok());  // older than records: taken by name
  ASSERT_TRUE(renderDirectory(directory).ok());
  const std::string collectives = directory + "/collectives.txt";
  ASSERT_TRUE(writeFileAtomically(collectives, "mine").ok());
  ScenarioResult result = testing::sampleResult();
  result.runs.front().collectives.emplace_back();
  ASSERT_TRUE(writeResult(result, directory).ok());
  const Status status = renderDirectory(directory);
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("collectives.txt was not made by faultline"));
  EXPECT_EQ(*readFile(collectives), "mine");
}

TEST(RendererTest, AResultThatIsNamedByALinkIsMadeAgainWhereItIs) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/real", link = temporary.path() + "/latest";
  ASSERT_TRUE(renderAll(testing::sampleResult(), directory).ok());
  fs::create_directory_symlink(directory, link);
  fs::remove(directory + "/report.html");
  const Status status = renderDirectory(link);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(fs::exists(directory + "/report.html"));
}

TEST(RendererTest, ADirectoryWithoutAResultIsNamed) {
  const TemporaryDirectory temporary;
  const Status status = renderDirectory(temporary.path());
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(temporary.path() + "/result.json"));
  ASSERT_TRUE(writeFileAtomically(temporary.path() + "/result.json", "{}").ok());
  EXPECT_THAT(renderDirectory(temporary.path()).message(),
              HasSubstr("/result.json: schema: is missing"));
}

// --- results.csv

/// Cells of RFC 4180 text.
std::vector<std::vector<std::string>> parseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = rows.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cell += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.emplace_back(1);
    } else {
      cell += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST(CsvTest, HasARowPerRun) {
  const auto rows = parseCsv(makeCsvRenderer()->text(testing::sampleResult()));
  ASSERT_EQ(rows.size(), 10u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) -
                                    rows[0].begin());
  };
  EXPECT_EQ(rows[3][column("strategy")], "hot_repair");
  EXPECT_EQ(rows[3][column("arm")], "faulted");
  EXPECT_EQ(rows[3][column("failovers")], "4");
  EXPECT_EQ(rows[3][column("evidence_ok")], "2");
  EXPECT_EQ(rows[1][column("failover_pause_ms_max")], "") << "there was no failover";
  EXPECT_EQ(rows[2][column("restarts")], "1");
  EXPECT_EQ(rows[3][column("plans")], "2");
  EXPECT_EQ(rows[3][column("planned_algorithm")], "optcc");
  EXPECT_EQ(rows[2][column("planned_algorithm")], "");
  EXPECT_EQ(rows[2][column("lost_iterations")], "4");
}

TEST(CsvTest, NoCellIsAFormula) {
  const auto messageAs = [](const std::string& message) {
    ScenarioResult result = testing::sampleResult();
    result.runs[0].message = message;
    const auto rows = parseCsv(makeCsvRenderer()->text(result));
    const auto column = std::ranges::find(rows[0], "message") - rows[0].begin();
    return rows[1][static_cast<std::size_t>(column)];
  };
  for (const std::string text : {"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1",
                                 "=HYPERLINK(\"http://x\",\"y\")", "+", "-", "--1", "+-1"}) {
    EXPECT_EQ(messageAs(text), "'" + text) << text;
  }
  for (const std::string text : {"-1", "+2.5e-3", "-0.5", "a=1", "1+1", "", "ok"}) {
    EXPECT_EQ(messageAs(text), text) << text;
  }
}

TEST(CleanTextTest, CommandsOfTerminalsAndMarksOfDirectionAreReplaced) {
  EXPECT_EQ(cleanText("a\033[1m\xc2\x9b\u202e\u2066\x7f\x9b"
                      "b"),
            "a\ufffd[1m\ufffd\ufffd\ufffd\ufffd\ufffd"
            "b");
  EXPECT_EQ(cleanText("a\tb\r\n\u00e9\u4e2d"), "a\tb\r\n\u00e9\u4e2d");
  EXPECT_EQ(cleanText("\xef\xbf\xbe\xef\xbf\xbf"), "\ufffd\ufffd") << "XML has neither";
}

TEST(CsvTest, HasSizeAndBandwidthOfCollectiveCalls) {
  ScenarioResult result = testing::sampleResult();
  CollectiveRow call;
  call.operation = "all_reduce";
  call.size_bytes = 1 << 20;
  call.p50_ms = 12.5;
  call.algbw = 0.0838;
  call.busbw = 0.1258;
  result.runs[0].collectives = {call};
  result.runs[1].collectives = {call, call};
  result.runs[1].collectives[1].size_bytes = 4 << 20;
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 1 + 9 + 2u) << "a row for each size of a run with several";
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto cell = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name) - rows[0].begin();
    return rows[row].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell(1, "operation"), "all_reduce");
  EXPECT_EQ(cell(1, "size"), "1048576");
  EXPECT_EQ(cell(1, "time_ms"), "12.5");
  EXPECT_EQ(cell(1, "algbw"), "0.0838");
  EXPECT_EQ(cell(1, "busbw"), "0.1258");
  EXPECT_EQ(cell(2, "size"), "") << "the run has several";
  EXPECT_EQ(cell(3, "size"), "1048576");
  EXPECT_EQ(cell(4, "size"), "4194304");
  EXPECT_EQ(cell(4, "busbw"), "0.1258");
  EXPECT_EQ(cell(4, "strategy"), cell(2, "strategy"));
  EXPECT_EQ(cell(4, "status"), "ok");
  EXPECT_EQ(cell(4, "failovers"), "") << "counted in the row of the run alone";
  EXPECT_EQ(cell(5, "size"), "") << "no collective call";
}

TEST(CsvTest, RowsOfCallsHaveTheColumnsOfModelledRowsToo) {
  ScenarioResult result = testing::sampleResult();
  result.runs[1].collectives.resize(2);
  Summary& modelled = result.summary.emplace_back();
  modelled.strategy = "restart_at_scale";
  modelled.origin = Origin::kModelled;
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto origin = std::ranges::find(rows[0], "origin") - rows[0].begin();
  EXPECT_EQ(rows[3].at(static_cast<std::size_t>(origin)), "measured");
}

TEST(CsvTest, HasWhatBecameOfRequests) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[1];
  for (const double ttft : {7.0, 5.0, 9.0}) {
    run.requests.push_back({.id = 0, .fate = "finished", .arrival_ms = {}, .ttft_ms = ttft});
  }
  run.rates = {{.requests = 2, .finished = 1, .late = 1}, {.requests = 1, .lost = 1, .redone = 1}};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  const auto cell = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name) - rows[0].begin();
    return rows[row].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell(2, "requests"), "3");
  EXPECT_EQ(cell(2, "finished"), "1");
  EXPECT_EQ(cell(2, "late"), "1");
  EXPECT_EQ(cell(2, "lost"), "1");
  EXPECT_EQ(cell(2, "redone"), "1");
  EXPECT_EQ(cell(2, "ttft_ms_median"), "7");
  EXPECT_EQ(cell(2, "tpot_ms_median"), "");
  EXPECT_EQ(cell(1, "requests"), "");
}

TEST(CsvTest, LatenciesAreOfTheRatesThatAreToldTogether) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[1];
  for (const int rate : {0, 1}) {
    run.requests.push_back(
        {.id = 0, .rate = rate, .fate = "late", .arrival_ms = {}, .ttft_ms = 5.0 + 100 * rate});
  }
  const auto median = [&] {
    const auto rows = parseCsv(makeCsvRenderer()->text(result));
    const auto at = std::ranges::find(rows[0], "ttft_ms_median") - rows[0].begin();
    return rows[2].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(median(), "55") << "the result does not say which";
  const auto row = std::ranges::find(result.summary, run.strategy, &Summary::strategy);
  ASSERT_NE(row, result.summary.end());
  row->pooled_rates = 1;
  EXPECT_EQ(median(), "5");
}

TEST(CsvTest, WhatProgramsToldHasAColumnForEachName) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].processes.resize(2);
  result.runs[0].processes[1].exit_code = 137;
  result.runs[0].metrics["busbw"] = {4.5, "GB/s"};
  result.runs[1].metrics["a,b"] = {2, ""};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  const std::size_t last = rows[0].size() - 1;
  for (const auto& row : rows) ASSERT_EQ(row.size(), last + 1);
  EXPECT_EQ(rows[0][last - 2], "exit_codes");
  EXPECT_EQ(rows[0][last - 1], "metric_a,b");
  EXPECT_EQ(rows[0][last], "metric_busbw");
  EXPECT_EQ(rows[1][last - 2], "0 137");
  EXPECT_EQ(rows[1][last - 1], "");
  EXPECT_EQ(rows[1][last], "4.5");
  EXPECT_EQ(rows[2][last - 1], "2");
}

TEST(CsvTest, AModelledRowIsMarkedBehindTheRuns) {
  ScenarioResult result = testing::sampleResult();
  Summary& row = result.summary.emplace_back();
  row.strategy = "kv_replicate";
  row.origin = Origin::kModelled;
  row.overhead_pct = Overhead{12.5};
  row.fault_cost = FaultCost{245.5, 31};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 1 + result.runs.size() + 1);
  for (const auto& each : rows) EXPECT_EQ(each.size(), rows[0].size());
  EXPECT_THAT(rows[0], ::testing::IsSupersetOf({"origin", "modelled_overhead_pct"}));
  EXPECT_EQ(rows[1][rows[1].size() - 2], "measured");
  const auto& last = rows.back();
  EXPECT_EQ(last[2], "kv_replicate");
  EXPECT_EQ(last[last.size() - 2], "modelled");
  EXPECT_EQ(last.back(), "12.5");
  const auto column = [&](const char* name) {
    return last[static_cast<std::size_t>(std::ranges::find(rows[0], name) - rows[0].begin())];
  };
  EXPECT_EQ(column("modelled_fault_s"), "245.5");
  EXPECT_EQ(column("modelled_fault_requests"), "31");
}

TEST(CsvTest, CommasQuotesAndLineEndsStayInTheirCell) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].message = "a \"b\", c\nd";
  result.runs[1].message = "before\rbehind";
  EXPECT_NE(makeCsvRenderer()->text(result).find(",\"before\rbehind\","), std::string::npos);
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[1][7], "a \"b\", c\nd");
  for (const auto& row : parseCsv(makeCsvRenderer()->text(testing::hostileResult()))) {
    EXPECT_EQ(row.size(), rows[0].size());
  }
}

// --- junit.xml

// --- trace.json

TEST(TraceTest, HasIterationsFaultsFailoversAndCounters) {
  const Json trace = Json::parse(makeTraceRenderer()->text(testing::sampleResult()));
  std::map<std::string, int> categories;
  std::map<std::string, int> phases;
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.contains("name") && event.contains("ph") && event.contains("pid")) << event;
    ++phases[event["ph"]];
    if (event["ph"] == "X") {
      ++categories[event["cat"]];
      EXPECT_GE(event["dur"].get<double>(), 0) << event;
      EXPECT_GE(event["ts"].get<double>(), 0) << event;
      end = std::max(end, event["ts"].get<double>());
    }
  }
  EXPECT_EQ(categories["run"], 9);
  EXPECT_EQ(categories["iteration"], 3 * (60 + 64 + 60)) << "fail_stop does four again";
  EXPECT_EQ(categories["fault"], 6);
  EXPECT_EQ(categories["failover"], 12 * 4);
  EXPECT_EQ(categories["restart"], 3 * 3);
  EXPECT_GT(phases["C"], 1000);
  EXPECT_GT(end, 9 * 3.5e6) << "the runs are not one after the other";
}

TEST(TraceTest, ShowsWhatTheRanksRecordedOnTracksOfTheirOwn) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::map<int, std::string> tracks;
  std::map<std::string, std::string> seen;  // event: phase and track
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event.value("cat", "") != "telemetry") continue;
    const std::string phase = event["ph"];
    seen[event["name"]] = phase + " " + tracks[event["tid"]];
    if (event["name"] != "chunk_arrived") continue;
    EXPECT_EQ(event["ts"], 11'000);
    EXPECT_EQ(event["dur"], 1'250);
    EXPECT_EQ(event["args"]["bytes"], 65536);
    EXPECT_EQ(event["args"]["number"], 4);
  }
  const std::map<std::string, std::string> expected{
      {"chunk_sent", "i rank 0 to rank 1 rail 0"},
      {"chunk_arrived", "X rank 1 from rank 0 rail 0"},
      {"rail_fence", "i rank 0 to rank 1 rail 0"},
      {"link_failed", "i rank 0 to rank 1"}};
  EXPECT_EQ(seen, expected);
}

TEST(TraceTest, ListsOfUnequalLengthAreReadAsFarAsAllGo) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  result.runs[0].telemetry.number.clear();  // a result that somebody has edited
  EXPECT_EQ(makeTraceRenderer()->text(result).find("chunk_sent"), std::string::npos);
}

TEST(TraceTest, KeepsTheRulesOfItsFormat) {
  ScenarioResult odd = testing::sampleResult();
  for (reports::Run& run :
       odd.runs) {  // ends that round to another microsecond than the next begins at
    double at = 0.0004;
    for (Iteration& iteration : run.iterations) {
      iteration.start_ms = at;
      iteration.ms = 1.0007;
      at += iteration.ms;
    }
    for (Failover& failover : run.failovers) failover.resumed_ms = failover.fenced_ms;
  }
  for (const ScenarioResult& result :
       {testing::sampleResult(), odd, testing::hostileResult(), ScenarioResult{}}) {
    const Json trace = Json::parse(makeTraceRenderer()->text(result));
    EXPECT_THAT(testing::traceViolations(trace), ::testing::IsEmpty());
  }
}

TEST(TraceTest, WhatTakesNoMicrosecondIsAMoment) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) {
    for (Failover& failover : run.failovers) failover.resumed_ms = failover.fenced_ms;
  }
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::map<std::string, int> seen;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "failover") continue;
    ++seen[event["ph"].get<std::string>() + " " + event["name"].get<std::string>()];
    EXPECT_TRUE(event["args"].contains("resent_bytes")) << event;
  }
  const std::map<std::string, int> expected{
      {"X detect", 12}, {"X fence", 12}, {"i resend elsewhere", 12}, {"X on the other rails", 12}};
  EXPECT_EQ(seen, expected);
}

TEST(TraceTest, RequestsThatOverlapAreOnLanesOfTheirOwn) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(2);
  for (reports::Run& run : result.runs) {
    run.iterations.clear();
    // Three at a time, of which the second ends first; the last is on the lane that is free again.
    const std::vector<std::pair<double, double>> times{{0, 100}, {10, 20}, {20, 200}, {35, 50}};
    for (const auto& [at, lasts] : times) {
      run.requests.push_back({.id = static_cast<int>(run.requests.size()),
                              .fate = "finished",
                              .arrival_ms = at,
                              .ttft_ms = lasts / 2,
                              .e2e_ms = lasts});
      run.iterations.push_back({.index = run.requests.back().id, .start_ms = at, .ms = lasts});
    }
    run.requests.push_back({.id = 4, .fate = "lost", .arrival_ms = 40});
    run.requests.push_back({.id = 5, .fate = "lost"});  // its rate never began
  }
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  EXPECT_THAT(testing::traceViolations(trace), ::testing::IsEmpty());
  std::map<std::string, std::vector<int>> lanes;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "request") {
      lanes[event["name"].get<std::string>()].push_back(event["tid"].get<int>());
    }
    EXPECT_NE(event.value("cat", ""), "iteration") << "the same once more";
  }
  const std::map<std::string, std::vector<int>> expected{
      {"request 0", {1, 1}}, {"request 1", {2, 2}}, {"request 2", {3, 3}},
      {"request 3", {2, 2}}, {"request 4", {4, 4}}, {"first token", {1, 2, 3, 2, 1, 2, 3, 2}}};
  EXPECT_EQ(lanes, expected);
}

TEST(TraceTest, ARateIsWrittenWhereItChangesAndEndsWithTheLastBin) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  reports::Run& run = result.runs[0];
  run.rail_series = {{.node = 0, .rail = 1, .bin_ms = 10, .tx_bytes = {1000, 1000, 2000}},
                     {.node = 0, .rail = 2, .bin_ms = 0, .tx_bytes = {1000}}};  // not measured
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::vector<std::pair<double, double>> rates;  // ms after the first, Mbit/s
  double first = -1;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "rail 1 sent");
    const double at = event["ts"].get<double>() / 1000;
    if (first < 0) first = at;
    rates.emplace_back(at - first, event["args"]["Mbit/s"].get<double>());
  }
  EXPECT_EQ(rates, (std::vector<std::pair<double, double>>{{0, 0.8}, {20, 1.6}, {30, 0}}));
}

TEST(TraceTest, ItsRulesAreSeenToBeBroken) {
  const Json good = Json::parse(makeTraceRenderer()->text(testing::sampleResult()));
  const auto broken = [&](const char* phase, const char* key, const Json& value) {
    Json trace = good;
    for (Json& event : trace["traceEvents"]) {
      if (event["ph"] == phase) event[key] = value;
    }
    return !testing::traceViolations(trace).empty();
  };
  EXPECT_TRUE(broken("X", "ts", -1));
  EXPECT_TRUE(broken("X", "dur", 1e9)) << "all overlap";
  EXPECT_TRUE(broken("X", "dur", 0));
  EXPECT_TRUE(broken("X", "tid", 77)) << "no such track";
  EXPECT_TRUE(broken("i", "s", "x"));
  EXPECT_TRUE(broken("C", "args", {{"Mbit/s", "many"}}));
  EXPECT_TRUE(broken("M", "name", "title"));
}

TEST(TraceTest, HostileTextIsValidJson) {
  EXPECT_TRUE(Json::accept(makeTraceRenderer()->text(testing::hostileResult())));
}

// --- report.html

std::string dataOf(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(HtmlTest, EmbedsTheDataAndEverythingItNeeds) {
  const std::string html = makeHtmlRenderer()->text(testing::sampleResult());
  EXPECT_THAT(html, HasSubstr("<title>quickstart · pass · Faultline</title>"));
  EXPECT_THAT(html, HasSubstr("Chart.js v4"));
  EXPECT_THAT(html, HasSubstr("const charts ="));
  EXPECT_THAT(html, Not(HasSubstr("{{")));
  EXPECT_THAT(html, Not(HasSubstr("<link rel=\"stylesheet")));
  EXPECT_LT(html.size(), 1'000'000u);
  const Json data = Json::parse(dataOf(html));
  EXPECT_EQ(data["verdict_text"], "All 4 expectations hold");
  EXPECT_EQ(data["runs"].size(), 9u);
}

TEST(HtmlTest, TextOfTheResultCannotLeaveItsPlace) {
  const std::string html = makeHtmlRenderer()->text(testing::hostileResult());
  const std::string data = dataOf(html);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  const Json json = Json::parse(data);
  EXPECT_THAT(json["name"].get<std::string>(), HasSubstr("</script>"));
  EXPECT_THAT(html, Not(HasSubstr("<script>window.hacked")));
  EXPECT_THAT(html, Not(HasSubstr("<img src=x")));
}

TEST(HtmlTest, StaysBelowOneMegabyte) {
  const std::string html = makeHtmlRenderer()->text(testing::hugeResult(12, 30));
  EXPECT_LT(html.size(), 1'000'000u);
  const Json data = Json::parse(dataOf(html));
  EXPECT_FALSE(data["notes"].empty()) << "thinning is not said";
  EXPECT_EQ(data["runs"].size(), 36u);
}

TEST(HtmlTest, ALargeSweepStaysBelowOneMegabyteWithAllItsCalls) {
  const std::string html = makeHtmlRenderer()->text(testing::hugeSweepResult(10));
  EXPECT_LT(html.size(), 1'000'000u);
  EXPECT_EQ(Json::parse(dataOf(html))["calls"].size(), 7u * 25);
}

TEST(HtmlTest, HalfAnHourOfFaultsStaysBelowOneMegabyte) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs.back();
  const AppliedFault fault = result.runs[1].faults.at(0);
  for (int strike = 0; strike < 4500; ++strike) {
    run.faults.push_back(fault);
    run.evidence.push_back(
        {static_cast<int>(run.faults.size()) - 1, "counters", std::string(200, 'x'), true});
  }
  const std::string html = makeHtmlRenderer()->text(result);
  EXPECT_LT(html.size(), 1'000'000u);
  const Json view = Json::parse(dataOf(html))["runs"].back();
  EXPECT_LT(view["faults"].size(), 500u);
  EXPECT_FALSE(view["faults"].empty());
  for (const Json& evidence : view["evidence"]) {
    EXPECT_LT(evidence["fault"], view["faults"].size());
  }
}

TEST(HtmlTest, AnEmptyResultHasAPage) {
  EXPECT_THAT(makeHtmlRenderer()->text({}),
              HasSubstr("<title>unnamed · error · Faultline</title>"));
}

}  // namespace
}  // namespace faultline::reports
