#include "harness/run/run_counts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace faultline::run {

int distinctIterations(const reports::Run& run) {
  std::set<int> indexes;
  for (const reports::Iteration& iteration : run.iterations) indexes.insert(iteration.index);
  return static_cast<int>(indexes.size());
}

std::size_t distinctErrors(const reports::Run& run) {
  std::set<std::string> words;
  for (const reports::RankError& error : run.errors) words.insert(error.message);
  return words.size();
}

std::size_t failoversPerConnection(const reports::Run& run) {
  std::map<std::tuple<int, int, int>, std::size_t> times;
  std::size_t most = 0;
  for (const auto* failovers : {&run.failovers, &run.idle_failovers}) {
    for (const reports::Failover& failover : *failovers) {
      most = std::max(most, ++times[{failover.rank, failover.peer, failover.rail}]);
    }
  }
  return most;
}

std::size_t planChanges(const reports::Run& run) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> epochs;
  std::set<std::uint32_t> communicators;
  for (const reports::AppliedPlan& plan : run.plans) {
    epochs.emplace(plan.communicator, plan.epoch);
    communicators.insert(plan.communicator);
  }
  return epochs.size() - communicators.size();
}

}  // namespace faultline::run
