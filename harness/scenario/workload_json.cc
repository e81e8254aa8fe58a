#include "harness/scenario/workload_json.h"

#include "base/units.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {

nlohmann::ordered_json iterationsJson(const Workload& workload) {
  nlohmann::ordered_json json{{"kind", workload.kind->name},
                              {"iterations", workload.iterations},
                              {"warmup_iterations", workload.warmupIterations}};
  if (workload.time) json["time"] = formatDuration(*workload.time);
  return json;
}

}  // namespace faultline::scenario
