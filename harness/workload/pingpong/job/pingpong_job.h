#pragma once

#include <memory>

#include "harness/scenario/scenario.h"
#include "harness/workload/job.h"

namespace faultline::workload {

/// Exchanges messages with one other rank. The lower one of a pair begins.
std::unique_ptr<Job> makePingpongJob(const scenario::Workload& workload, int rank, int ranks);

}  // namespace faultline::workload
