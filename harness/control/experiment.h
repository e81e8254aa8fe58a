#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/control/interrupt.h"
#include "harness/control/output_folder.h"
#include "harness/record/experiment_facts.h"
#include "harness/record/recorded_run.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"
#include "reports/result.h"

namespace faultline::run {

/// Where an experiment is.
struct Moment {
  std::size_t run = 0;  ///< of `runs`, from 0
  std::size_t runs = 0;
  int block = 0;  ///< from 0
  std::string_view strategy;
  std::string_view phase;        ///< "setting up", "running", ...
  int iteration = -1;            ///< that began last; -1: none
  std::optional<Duration> left;  ///< of the whole experiment; nullopt: nobody knows
};

struct ExperimentOptions {
  OutputFolder& folder;  ///< everything is written into it
  /// Where the scenario was read from, for the result; empty: not from a file.
  std::string scenarioFile{};
  /// Where to write a transcript to (transcript.h); empty: nowhere.
  std::string transcript{};
  /// Hands out the last cluster instead of taking it down, so that one can look inside.
  bool keep = false;
  /// Told one line about each step, for the terminal.
  std::function<void(const std::string& line)> progress;
  /// Told, many times a second, where the experiment is; may be empty.
  std::function<void(const Moment& moment)> moment{};
  /// No run is begun after one of which this says that with it the scenario cannot pass any more;
  /// empty: all are made.
  std::function<bool(const reports::Run& run)> isHopeless{};
  /// No block but the first is begun that would not be over, with everything after it, so long
  /// after the start, as far as one can tell from the runs before.
  std::optional<Duration> budget{};
};

/// Makes every planned run of a scenario. What was recorded is always worth a result (analyse),
/// also when the experiment was interrupted or the bench itself failed half-way: the facts say so.
/// An error is returned in `benchError` beside it.
struct ExperimentOutcome {
  std::vector<RecordedRun> runs;  ///< in the order in which they were made
  ExperimentFacts facts;
  Status benchError;
  std::unique_ptr<site::Cluster> keptCluster;  ///< with `keep`, when there was a last run
};

ExperimentOutcome runExperiment(const scenario::Scenario& scenario,
                                const ExperimentOptions& options, Interrupt& interrupt);

/// What is worth a result, too, where nothing could be begun, `why` not or because it was
/// interrupted. `began`: when it was tried.
ExperimentOutcome notBegun(const scenario::Scenario& scenario, const ExperimentOptions& options,
                           const Status& why, bool interrupted, TimePoint began);

}  // namespace faultline::run
