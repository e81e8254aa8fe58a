#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iomanip>
#include <sstream>

#include "base/clock.h"
#include "base/units.h"
#include "reports/renderer.h"
#include "reports/tally.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

/// Text exposition format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): the samples
/// of a metric stand together, below its HELP and TYPE. A metric without samples is left out.
class Page {
 public:
  /// Begins a metric; its name ends in its base unit (prometheus.io/docs/practices/naming).
  void metric(std::string name, std::string help, const char* type = "gauge") {
    name_ = std::move(name);
    head_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
  }
  void sample(const Labels& labels, double value, const char* suffix = "") {
    if (!std::isfinite(value)) return;
    text_ += head_ + name_ + suffix;
    head_.clear();
    std::string list;
    for (const auto& [key, label] : labels) {
      list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", key, escaped(label));
    }
    text_ += (list.empty() ? "" : "{" + list + "}") + fmt::format(" {}\n", value);
  }
  void sample(const Labels& labels, const std::optional<double>& value) {
    if (value) sample(labels, *value);
  }
  std::string finish() && { return std::move(text_); }

 private:
  static std::string escaped(const std::string& label) {
    std::string safe;
    for (const char character : cleanText(label)) {
      if (character == '\\' || character == '"') safe += '\\';
      if (character == '\n') {
        safe += "\\n";
      } else {
        safe += character;
      }
    }
    return safe;
  }

  std::string name_;
  std::string head_;
  std::string text_;
};

