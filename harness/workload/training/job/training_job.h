#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "harness/scenario/scenario.h"
#include "harness/workload/job.h"
#include "harness/workload/training/job/gradient.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// When the gradient of bucket `index` is ready, from the start of the iteration: the first third
/// of the compute time is the forward pass; the backward pass makes one bucket after the other,
/// the last at its end. Pure.
Duration bucketReadyAfter(Duration compute, int buckets, int index);

/// Data-parallel training on one rank: computes, and sums each bucket of the gradient over all
/// ranks as soon as it is ready, while the rest is computed. Returns when all buckets are reduced,
/// or with the first error. `gradient` must have been prepared. `started` is called with the start
/// time, inside the timed part.
Result<IterationTime> trainIteration(const scenario::Workload& workload, Gradient& gradient,
                                     comm::Communicator& communicator,
                                     const std::function<void(TimePoint)>& started);

std::unique_ptr<Job> makeTrainingJob(const scenario::Workload& workload, int rank, int ranks);

}  // namespace faultline::workload
