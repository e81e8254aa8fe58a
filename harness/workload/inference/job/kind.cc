#include "harness/workload/inference/job/inference_server.h"
#include "harness/workload/job_kind.h"

namespace faultline::workload {
namespace {

void checkServed(const RankConfig& config, const JobKind::Fail& fail) {
  const scenario::Workload& workload = config.workload;
  if (workload.model && workload.serving && config.server) return;
  fail("server", "a server needs it, workload.training and workload.serving");
}

}  // namespace

extern const JobKind kInferenceJob;
constinit const JobKind kInferenceJob{.serve = makeServer, .check = checkServed};

}  // namespace faultline::workload
