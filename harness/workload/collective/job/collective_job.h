#pragma once

#include <memory>

#include "harness/scenario/scenario.h"
#include "harness/workload/job.h"

namespace faultline::workload {

/// Every iteration is one call; where there is a root, it is rank 0.
std::unique_ptr<Job> makeCollectiveJob(const scenario::Workload& workload, int rank, int ranks);

}  // namespace faultline::workload
