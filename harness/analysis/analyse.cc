#include "harness/analysis/analyse.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/analysis/after_fault.h"
#include "harness/analysis/call_bound.h"
#include "harness/analysis/call_rows.h"
#include "harness/analysis/drift_check.h"
#include "harness/analysis/expectations.h"
#include "harness/analysis/latency_rows.h"
#include "harness/analysis/noise.h"
#include "harness/analysis/settled_calls.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/strikes.h"
#include "harness/analysis/summary.h"
#include "harness/analysis/training_facts.h"
#include "harness/analysis/verdict.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/json.h"
#include "reports/headline.h"
#include "reports/machine_load.h"

namespace faultline::run {
namespace {

/// The entry, with the rows that follow from what was recorded.
reports::Run withRows(const scenario::Scenario& scenario, RecordedRun recorded) {
  reports::Run run = std::move(recorded.run);
  for (int rate = 0; rate < std::ssize(recorded.qps); ++rate) {
    run.rates.push_back(rateRow(run.requests, rate, recorded.qps[static_cast<std::size_t>(rate)]));
  }
  if (recorded.calls) {
    run.collectives = rowsOf(*recorded.calls, fatesOf(scenario, run));
    compareWithModels(scenario, run);
  }
  return run;
}

/// What a reader of the result should know, beside its numbers.
void addNotes(const scenario::Scenario& scenario, const scenario::Scenario& made, bool keptAwake,
              reports::ScenarioResult& result) {
  const auto note = [&](std::string text) {
    if (!text.empty()) result.notes.push_back(std::move(text));
  };
  std::ranges::move(inWords(result.strike_differences), std::back_inserter(result.notes));
  note(scaleOfServer(scenario));
  if (const auto& serving = scenario.workload.serving; serving && !serving->traceTold.empty()) {
    note(fmt::format("{}: {}", serving->traceFile, serving->traceTold));
  }
  if (keptAwake) note("idle processors were kept awake while runs were made");
  for (const scenario::FaultProcess& process : scenario.processes) {
    note("fault process: " + scenario::inWords(process, scenario.cluster));
  }
  note(whyNoiseUnknown(made, result.runs));
  note(reports::busyNote(result.runs));
}

}  // namespace

reports::ScenarioResult analyse(const scenario::Scenario& scenario, std::vector<RecordedRun> runs,
                                ExperimentFacts facts) {
  reports::ScenarioResult result;
  result.scenario = scenario::toJson(scenario);
  result.scenario_file = std::move(facts.scenario_file);
  result.seed = scenario.seed;
  result.started_at = std::move(facts.started_at);
  result.duration_ms = facts.duration_ms;
  result.interrupted = facts.interrupted;
  result.notes = std::move(facts.notes);
  result.environment = std::move(facts.environment);
  for (RecordedRun& run : runs) result.runs.push_back(withRows(scenario, std::move(run)));
  scenario::Scenario made = scenario;
  made.repeat = facts.blocks;

  result.training = trainingFacts(scenario);
  result.strike_differences = compareStrikes(result.runs);
  markVoidBlocks(result.strike_differences, result.runs);
  measureAfterFaults(scenario, result.runs);
  result.noise = noiseOf(made, result.runs, scenario.seed);
  result.drift = driftOf(made, result.runs);
  addNotes(scenario, made, facts.kept_awake, result);
  result.summary = summarise(made, result.runs, scenario.seed);
  // Of a part nothing can be expected.
  const bool whole = facts.bench_error.empty() && !result.interrupted && !facts.stopped;
  if (whole) result.expectations = evaluateExpectations(made, result);
  Judgement judgement = verdictOf(made, result);
  if (!facts.bench_error.empty() && judgement.verdict != reports::Verdict::kFail) {
    judgement = {reports::Verdict::kError, facts.bench_error};
  }
  result.verdict = judgement.verdict;
  result.reason = std::move(judgement.reason);
  result.headline = reports::headline(result);
  return result;
}

}  // namespace faultline::run
