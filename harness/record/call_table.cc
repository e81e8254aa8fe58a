#include "harness/record/call_table.h"

#include <algorithm>

#include "harness/scenario/workload_kind.h"

namespace faultline::run {

CallTable::CallTable(const scenario::Scenario& scenario)
    : ranks_(scenario.cluster.ranks()), callsPerCell_(scenario.workload.iterations) {
  if (scenario.workload.kind->hasCells) cells_ = cellsOf(scenario.workload.collective);
}

void CallTable::ended(int iteration, double ms, std::int64_t checked, std::int64_t wrong) {
  if (cells_.empty()) return;
  Call& call = calls_[iteration];
  if (call.endedRanks == ranks_) call = {};  // done again after a restart
  ++call.endedRanks;
  call.ms = std::max(call.ms, ms);
  call.checked += checked;
  call.wrong += wrong;
}

void CallTable::cutOff() {
  std::erase_if(calls_, [this](const auto& call) { return call.second.endedRanks < ranks_; });
}

void CallTable::interrupted(int iteration, double ms) {
  const auto call = calls_.find(iteration);
  if (call != calls_.end()) call->second.ms = std::max(call->second.ms, ms);
}

void CallTable::unfinished(int iteration, double ms) {
  if (cells_.empty()) return;
  Call& call = calls_[iteration];
  if (call.endedRanks == ranks_) return;
  call.ms = ms;
  call.unfinished = true;
}

}  // namespace faultline::run
