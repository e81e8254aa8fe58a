#pragma once

#include <memory>

#include "harness/scenario/scenario.h"
#include "harness/workload/job.h"

namespace faultline::workload {

/// Training of `workload.model`.
std::unique_ptr<Job> makeModelJob(const scenario::Workload& workload, int rank, int ranks);

}  // namespace faultline::workload
