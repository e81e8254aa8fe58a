#include "harness/workload/job_kind.h"

#include <algorithm>
#include <array>

#include "harness/scenario/workload_list.h"

namespace faultline::workload {

#define FAULTLINE_DECLARED(name) extern const JobKind k##name##Job;
FAULTLINE_WORKLOADS(FAULTLINE_DECLARED)
#undef FAULTLINE_DECLARED

const JobKind& jobKind(const scenario::WorkloadKind& kind) {
#define FAULTLINE_ROW(name) &k##name##Job,
  static constexpr std::array kJobs{FAULTLINE_WORKLOADS(FAULTLINE_ROW)};  // as workloadKinds()
#undef FAULTLINE_ROW
  static constexpr JobKind kNone;
  const auto kinds = scenario::workloadKinds();
  const auto found = std::ranges::find(kinds, &kind);
  return found == kinds.end() ? kNone : *kJobs[static_cast<std::size_t>(found - kinds.begin())];
}

}  // namespace faultline::workload
