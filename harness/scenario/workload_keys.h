#pragma once

#include <string_view>

namespace faultline::scenario {

/// Whether a workload of this kind ("training", "collective", "inference", "command") has this key
/// of `workload`. All keys of `workloadTable()` are known; any other one is no kind's. Pure.
bool hasWorkloadKey(std::string_view kind, std::string_view key);

}  // namespace faultline::scenario
