#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "reports/renderer.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;

struct Sample {
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// A reader of the text format, as strict as the collectors are: lines end with a line feed, names
/// and labels have their alphabet, label values their escapes, the samples of a metric stand
/// together behind one HELP and one TYPE, and no sample comes twice.
class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line_ = line;
      if (line.starts_with("# HELP ")) {
        head(helped_, 7);
      } else if (line.starts_with("# TYPE ")) {
        type_ = head(typed_, 7);
      } else {
        sample();
      }
    }
    for (const std::string& name : typed_) EXPECT_EQ(helped_.count(name), 1u) << name;
  }

  /// Samples by full name: with _sum and _count.
  std::map<std::string, std::vector<Sample>> samples;

  double value(const std::string& name, const std::map<std::string, std::string>& labels) const {
    const auto found = samples.find(name);
    if (found == samples.end()) return std::nan("");
    for (const Sample& sample : found->second) {
      const bool fits = std::ranges::all_of(labels, [&](const auto& label) {
        const auto has = sample.labels.find(label.first);
        return has != sample.labels.end() && has->second == label.second;
      });
      if (fits) return sample.value;
    }
    return std::nan("");
  }

 private:
  static bool isName(const std::string& name) {
    return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
           std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  }

  std::string head(std::set<std::string>& seen, std::size_t begin) {
    const std::size_t end = line_.find(' ', begin);
    EXPECT_NE(end, std::string::npos) << line_;
    current_ = line_.substr(begin, end - begin);
    EXPECT_TRUE(isName(current_)) << line_;
    EXPECT_TRUE(seen.insert(current_).second) << "again: " << line_;
    return line_.substr(end + 1);
  }

  void sample() {
    std::size_t at = line_.find_first_of(" {");
    ASSERT_NE(at, std::string::npos) << line_;
    const std::string name = line_.substr(0, at);
    const bool of_summary =
        type_ == "summary" && (name == current_ + "_sum" || name == current_ + "_count");
    EXPECT_TRUE(name == current_ || of_summary) << "outside of its metric: " << line_;
    Sample sample;
    if (line_[at] == '{') {
      ++at;
      while (line_[at] != '}') {
        const std::size_t equals = line_.find("=\"", at);
        ASSERT_NE(equals, std::string::npos) << line_;
        const std::string key = line_.substr(at, equals - at);
        EXPECT_TRUE(isName(key)) << line_;
        std::string text;
        for (at = equals + 2; at < line_.size() && line_[at] != '"'; ++at) {
          if (line_[at] == '\\') ++at;
          text += line_[at];
        }
        sample.labels[key] = text;
        ++at;
        ASSERT_LT(at, line_.size()) << line_;
        if (line_[at] == ',') ++at;
      }
      ++at;
    }
    ASSERT_EQ(line_[at], ' ') << line_;
    const char* const end = line_.data() + line_.size();
    const auto read = std::from_chars(line_.data() + at + 1, end, sample.value);
    EXPECT_EQ(read.ptr, end) << line_;
    EXPECT_TRUE(identities_.insert(line_.substr(0, at)).second) << "twice: " << line_;
    samples[name].push_back(sample);
  }

  std::string line_;
  std::string current_;
  std::string type_;
  std::set<std::string> helped_;
  std::set<std::string> typed_;
  std::set<std::string> identities_;
};

TEST(PrometheusTest, HasWhatTheSummaryHasInBaseUnits) {
  const ScenarioResult result = testing::sampleResult();
  const Exposition page(makePrometheusRenderer()->text(result));
  const Summary& row = result.summary[2];
  const std::map<std::string, std::string> hot{{"scenario", "quickstart"},
                                               {"strategy", "hot_repair"}};
  EXPECT_NEAR(page.value("faultline_overhead_ratio", hot), row.overhead_pct->median / 100, 1e-12);
  EXPECT_NEAR(page.value("faultline_overhead_bound_ratio", hot), 0.187, 1e-12);
  EXPECT_NEAR(page.value("faultline_throughput_iterations_per_second", hot), row.throughput->value,
              1e-9);
  EXPECT_NEAR(page.value("faultline_failover_pause_seconds",
                         {{"strategy", "hot_repair"}, {"quantile", "0.5"}}),
              *row.failover_pause_ms->p50 / 1000, 1e-12);
  EXPECT_EQ(page.value("faultline_failover_pause_seconds_count", hot), 12);
  EXPECT_GT(page.value("faultline_failover_pause_seconds_sum", hot), 0.1);
  EXPECT_EQ(page.value("faultline_result_verdict", {{"verdict", "pass"}}), 1);
  EXPECT_EQ(page.value("faultline_result_verdict", {{"verdict", "fail"}}), 0);
  EXPECT_EQ(page.value("faultline_expectations", {{"outcome", "holds"}}), 4);
  EXPECT_EQ(page.value("faultline_restarts", {{"strategy", "fail_stop"}}), 3);
  EXPECT_EQ(page.value("faultline_wrong_elements", hot), 0);
  EXPECT_EQ(page.value("faultline_result_start_timestamp_seconds", {}), 1777887000)
      << "date -u -d 2026-05-04T09:30:00Z +%s";
}

