#include "harness/analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/analysis/metric_scope.h"
#include "harness/analysis/metrics.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/record/run_order.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using reports::Verdict;

/// Blocks are counted from 1 for people.
std::string placeOf(const reports::Run& run) {
  return fmt::format("{}, block {}", run.strategy, run.block + 1);
}

std::string nameOf(const reports::AppliedFault& fault) {
  return fault.target.text.empty() ? fault.kind
                                   : fmt::format("{} ({})", fault.kind, fault.target.text);
}

/// Which fault of the run did not happen as planned, and how one knows.
std::string whatWasNotSeen(const reports::Run& run) {
  if (run.faults.empty()) return "no fault happened, though one was due";
  for (std::size_t index = 0; index < run.faults.size(); ++index) {
    const reports::AppliedFault& fault = run.faults[index];
    bool looked_at = false;
    for (const reports::Evidence& evidence : run.evidence) {
      if (evidence.fault != static_cast<int>(index)) continue;
      looked_at = true;
      if (!evidence.ok) {
        return fmt::format("{} left no evidence: {}", nameOf(fault), evidence.observed);
      }
    }
    if (!looked_at) return fmt::format("{} left no evidence", nameOf(fault));
    if (fault.hit && !fault.hit->ok) {
      return fmt::format("{} missed its moment: {}", nameOf(fault), fault.hit->detail);
    }
  }
  return "a fault did not take effect as planned";
}

}  // namespace

namespace {

bool isAboutEndOf(const scenario::Expectation& expectation, const reports::Run& run) {
  return (expectation.metric == "status" || expectation.metric == "exit_code") &&
         (expectation.strategy.empty() || expectation.strategy == run.strategy);
}

}  // namespace

bool endIsExpected(const scenario::Scenario& scenario, const reports::Run& run) {
  return std::ranges::any_of(scenario.expect, [&](const scenario::Expectation& expectation) {
    return isAboutEndOf(expectation, run);
  });
}

bool isHopeless(const scenario::Scenario& scenario, const reports::Run& run) {
  if (run.wrong_elements > 0 || run.status == reports::RunStatus::kInvalid) return true;
  if (!completed(run) && !endIsExpected(scenario, run)) return true;
  reports::ScenarioResult alone;
  alone.runs.push_back(run);
  const scenario::MetricLookup lookup = metricsOf(alone);
  return std::ranges::any_of(scenario.expect, [&](const scenario::Expectation& expectation) {
    return isAboutEndOf(expectation, run) && expectation.others.empty() &&
           scenario::evaluate(expectation, lookup).outcome == scenario::Verdict::Outcome::kFails;
  });
}

