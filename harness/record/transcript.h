#pragma once

#include <fstream>
#include <string>
#include <utility>

#include "base/status.h"
#include "harness/record/experiment_facts.h"
#include "harness/record/observed.h"
#include "harness/record/run_events.h"
#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

/// Everything that a result is worked out from, in a file: so that the result can be worked out
/// again, by another version of this program, say, and be compared (docs/transcript.md).
namespace faultline::run {

/// Writes a transcript while an experiment goes on. What cannot be written is told at the end.
class Transcript {
 public:
  /// Makes the file; what was there is lost.
  static Result<Transcript> create(const std::string& path, const scenario::Scenario& scenario);

  void runBegan(const PlannedRun& planned);
  void add(const RunEvent& event);
  void runEnded(const Observed& observed);
  /// `load`: what else the machine did during the run that was written last.
  void add(const reports::MachineLoad& load);
  /// The last line. An error when any could not be written.
  Status finish(const ExperimentFacts& facts);

 private:
  Transcript(std::string path, std::ofstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ofstream file_;
};

}  // namespace faultline::run
