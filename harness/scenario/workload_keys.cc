#include "harness/scenario/workload_keys.h"

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

bool hasWorkloadKey(std::string_view kind, std::string_view key) {
  const bool sweeps = kind == Workload::kCollectiveKind;
  const bool foreign = kind == Workload::kCommandKind;
  const bool serves = kind == Workload::kInferenceKind;
  const bool trains = !sweeps && !foreign && !serves;
  const struct {
    std::string_view key;
    bool its;
  } keys[] = {{"kind", true},
              {"compute", trains},
              {"gradient", trains},
              {"model", trains || serves},
              {"device", trains || serves},
              {"parallel", trains || serves},
              {"micro_batches", trains},
              {"micro_batch", trains},
              {"sequence", trains},
              {"scale", trains || serves},
              {"collective", sweeps},
              {"command", foreign},
              {"inference", serves},
              {"iterations", !foreign && !serves},
              {"warmup_iterations", !foreign},
              {"time", !foreign && !serves}};
  for (const auto& one : keys) {
    if (one.key == key) return one.its;
  }
  return false;
}

}  // namespace faultline::scenario
