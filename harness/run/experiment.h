#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "harness/cluster/netns_cluster.h"
#include "harness/run/interrupt.h"
#include "harness/run/output_folder.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

struct ExperimentOptions {
  const OutputFolder& folder;  ///< everything is written into it
  /// Where the scenario was read from, for the result; empty: not from a file.
  std::string scenarioFile{};
  /// Hands out the last cluster instead of taking it down, so that one can look inside.
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
  std::unique_ptr<cluster::NetnsCluster> keptCluster;  ///< with `keep`, when there was a last run
};

ExperimentOutcome runExperiment(const scenario::Scenario& scenario,
                                const ExperimentOptions& options, Interrupt& interrupt);

}  // namespace faultline::run
