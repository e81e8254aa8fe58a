#include "harness/record/run_order.h"

#include <cstddef>
#include <utility>

#include "base/random.h"
#include "harness/baseline/strategy_table.h"

namespace faultline::run {
namespace {

/// Fisher and Yates. std::shuffle would give another order with every standard library.
void shuffle(std::vector<PlannedRun>& runs, Random& random) {
  for (std::size_t left = runs.size(); left > 1; --left) {
    std::swap(runs[left - 1], runs[random.below(left)]);
  }
}

}  // namespace

reports::Arm armOf(const scenario::Strategy& strategy) {
  const baseline::StrategySpec* const spec = baseline::findStrategy(strategy.kind());
  if (spec != nullptr && spec->reference) return reports::Arm::kPlain;
  return spec == nullptr || spec->meetsFaults ? reports::Arm::kFaulted : reports::Arm::kArmed;
}

std::vector<PlannedRun> orderRuns(const scenario::Scenario& scenario, std::uint64_t seed) {
  Random random(seed);
  std::vector<PlannedRun> plan;
  const scenario::NoiseLimits& noise = scenario.noise;
  const auto checkDrift = [&](int first) {
    for (int i = 0; i < noise.driftRuns; ++i) {
      plan.push_back({first + i, &noise.driftRow, reports::Arm::kPlain});
    }
  };
  checkDrift(0);
  for (int block = 0; block < scenario.repeat; ++block) {
    std::vector<PlannedRun> runs;
    for (const scenario::Strategy& strategy : scenario.strategies) {
      if (baseline::isModelled(strategy.kind())) continue;  // there is nothing to run
      runs.push_back({block, &strategy, armOf(strategy)});
    }
    shuffle(runs, random);
    plan.insert(plan.end(), runs.begin(), runs.end());
  }
  checkDrift(noise.driftRuns);
  return plan;
}

}  // namespace faultline::run
