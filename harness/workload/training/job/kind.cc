#include <memory>

#include "harness/workload/job_kind.h"
#include "harness/workload/training/job/model_job.h"
#include "harness/workload/training/job/training_job.h"

namespace faultline::workload {
namespace {

std::unique_ptr<Job> makeTrained(const RankConfig& config) {
  const auto make = config.workload.model ? makeModelJob : makeTrainingJob;
  return make(config.workload, config.rank, config.size);
}

}  // namespace

extern const JobKind kTrainingJob;
constinit const JobKind kTrainingJob{.make = makeTrained};

}  // namespace faultline::workload
