#include "harness/workload/job_kind.h"

namespace faultline::workload {

// Programs that are not ours: harness/control/program_job.h.
extern const JobKind kCommandJob;
constinit const JobKind kCommandJob{};

}  // namespace faultline::workload
