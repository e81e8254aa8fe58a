#include "reports/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/headline.h"
#include "reports/tally.h"

namespace faultline::reports {
namespace {

std::string plural(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", groupDigits(count), noun, count == 1 ? "" : "s");
}

/// Only called for results that pass: digests that differ would have failed them.
std::string aboutDigests(const ScenarioResult& result) {
  const auto runs = std::ranges::count_if(
      result.runs, [](const Run& run) { return !run.digest.empty() && run.arm != Arm::kPlain; });
  if (std::ranges::any_of(result.runs, [](const Run& run) { return !run.processes.empty(); })) {
    return "Checked elements: none. The data of programs that are not ours are not known.";
  }
  if (runs == 0) return "No data was checked.";
  return fmt::format("The digests of all results of {} equal those of the fault-free ones.",
                     plural(runs, "run"));
}

std::string aboutData(const ScenarioResult& result, const StrategyTally& all) {
  if (all.checked_elements == 0) return aboutDigests(result);
  if (all.wrong_elements == 0) {
    return fmt::format("All of {} checked result elements were right.",
                       groupDigits(all.checked_elements));
  }
  return fmt::format("{} of {} checked result elements were wrong.",
                     groupDigits(all.wrong_elements), groupDigits(all.checked_elements));
}

void addFailedExpectations(const ScenarioResult& result, std::vector<std::string>& broken) {
  for (const Expectation& expectation : result.expectations) {
    if (expectation.pass || expectation.is_void) continue;
    std::string reason =
        fmt::format("Expected {}, found {}.", expectation.text, valueText(expectation.value));
    if (!expectation.message.empty()) reason += " " + expectation.message;
    broken.push_back(std::move(reason));
  }
}

/// The verdict's own reason, unless it only counts expectations: they are all listed.
void addReason(const ScenarioResult& result, std::vector<std::string>& reasons) {
  const std::string counted = fmt::format(" of {} expectations ", result.expectations.size());
  const std::size_t digits = result.reason.find_first_not_of("0123456789");
  const bool counts = digits != std::string::npos && digits > 0 &&
                      result.reason.substr(digits).starts_with(counted);
  if (!result.reason.empty() && !counts) reasons.push_back(result.reason);
}

void addInvalidRuns(const ScenarioResult& result, std::vector<std::string>& reasons) {
  for (const Run& run : result.runs) {
    if (run.status != RunStatus::kInvalid) continue;
    std::string reason = fmt::format("{}, block {}: {}", run.strategy, run.block + 1,
                                     run.message.empty() ? "invalid" : run.message);
    // The first one is the verdict's own reason already.
    if (!result.reason.starts_with(reason)) reasons.push_back(std::move(reason));
  }
}

void addEvidence(const ScenarioResult& result, std::vector<std::string>& reasons) {
  std::int64_t faults = 0;
  std::int64_t seen = 0;
  std::int64_t observations = 0;
  for (const Run& run : result.runs) {
    faults += static_cast<std::int64_t>(run.faults.size());
    observations += static_cast<std::int64_t>(run.evidence.size());
    seen += std::count_if(run.evidence.begin(), run.evidence.end(),
                          [](const Evidence& evidence) { return evidence.ok; });
  }
  if (faults == 0) return;
  std::string who = plural(observations, "independent observation");
  if (seen != observations) {
    who = groupDigits(seen) + " of " + who;
  } else if (seen > 1) {
    who = "all of " + who;
  }
  reasons.push_back(fmt::format("{} {} injected; {} {} that it really happened.",
                                plural(faults, "fault"), faults == 1 ? "was" : "were", who,
                                seen == 1 ? "shows" : "show"));
}

/// Whether every fault that was injected was seen by somebody else.
bool allSeen(const ScenarioResult& result) {
  return std::ranges::all_of(
      result.runs, [](const Run& run) { return std::ranges::all_of(run.evidence, &Evidence::ok); });
}

/// Whether every run went as planned; what then is invalid is what was measured.
bool runsProve(const ScenarioResult& result) {
  return allSeen(result) && std::ranges::none_of(result.runs, [](const Run& run) {
           return run.status == RunStatus::kInvalid;
         });
}

/// Whether a job ended in an error of its own, which the bench has only reported.
bool jobFailed(const ScenarioResult& result) {
  return std::ranges::any_of(result.runs, [](const Run& run) {
    return run.status == RunStatus::kFailed ||
           (run.status == RunStatus::kHung && run.restarts.empty());
  });
}

/// Strategies by name: what one of them did is nothing that the others did.
void addRecovery(const ScenarioResult& result, std::vector<std::string>& reasons) {
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    const std::string& who = tally.strategy;
    if (tally.failed + tally.hung > 0) {
      reasons.push_back(
          fmt::format("{}: of {}, {}.", who, plural(tally.runs, "run"), statusWords(tally)));
    }
    if (tally.failovers > 0) {
      reasons.push_back(fmt::format("{}: {}; the longest interruption was {:.1f} ms.", who,
                                    plural(tally.failovers, "failover"), tally.longest_pause_ms));
    }
    if (tally.restarts == 0) continue;
    const std::string restarts = plural(tally.restarts, "restart");
    reasons.push_back(serves(result)
                          ? fmt::format("{}: {}, with {} that had to be begun again.", who,
                                        restarts, plural(tally.lost_iterations, "request"))
                          : fmt::format("{}: {} from a checkpoint, with {} of lost work.", who,
                                        restarts, plural(tally.lost_iterations, "iteration")));
  }
}

}  // namespace

std::string groupDigits(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool behind_a_digit = i > 0 && digits[i - 1] != '-';
    if (behind_a_digit && (digits.size() - i) % 3 == 0) text += ' ';
    text += digits[i];
  }
  return text;
}

