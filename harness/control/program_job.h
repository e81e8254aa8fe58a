#pragma once

#include <memory>

#include "harness/control/job.h"

namespace faultline::run {

/// Of a workload of kind command: programs that are not ours. They run under a guard per node
/// (agent/guard.h), so that nothing of them is left afterwards.
std::unique_ptr<Job> makeProgramJob(RunParts& run);

}  // namespace faultline::run
