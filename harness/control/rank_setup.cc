#include "harness/control/rank_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::run {
namespace {

constexpr std::uint16_t kRendezvousPort = 29500;

static_assert(baseline::kAnyAlgorithm == comm::CommunicatorOptions::kAnyAlgorithm);

}  // namespace

std::string checkpointPath(const RankSetup& setup, int rank) {
  return fmt::format("{}/rank{}", setup.checkpoints, rank);
}

workload::RankConfig rankConfig(const RankSetup& setup, int rank, bool restart) {
  const scenario::Scenario& scenario = setup.scenario;
  const scenario::Strategy& strategy = *setup.planned.strategy;
  workload::RankConfig config;
  config.rank = rank;
  config.size = scenario.cluster.ranks();
  const int node = rank / scenario.cluster.ranksPerNode;
  const site::NodeNetwork& own = setup.network.at(static_cast<std::size_t>(node));
  for (const site::Nic& nic : own.rails) config.nics.push_back({nic.interface, nic.address});
  config.managementAddress = own.management.address;
  config.rendezvousAddress = setup.network.front().management.address;
  config.rendezvousPort = kRendezvousPort;
  const baseline::StrategySpec& kind =
      baseline::carriedOut(*baseline::findStrategy(strategy.kind()), strategy.options);
  config.resilient = kind.resilient;
  if (kind.sharesLoad) config.policy = channel::Policy::kPull;
  if (kind.planned()) {
    config.planned = true;
    config.algorithm = kind.plannedBy;
  }
  if (kind.written) config.schedule = strategy.options.get<std::string>(baseline::kContent);
  config.limits = scenario.limits;
  config.telemetry = scenario.telemetryOf(strategy);
  config.ioThreads = scenario.ioThreads;
  config.workload = scenario.workload;
  if (restart) config.workload.warmupIterations = 0;
  config.seed = setup.seed;
  const Parameters& chosen = strategy.options;
  config.corruptOneElement =
      chosen.has(baseline::kCorruptOneElement) && chosen.get<bool>(baseline::kCorruptOneElement);
  if (kind.losesRanks) {
    config.shrinkPatience = chosen.get<Duration>(baseline::kPatience);
  }
  if (kind.leavesRanksOut) {
    config.excludeAfter = chosen.get<Duration>(kind.hangOption);
  }
  if (kind.restarts && scenario.workload.kind->keepsState) {
    config.checkpointEvery = static_cast<int>(chosen.get<std::int64_t>(baseline::kCheckpointEvery));
    config.checkpointPath = checkpointPath(setup, rank);
  }
  return config;
}

wire::Counts countsOf(const scenario::Scenario& scenario, int block) {
  const scenario::Workload& workload = scenario.workload;
  const auto own = workload.kind->counts;
  const scenario::WorkloadCounts counts =
      own != nullptr ? own(scenario, block)
                     : scenario::WorkloadCounts{
                           .iterations = std::max(workload.iterations, workload.warmupIterations)};
  return {{"ranks", scenario.cluster.ranks()},
          {"rails", scenario.cluster.rails},
          {"iterations", counts.iterations},
          {"requests", counts.requests},
          {"rates", counts.rates}};
}

}  // namespace faultline::run
