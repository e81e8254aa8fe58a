#pragma once

#include <memory>

#include "harness/workload/rank_config.h"
#include "harness/workload/server.h"

namespace faultline::workload {

/// `config` outlives it.
std::unique_ptr<Server> makeServer(const RankConfig& config);

}  // namespace faultline::workload
