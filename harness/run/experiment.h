#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "harness/run/interrupt.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

struct ExperimentOptions {
  std::string directory;  ///< exists; everything is written into it
  /// Leaves the last cluster up until Ctrl-C, so that one can look inside.
  bool keep = false;
  /// Told one line about each step, for the terminal.
  std::function<void(const std::string& line)> progress;
};

/// Runs a whole scenario: every planned run, summaries, expectations, verdict. The result is always
/// worth writing, also when it was interrupted or the bench itself failed half-way: its verdict and
/// reason say so. An error is returned in `benchError` beside it.
struct ExperimentOutcome {
  reports::ScenarioResult result;
  Status benchError;
};

ExperimentOutcome runExperiment(const scenario::Scenario& scenario,
                                const ExperimentOptions& options, Interrupt& interrupt);

}  // namespace faultline::run