std::string valueText(const Json& value) {
  if (value.is_null()) return "no such value";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string spreadText(const Percentiles& times) {
  const auto text = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.1f}", *value) : "-";
  };
  if (times.n == 0) return "-";
  return text(times.p50) + " / " + (times.p99 ? text(times.p99) : ">" + text(times.max));
}

std::string noiseText(const Noise& noise) {
  std::string text = fmt::format(
      "noise: {} pairs of equal runs (fault_free, {}) differ by up to {:.2f} %, their median by up "
      "to {:.2f} %",
      noise.pairs, noise.strategy, noise.band_pct, noise.median_band_pct);
  for (const auto& [what, band] :
       {std::pair{"TTFT", noise.ttft_band_pct}, std::pair{"TPOT", noise.tpot_band_pct}}) {
    if (band) text += fmt::format("; median {} of a rate by up to {:.2f} %", what, *band);
  }
  if (noise.drift_pct) text += fmt::format("; drift {:+.2f} %", *noise.drift_pct);
  return noise.void_because.empty() ? text : fmt::format("! {}: {}", text, noise.void_because);
}

std::string driftText(const Drift& drift) {
  std::string text = fmt::format("drift: {} fault-free runs {} and {} {}", drift.before,
                                 drift.across_blocks ? "of the first blocks" : "before all others",
                                 drift.after, drift.across_blocks ? "of the last" : "after them");
  if (drift.drift_pct) {
    text += fmt::format(": {:+.2f} % time, {:.3g} % at most", *drift.drift_pct, drift.limit_pct);
  }
  if (drift.p) text += fmt::format(" (p = {:.2g})", *drift.p);
  if (drift.spread_pct) {
    text += fmt::format("; those on the same side differ by up to {:.2f} %", *drift.spread_pct);
  }
  return drift.void_because.empty() ? text : fmt::format("! {}: {}", text, drift.void_because);
}

bool serves(const ScenarioResult& result) {
  return std::ranges::any_of(result.runs, [](const Run& run) { return !run.requests.empty(); });
}

std::string burstText(const RateRow& rate) {
  if (!rate.burst_below_requests) return "";
  return fmt::format(
      "a burst, not a rate: all have arrived before a few could be served one after the other; "
      "set `requests` to {} or more",
      *rate.burst_below_requests);
}

std::string missingPercentiles(const Percentiles& times) {
  if (times.n == 0 || times.p99) return "";
  const std::string p99 = fmt::format("p99 from {} on", Percentiles::kSamplesForP99);
  if (times.p95) return p99;
  return fmt::format("p95 from {} on, {}", Percentiles::kSamplesForP95, p99);
}

std::string faultCostText(const FaultCost& cost) {
  // Parts of a second matter only where there are few; numbers of requests are whole to a reader.
  constexpr double kWhole = 10;
  if (!cost.requests) {
    constexpr double kMinute = 60;
    const bool minutes = cost.seconds >= kWhole * kMinute;
    return fmt::format("{:.{}f} {} of the job", cost.seconds / (minutes ? kMinute : 1),
                       cost.seconds < kWhole ? 2 : 0, minutes ? "min" : "s");
  }
  return fmt::format("{:.{}f} s of {:.0f} req", cost.seconds, cost.seconds < kWhole ? 2 : 0,
                     *cost.requests);
}

std::string besideHeadline(const VerdictText& verdict, const ScenarioResult& result) {
  return headline(result).starts_with(verdict.headline) ? "" : verdict.headline;
}

VerdictText explainVerdict(const ScenarioResult& result) {
  VerdictText text;
  std::vector<std::string>& reasons = text.reasons;
  const StrategyTally all = tallyAll(result);
  const auto expectations = static_cast<std::int64_t>(result.expectations.size());
  const auto failing = std::count_if(
      result.expectations.begin(), result.expectations.end(),
      [](const Expectation& expectation) { return !expectation.pass && !expectation.is_void; });

  addReason(result, reasons);
  if (result.interrupted) {
    text.headline = fmt::format("Interrupted after {}: this is a partial result",
                                plural(static_cast<std::int64_t>(result.runs.size()), "run"));
    return text;
  }
  switch (result.verdict) {
    case Verdict::kPass:
      text.headline = expectations == 0   ? "The run finished; the scenario expects nothing of it"
                      : expectations == 1 ? "The expectation holds"
                                          : fmt::format("All {} expectations hold", expectations);
      reasons.push_back(aboutData(result, all));
      addEvidence(result, reasons);
      addRecovery(result, reasons);
      break;
    case Verdict::kFail:
      text.headline = failing == 0 ? std::string("The run failed")
                                   : fmt::format("{} of {} {} not hold", failing,
                                                 plural(expectations, "expectation"),
                                                 failing == 1 ? "does" : "do");
      addFailedExpectations(result, text.broken);
      if (all.wrong_elements > 0) reasons.push_back(aboutData(result, all));
      addInvalidRuns(result, reasons);
      break;
    case Verdict::kInvalid:
      text.headline =
          !runsProve(result)            ? "These numbers prove nothing: a run did not go as planned"
          : voidBecause(result).empty() ? "What was measured does not decide all expectations"
                                        : "Void: the machine was too noisy for any speed";
      addInvalidRuns(result, reasons);
      if (!allSeen(result)) {
        reasons.push_back(
            "A run counts only when something other than the injector saw the fault happen.");
      }
      break;
    case Verdict::kError:
      text.headline = jobFailed(result) ? "A job did not survive" : "The bench could not finish";
      if (result.reason.empty()) reasons.push_back("No reason was recorded; see log.txt.");
      break;
  }
  return text;
}

}  // namespace faultline::reports