namespace {

std::optional<std::string> invalidity(const scenario::Scenario& scenario,
                                      const reports::ScenarioResult& result) {
  for (const reports::Run& run : result.runs) {
    // A run that ended as it should because of the fault needs the fault all the more.
    const bool counts = completed(run) || endIsExpected(scenario, run);
    const bool unseen = run.faulted && counts && !evidenceIsComplete(run);
    if (run.status != reports::RunStatus::kInvalid && !unseen) continue;
    const std::string why = run.status == reports::RunStatus::kInvalid && !run.message.empty()
                                ? run.message
                                : whatWasNotSeen(run);
    const bool seen = evidenceIsComplete(run);
    return fmt::format("{}: {}.{}", placeOf(run), why,
                       seen ? "" : " Without the fault the run proves nothing.");
  }
  return std::nullopt;
}

std::optional<std::string> wrongElements(const reports::ScenarioResult& result) {
  for (const reports::Run& run : result.runs) {
    if (run.wrong_elements == 0) continue;
    return fmt::format("{}: {} of {} checked result elements were wrong.", placeOf(run),
                       run.wrong_elements, run.checked_elements);
  }
  return std::nullopt;
}

std::optional<std::string> otherDigests(const scenario::Scenario& scenario,
                                        const reports::ScenarioResult& result) {
  if (scenario.workload.gradient.data != scenario::DataKind::kRandom) return std::nullopt;
  for (const reports::Run& run : result.runs) {
    const reports::Run* reference =
        findRun(result.runs, std::string(baseline::kReferenceRow), run.block);
    if (reference == nullptr || !didAllWork(*reference) || !didAllWork(run)) continue;
    if (run.digest == reference->digest) continue;
    return fmt::format(
        "{}: the results differ from those of fault_free in the same block (digest {} instead of "
        "{}).",
        placeOf(run), run.digest.empty() ? "missing" : run.digest, reference->digest);
  }
  return std::nullopt;
}

bool dataWereChecked(const scenario::Scenario& scenario, const reports::Run& run) {
  if (!scenario.workload.kind->runsRanks) return true;    // it is said that they are not
  if (scenario.workload.gradient.size == 0) return true;  // there are none
  if (scenario.workload.gradient.data != scenario::DataKind::kRandom) {
    return run.checked_elements > 0;
  }
  // Random data are checked by comparing digests with those of the reference.
  return !run.digest.empty() && scenario.find(std::string(baseline::kReferenceRow)) != nullptr;
}

std::optional<std::string> trouble(const scenario::Scenario& scenario,
                                   const reports::ScenarioResult& result) {
  for (const reports::Run& run : result.runs) {
    if (completed(run)) {
      if (dataWereChecked(scenario, run)) continue;
      return fmt::format("{}: not one result was checked, so nobody knows whether they were right.",
                         placeOf(run));
    }
    if (endIsExpected(scenario, run)) continue;
    const bool hung = run.status == reports::RunStatus::kHung;
    return fmt::format("{}: the run {}: {}", placeOf(run),
                       hung ? "hung and did not go on" : "failed",
                       run.message.empty() ? "no reason was recorded; see log.txt." : run.message);
  }
  for (int block = 0; block < scenario.repeat; ++block) {
    for (const scenario::Strategy& strategy : scenario.strategies) {
      if (baseline::isModelled(strategy.kind())) continue;
      if (findRun(result.runs, strategy.name, block) != nullptr) continue;
      return fmt::format("{}, block {}: this run was not made.", strategy.name, block + 1);
    }
  }
  return std::nullopt;
}

/// Whether the line does not hold because a run proves nothing: how that run ended, and what was
/// seen of its faults, is why. How a run failed or hung is as true without the fault.
bool saysWhyInvalid(const scenario::Expectation& expectation, const reports::Expectation& line,
                    const reports::ScenarioResult& result) {
  if (expectation.metric == "evidence.ok") return true;
  if (expectation.metric == "status") {
    return line.value == reports::nameOf(reports::RunStatus::kInvalid);
  }
  if (expectation.metric != "message" && expectation.metric != "exit_code") return false;
  return std::ranges::any_of(
      scopeOf(result, expectation.strategy).runs,
      [](const reports::Run* run) { return run->status == reports::RunStatus::kInvalid; });
}

/// `invalid`: a run is.
std::optional<std::string> brokenExpectations(const scenario::Scenario& scenario,
                                              const reports::ScenarioResult& result, bool invalid) {
  const auto fails = [&](const reports::Expectation& line) {
    if (line.pass || line.is_void) return false;
    const auto asked = std::ranges::find(scenario.expect, line.text, &scenario::Expectation::text);
    return !invalid || asked == scenario.expect.end() || !saysWhyInvalid(*asked, line, result);
  };
  const auto first = std::find_if(result.expectations.begin(), result.expectations.end(), fails);
  if (first == result.expectations.end()) return std::nullopt;
  const auto count = std::count_if(first, result.expectations.end(), fails);
  return fmt::format("{} of {} expectations {} not hold, the first: {}.", count,
                     result.expectations.size(), count == 1 ? "does" : "do", first->text);
}

/// In every block the strategies had different faults: there is nothing to compare.
std::optional<std::string> onlyVoidBlocks(const reports::ScenarioResult& result) {
  const auto first = std::ranges::find_if(
      result.runs, [](const reports::Run& run) { return !run.void_because.empty(); });
  if (first == result.runs.end()) return std::nullopt;
  const bool left = std::ranges::any_of(
      result.runs, [](const reports::Run& run) { return run.faulted && comparable(run); });
  if (left) return std::nullopt;
  return fmt::format("No block is left to compare. Block {}: {}.", first->block + 1,
                     first->void_because);
}

std::optional<std::string> voidExpectations(const reports::ScenarioResult& result) {
  const auto first = std::ranges::find_if(result.expectations, &reports::Expectation::is_void);
  if (first == result.expectations.end()) return std::nullopt;
  const auto count = std::count_if(first, result.expectations.end(),
                                   [](const auto& line) { return line.is_void; });
  return fmt::format("{} of {} expectations cannot be judged, the first: {}. {}", count,
                     result.expectations.size(), first->text, first->message);
}

}  // namespace

Judgement verdictOf(const scenario::Scenario& scenario, const reports::ScenarioResult& result) {
  if (const auto reason = wrongElements(result)) return {Verdict::kFail, *reason};
  if (const auto reason = otherDigests(scenario, result)) return {Verdict::kFail, *reason};
  if (result.interrupted) {
    return {Verdict::kError,
            fmt::format("Interrupted by the user: {} of {} runs are here.", result.runs.size(),
                        orderRuns(scenario, result.seed).size())};
  }
  if (result.runs.empty()) return {Verdict::kError, "Nothing was run."};
  if (const auto reason = invalidity(scenario, result)) {
    const auto broken = brokenExpectations(scenario, result, /*invalid=*/true);
    return broken ? Judgement{Verdict::kFail, *broken + " " + *reason}
                  : Judgement{Verdict::kInvalid, *reason};
  }
  if (const auto reason = trouble(scenario, result)) return {Verdict::kError, *reason};
  if (const auto reason = brokenExpectations(scenario, result, /*invalid=*/false))
    return {Verdict::kFail, *reason};
  if (const auto reason = onlyVoidBlocks(result)) return {Verdict::kInvalid, *reason};
  if (const auto reason = voidExpectations(result)) return {Verdict::kInvalid, *reason};
  if (const std::string noise = reports::voidBecause(result); !noise.empty()) {
    return {Verdict::kInvalid, fmt::format("This result is void: {}.", noise)};
  }
  return {Verdict::kPass, ""};
}

}  // namespace faultline::run
