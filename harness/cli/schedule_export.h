#pragma once

#include <string>

#include "base/status.h"
#include "harness/cli/schedule_job.h"
#include "resilient_ccl/schedule/msccl/algo.h"

namespace faultline::cli {

/// A schedule as MSCCL has it, and what was chosen for that; empty: nothing.
struct MscclExport {
  schedule::msccl::Algo algo;
  std::string told;
};

/// MSCCL has equal chunks, and few of them: what was asked for may not fit. What the flags leave
/// open (size, segments) is then chosen so that it does. kUnsupported otherwise, with a size that
/// fits where there is one.
Result<MscclExport> exportForMsccl(const ScheduleFlags& flags, const ScheduleJob& job);

}  // namespace faultline::cli
