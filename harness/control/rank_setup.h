#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"
#include "harness/workload/rank_config.h"
#include "wire/message.h"

namespace faultline::run {

/// What the ranks of a run's attempts have in common.
struct RankSetup {
  const scenario::Scenario& scenario;
  const PlannedRun& planned;
  const std::vector<site::NodeNetwork>& network;  ///< by node
  std::uint64_t seed;
  std::string checkpoints;  ///< folder, of this run alone
};

std::string checkpointPath(const RankSetup& setup, int rank);

/// What a rank is told when it starts, but for what the attempt decides: the job's key, the class
/// of control messages, what is left to serve. A rank of a `restart` has no warm-up.
workload::RankConfig rankConfig(const RankSetup& setup, int rank, bool restart);

/// How many there are of what ranks speak of, in any run of that block.
wire::Counts countsOf(const scenario::Scenario& scenario, int block);

}  // namespace faultline::run
