#pragma once

#include "base/status.h"
#include "harness/workload/rank_config.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// What a rank's communicator is made with. The node is that of this process.
/// kInvalidArgument when an address is none.
Result<comm::CommunicatorOptions> communicatorOptions(const RankConfig& config);

}  // namespace faultline::workload