/// "iterations/s" -> "iterations_per_second": what may stand in a metric's name.
std::string unitInName(const std::string& unit) {
  std::string name;
  for (const char character : unit) {
    const bool letter =
        (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
    const bool capital = character >= 'A' && character <= 'Z';
    name += letter ? character : capital ? static_cast<char>(character - 'A' + 'a') : '_';
  }
  constexpr std::string_view kPerSecond = "_s";
  if (name.ends_with(kPerSecond)) {
    name.replace(name.size() - kPerSecond.size(), kPerSecond.size(), "_per_second");
  }
  return name;
}

std::optional<double> unixTime(const std::string& iso) {
  std::tm parts{};
  std::istringstream text(iso);
  text >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  if (text.fail()) return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

class Metrics {
 public:
  explicit Metrics(const ScenarioResult& result) : result_(result) {}

  std::string text() && {
    addResult();
    addStrategies();
    addSpeeds();
    addPauses();
    addAfterFaults();
    addRequests();
    return std::move(page_).finish();
  }

 private:
  Labels labels(const std::string& strategy = "") const {
    Labels labels{{"scenario", scenarioName(result_)}};
    if (!strategy.empty()) labels.emplace_back("strategy", strategy);
    return labels;
  }
  static Labels with(Labels labels, const char* key, const std::string& value) {
    labels.emplace_back(key, value);
    return labels;
  }

  void addResult() {
    const Environment& environment = result_.environment;
    page_.metric("faultline_result_info", "What was run, and where; always 1.");
    Labels info = labels();
    info = with(info, "git", environment.git);
    info = with(info, "kernel", environment.kernel);
    page_.sample(info, 1);
    page_.metric("faultline_result_start_timestamp_seconds", "When it was started, Unix time.");
    page_.sample(labels(), unixTime(result_.started_at));
    page_.metric("faultline_result_duration_seconds", "How long all of it took.");
    page_.sample(labels(), result_.duration_ms / kMillisecondsPerSecond);
    page_.metric("faultline_result_verdict", "1 for the verdict that it has, 0 for the others.");
    for (const Verdict verdict :
         {Verdict::kPass, Verdict::kFail, Verdict::kInvalid, Verdict::kError}) {
      page_.sample(with(labels(), "verdict", nameOf(verdict)), verdict == result_.verdict ? 1 : 0);
    }
    int holds = 0;
    int fails = 0;
    int voids = 0;
    for (const Expectation& one : result_.expectations) {
      ++(one.is_void ? voids : one.pass ? holds : fails);
    }
    page_.metric("faultline_expectations", "Lines of the scenario's expect, by what they came to.");
    page_.sample(with(labels(), "outcome", "holds"), holds);
    page_.sample(with(labels(), "outcome", "fails"), fails);
    page_.sample(with(labels(), "outcome", "void"), voids);
    page_.metric("faultline_noise_band_ratio", "95 % of equal runs differ by at most this share.");
    if (result_.noise) page_.sample(labels(), result_.noise->band_pct / kWholeInPercent);
  }

  void addStrategies() {
    std::vector<StrategyTally> tallies = tallyByStrategy(result_);
    std::erase_if(tallies, [&](const auto& tally) { return isModelled(tally.strategy); });
    const auto each = [&](const char* name, const char* help, auto valueOf) {
      page_.metric(name, help);
      for (const StrategyTally& tally : tallies) {
        page_.sample(labels(tally.strategy), static_cast<double>(valueOf(tally)));
      }
    };
    page_.metric("faultline_runs", "Runs of a strategy, by how they ended.");
    for (const StrategyTally& tally : tallies) {
      const Labels common = labels(tally.strategy);
      page_.sample(with(common, "status", "ok"), tally.ok);
      page_.sample(with(common, "status", "failed"), tally.failed);
      page_.sample(with(common, "status", "hung"), tally.hung);
      page_.sample(with(common, "status", "invalid"), tally.invalid);
    }
    each("faultline_failovers", "Failed rails whose data went over others, seen from each end.",
         [](const StrategyTally& tally) { return tally.failovers; });
    each("faultline_restarts", "Restarts from a checkpoint.",
         [](const StrategyTally& tally) { return tally.restarts; });
    each("faultline_lost_iterations",
         "What restarts cut off: iterations done again, or requests under way.",
         [](const StrategyTally& tally) { return tally.lost_iterations; });
    each("faultline_checked_elements", "Elements of results that were compared.",
         [](const StrategyTally& tally) { return tally.checked_elements; });
    each("faultline_wrong_elements", "Elements of results that were wrong.",
         [](const StrategyTally& tally) { return tally.wrong_elements; });
  }

  /// No run of a modelled row is made: it has nothing to count.
  bool isModelled(const std::string& strategy) const {
    const auto row = std::ranges::find(result_.summary, strategy, &Summary::strategy);
    return row != result_.summary.end() && row->origin == Origin::kModelled;
  }

  void addSpeeds() {
    page_.metric("faultline_row_info",
                 "A row of the report, whether it was measured, and what one must know about it; "
                 "always 1.");
    for (const Summary& row : result_.summary) {
      page_.sample(with(rowLabels(row), "note", row.note), 1);
    }
    std::map<std::string, std::vector<const Summary*>> by_unit;
    for (const Summary& row : result_.summary) {
      if (row.throughput) by_unit[unitInName(row.throughput->unit)].push_back(&row);
    }
    for (const auto& [unit, rows] : by_unit) {
      page_.metric("faultline_throughput_" + unit, "Median throughput of a strategy's runs.");
      for (const Summary* row : rows) page_.sample(rowLabels(*row), row->throughput->value);
    }
    const auto each = [&](const char* name, const char* help, auto percentOf) {
      page_.metric(name, help);
      for (const Summary& row : result_.summary) {
        const std::optional<double> percent = percentOf(row);
        if (percent) page_.sample(rowLabels(row), *percent / kWholeInPercent);
      }
    };
    using Percent = std::optional<double>;
    each("faultline_overhead_ratio",
         "The reference's throughput over the row's, v0/v - 1, median of the blocks.",
         [](const Summary& row) {
           return row.overhead_pct ? Percent(row.overhead_pct->median) : std::nullopt;
         });
    each("faultline_overhead_low_ratio", "Lower end of its 95 % interval.", [](const Summary& row) {
      const bool known = row.overhead_pct && row.overhead_pct->ci95;
      return known ? Percent(row.overhead_pct->ci95->lo) : std::nullopt;
    });
    each("faultline_overhead_high_ratio", "Upper end of its 95 % interval.",
         [](const Summary& row) {
           const bool known = row.overhead_pct && row.overhead_pct->ci95;
           return known ? Percent(row.overhead_pct->ci95->hi) : std::nullopt;
         });
    each("faultline_exposed_overhead_ratio",
         "What communication alone adds to a fault-free iteration, median of the blocks.",
         [](const Summary& row) {
           const auto& exposed = row.exposed_overhead_pct;
           return exposed ? Percent(exposed->median) : std::nullopt;
         });
    each("faultline_overhead_bound_ratio", "Overhead of the best possible algorithm.",
         [](const Summary& row) { return row.bound_pct; });
    const auto modelled = [&](const char* name, const char* help, auto amount) {
      page_.metric(name, help);
      for (const Summary& row : result_.summary) {
        const auto value = row.fault_cost ? amount(*row.fault_cost) : std::nullopt;
        if (value) page_.sample(rowLabels(row), *value);
      }
    };
    modelled("faultline_modelled_fault_seconds",
             "By a model: what one fault costs the job, or all requests together.",
             [](const FaultCost& cost) { return std::optional(cost.seconds); });
    modelled("faultline_modelled_fault_requests", "Requests that take longer with it.",
             [](const FaultCost& cost) { return cost.requests; });
  }

  Labels rowLabels(const Summary& row) const {
    return with(labels(row.strategy), "origin", nameOf(row.origin));
  }

  void addPauses() {
    page_.metric("faultline_failover_pause_seconds", "How long a channel stood still.", "summary");
    for (const Summary& row : result_.summary) {
      if (!row.failover_pause_ms) continue;
      const Labels common = labels(row.strategy);
      const Percentiles& pause = *row.failover_pause_ms;
      addQuantiles(common, pause);
      double sum_ms = 0;
      for (const Run& run : result_.runs) {
        if (run.strategy != row.strategy || !run.faulted) continue;
        for (const Failover& failover : run.failovers) sum_ms += failover.pause_ms;
      }
      page_.sample(common, sum_ms / kMillisecondsPerSecond, "_sum");
      page_.sample(common, pause.n, "_count");
    }
  }

  /// A row without samples of the time has runs that were not back, or none that was watched.
  void addAfterFaults() {
    const auto each = [&](const char* name, const char* help, auto valueOf) {
      page_.metric(name, help);
      for (const Summary& row : result_.summary) {
        page_.sample(rowLabels(row), std::optional<double>(valueOf(row)));
      }
    };
    using Value = std::optional<double>;
    each("faultline_after_fault_ratio",
         "Work in the second after the last fault, of fault_free's; median of the runs.",
         [](const Summary& row) {
           return row.after_pct ? Value(row.after_pct->median / kWholeInPercent) : std::nullopt;
         });
    each("faultline_after_fault_low_ratio", "The least of the runs.", [](const Summary& row) {
      return row.after_pct ? Value(row.after_pct->min / kWholeInPercent) : std::nullopt;
    });
    each("faultline_back_to_speed_max_seconds",
         "From the end of the last fault until 95 % of that is done; the longest of the runs.",
         [](const Summary& row) {
           const bool known = row.back_to_95_pct_ms && row.back_to_95_pct_ms->max;
           return known ? Value(*row.back_to_95_pct_ms->max / kMillisecondsPerSecond)
                        : std::nullopt;
         });
    each("faultline_never_back_runs",
         "Runs that were not back to that for as long as they were watched, or failed.",
         [](const Summary& row) {
           return row.back_to_95_pct_ms ? Value(row.back_to_95_pct_ms->never) : std::nullopt;
         });
  }

  void addQuantiles(const Labels& common, const Percentiles& times) {
    const auto quantile = [&](const char* name, const std::optional<double>& ms) {
      if (ms) page_.sample(with(common, "quantile", name), *ms / kMillisecondsPerSecond);
    };
    quantile("0.5", times.p50);
    quantile("0.95", times.p95);
    quantile("0.99", times.p99);
    quantile("1", times.max);
  }

  /// `add(row, rate, labels)` for each rate that each row was offered.
  template <typename Add>
  void eachRate(Add add) {
    for (const Summary& row : result_.summary) {
      for (std::size_t i = 0; i < row.rates.size(); ++i) {
        add(row, static_cast<int>(i),
            with(rowLabels(row), "qps", fmt::format("{}", row.rates[i].qps)));
      }
    }
  }

  /// Sum over the requests of all runs of the row.
  double sumMs(const Summary& row, int rate, std::optional<double> ServedRequest::*latency) const {
    double sum = 0;
    for (const Run& run : result_.runs) {
      if (run.strategy != row.strategy) continue;
      for (const ServedRequest& request : run.requests) {
        if (request.rate == rate) sum += (request.*latency).value_or(0);
      }
    }
    return sum;
  }

  /// Of a server, by the rate that it was offered.
  void addRequests() {
    page_.metric("faultline_requests", "Requests of all runs, by what became of them.");
    eachRate([&](const Summary& row, int i, const Labels& labels) {
      const RateRow& rate = row.rates[i];
      page_.sample(with(labels, "fate", "finished"), rate.finished);
      page_.sample(with(labels, "fate", "late"), rate.late);
      page_.sample(with(labels, "fate", "lost"), rate.lost);
    });
    page_.metric("faultline_redone_requests", "Of them, those that were begun again.");
    eachRate([&](const Summary& row, int i, const Labels& labels) {
      page_.sample(labels, row.rates[i].redone);
    });
    page_.metric("faultline_goodput_requests_per_second",
                 "Requests that were finished within the objectives.");
    eachRate([&](const Summary& row, int i, const Labels& labels) {
      page_.sample(labels, row.rates[i].goodput);
    });
    const auto latency = [&](const char* name, const char* help, Percentiles RateRow::*times,
                             std::optional<double> ServedRequest::*of) {
      page_.metric(name, help, "summary");
      eachRate([&](const Summary& row, int i, const Labels& labels) {
        const Percentiles& spread = row.rates[i].*times;
        addQuantiles(labels, spread);
        page_.sample(labels, sumMs(row, i, of) / kMillisecondsPerSecond, "_sum");
        page_.sample(labels, spread.n, "_count");
      });
    };
    latency("faultline_ttft_seconds", "From a request's arrival to its first token.",
            &RateRow::ttft_ms, &ServedRequest::ttft_ms);
    latency("faultline_tpot_seconds", "Time of each further token.", &RateRow::tpot_ms,
            &ServedRequest::tpot_ms);
    latency("faultline_e2e_seconds", "From a request's arrival to its last token.",
            &RateRow::e2e_ms, &ServedRequest::e2e_ms);
  }

  const ScenarioResult& result_;
  Page page_;
};

/// For the textfile collector of node_exporter, or anything else that reads this format.
class PrometheusRenderer final : public Renderer {
 public:
  const char* name() const override { return "prometheus"; }
  const char* fileName() const override { return "metrics.prom"; }
  std::string text(const ScenarioResult& result) const override { return Metrics(result).text(); }
};

}  // namespace

std::unique_ptr<Renderer> makePrometheusRenderer() {
  return std::make_unique<PrometheusRenderer>();
}

}  // namespace faultline::reports
