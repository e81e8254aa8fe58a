#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "harness/control/goodput_probe.h"
#include "harness/control/interrupt.h"
#include "harness/control/load_meter.h"
#include "harness/control/output_folder.h"
#include "harness/record/recorded_run.h"
#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"

namespace faultline::run {

class Transcript;

struct SessionOptions {
  OutputFolder& folder;  ///< for checkpoints, and what programs write (borrowed)
  int logFd = -1;        ///< where processes of ours log to (borrowed)
  std::uint64_t seed = 0;
  BlockGoodput* goodput = nullptr;   ///< what the runs of a block share (borrowed)
  LoadMeter* load = nullptr;         ///< of this run, to be kept up; null: nobody asks (borrowed)
  Transcript* transcript = nullptr;  ///< to write into; null: none (borrowed)
  bool keepCluster = false;          ///< hand the cluster out instead of taking it down
  /// Told, about every millisecond, what the run does, and the iteration that began last (-1:
  /// none); may be empty.
  std::function<void(std::string_view phase, int iteration)> progress{};
};

/// What one run came to.
struct SessionResult {
  RecordedRun recorded;
  bool interrupted = false;
  /// What did not end in order when it was interrupted, and was ended otherwise; empty: all did.
  std::string trouble;
  /// Shaping and TCP settings of the cluster, for the report's environment.
  std::map<std::string, std::string> cluster;
  std::unique_ptr<site::Cluster> keptCluster;
};

/// Executes one planned run from an empty machine to an empty machine: cluster, processes, faults,
/// measurements. What goes wrong with the job is part of the result; an error is returned only when
/// the bench itself could not do its work.
Result<SessionResult> runSession(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const SessionOptions& options, Interrupt& interrupt);

}  // namespace faultline::run
