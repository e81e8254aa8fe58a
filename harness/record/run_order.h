#pragma once

#include <cstdint>
#include <vector>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// One execution of the workload that is to be made.
struct PlannedRun {
  int block = 0;  ///< from 0
  /// Points into the scenario, which must outlive the plan.
  const scenario::Strategy* strategy = nullptr;
  reports::Arm arm = reports::Arm::kPlain;
};

/// All runs in the order in which to make them: the first half of the drift check (its blocks from
/// 0), `repeat` blocks, each with every strategy once, and the other half of the drift check (the
/// blocks that follow). The order in a block is drawn from the seed, so that a machine that slowly
/// gets faster or slower favours no strategy. Equal scenarios and seeds give equal plans on every
/// platform. Pure.
std::vector<PlannedRun> orderRuns(const scenario::Scenario& scenario, std::uint64_t seed);

/// fault_free is plain, strategies that meet faults are faulted, the others armed.
reports::Arm armOf(const scenario::Strategy& strategy);

}  // namespace faultline::run