TEST(PrometheusTest, WhatIsNotKnownIsNotThere) {
  ScenarioResult result = testing::sampleResult();
  result.summary[2].overhead_pct->median = std::nan("");
  const std::string text = makePrometheusRenderer()->text(result);
  EXPECT_EQ(text.find("noise_band"), std::string::npos) << "HELP without a sample";
  EXPECT_EQ(text.find("overhead_low"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("quantile=\"0.99\""), std::string::npos);
  EXPECT_FALSE(Exposition(makePrometheusRenderer()->text({})).samples.empty());
}

/// A server's row at 2 and 4 requests a second, and a modelled one.
ScenarioResult servedResult() {
  ScenarioResult result = testing::sampleResult();
  Summary& row = result.summary[2];
  for (const double qps : {2.0, 4.0}) {
    RateRow& rate = row.rates.emplace_back();
    rate.qps = qps;
    rate.finished = 58;
    rate.lost = 2;
    rate.redone = 3;
    rate.goodput = qps * 58 / 60;
    rate.ttft_ms = {.p50 = 100 * qps, .p95 = 400, .p99 = std::nullopt, .max = 500, .n = 58};
  }
  for (Run& run : result.runs) {
    if (run.strategy != row.strategy) continue;
    run.requests = {{.id = 0, .rate = 0, .fate = "finished", .ttft_ms = 250},
                    {.id = 1, .rate = 1, .fate = "finished", .ttft_ms = 900},
                    {.id = 2, .rate = 0, .fate = "lost"}};
  }
  Summary& modelled = result.summary.emplace_back();
  modelled.strategy = "kv_replicate";
  modelled.origin = Origin::kModelled;
  modelled.note = "modelled, not executed: it \"replicates\"";
  modelled.overhead_pct = Overhead{.median = 12};
  modelled.fault_cost = FaultCost{245.5, 31};
  return result;
}

TEST(PrometheusTest, LatenciesOfEachRateWithTheirNumber) {
  const ScenarioResult result = servedResult();
  const Exposition page(makePrometheusRenderer()->text(result));
  using Wanted = std::map<std::string, std::string>;
  const Wanted slow{{"strategy", "hot_repair"}, {"origin", "measured"}, {"qps", "2"}};
  const auto quantile = [&](const char* which) {
    Wanted labels = slow;
    labels["quantile"] = which;
    return page.value("faultline_ttft_seconds", labels);
  };
  EXPECT_DOUBLE_EQ(quantile("0.5"), 0.2);
  EXPECT_DOUBLE_EQ(quantile("0.95"), 0.4);
  EXPECT_TRUE(std::isnan(quantile("0.99"))) << "too few requests";
  EXPECT_EQ(page.value("faultline_ttft_seconds_count", slow), 58);
  const auto runs = std::ranges::count(result.runs, "hot_repair", &Run::strategy);
  EXPECT_DOUBLE_EQ(page.value("faultline_ttft_seconds_sum", slow), 0.25 * runs);
  EXPECT_DOUBLE_EQ(page.value("faultline_ttft_seconds",
                              {{"qps", "4"}, {"quantile", "0.5"}, {"strategy", "hot_repair"}}),
                   0.4);
  EXPECT_EQ(page.value("faultline_requests", {{"qps", "2"}, {"fate", "lost"}}), 2);
  EXPECT_EQ(page.value("faultline_redone_requests", {{"qps", "4"}}), 3);
}

TEST(PrometheusTest, ModelledRowsAreMarkedAndCountNothing) {
  const Exposition page(makePrometheusRenderer()->text(servedResult()));
  const std::map<std::string, std::string> modelled{{"strategy", "kv_replicate"},
                                                    {"origin", "modelled"}};
  EXPECT_DOUBLE_EQ(page.value("faultline_overhead_ratio", modelled), 0.12);
  EXPECT_EQ(page.value("faultline_modelled_fault_seconds", modelled), 245.5);
  EXPECT_EQ(page.value("faultline_modelled_fault_requests", modelled), 31);
  EXPECT_EQ(page.value("faultline_row_info", modelled), 1);
  for (const Sample& sample : page.samples.at("faultline_row_info")) {
    const bool computed = sample.labels.at("origin") == "modelled";
    EXPECT_EQ(sample.labels.at("note"),
              computed ? "modelled, not executed: it \"replicates\"" : "");
  }
  for (const char* counted : {"faultline_runs", "faultline_wrong_elements"}) {
    EXPECT_TRUE(std::isnan(page.value(counted, {{"strategy", "kv_replicate"}}))) << counted;
    EXPECT_FALSE(std::isnan(page.value(counted, {{"strategy", "hot_repair"}}))) << counted;
  }
}

TEST(PrometheusTest, HostileTextStaysInItsLabel) {
  ScenarioResult result = testing::hostileResult();
  result.summary[0].throughput->unit = "GB\"}/s\n";
  const Exposition page(makePrometheusRenderer()->text(result));
  EXPECT_EQ(page.samples.at("faultline_result_info").size(), 1u);
  EXPECT_THAT(page.samples.at("faultline_result_info")[0].labels.at("scenario"),
              HasSubstr("</script>"));
}

}  // namespace
}  // namespace faultline::reports
