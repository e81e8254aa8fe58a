#pragma once

#include <optional>
#include <vector>

#include "harness/record/call_table.h"
#include "reports/result.h"

namespace faultline::run {

/// What was recorded of a run that is over: an entry of the result, as far as it is facts alone,
/// and what its rows are worked out from.
struct RecordedRun {
  reports::Run run{};
  std::optional<CallTable> calls{};  ///< of ranks of ours
  std::vector<double> qps{};         ///< of the workload `inference`: requests per second, by rate
};

}  // namespace faultline::run
