#include "harness/run/call_table.h"

#include <algorithm>
#include <utility>

#include "harness/stats/quantile.h"
#include "resilient_ccl/schedule/bound.h"

namespace faultline::run {

CallTable::CallTable(const scenario::Scenario& scenario)
    : ranks_(scenario.cluster.ranks()), callsPerCell_(scenario.workload.iterations) {
  if (scenario.workload.sweeps()) cells_ = cellsOf(scenario.workload.collective);
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

std::vector<reports::CollectiveRow> CallTable::rows(const CallFates& fates) const {
  std::vector<reports::CollectiveRow> rows;
  for (int index = 0; index < std::ssize(cells_); ++index) {
    reports::CollectiveRow row;
    std::vector<int> all;
    const auto end = calls_.lower_bound((index + 1) * callsPerCell_);
    for (auto it = calls_.lower_bound(index * callsPerCell_); it != end; ++it) {
      const Call& call = it->second;
      row.checked_elements += call.checked;
      row.wrong_elements += call.wrong;
      if (call.endedRanks < ranks_ && !call.unfinished) continue;
      row.unfinished += call.unfinished ? 1 : 0;
      all.push_back(it->first);
    }
    const CountedCalls counted = countedOf(all, fates);
    row.left_out = counted.leftOut;
    row.unsettled = counted.unsettled;
    row.untouched = counted.untouched;
    row.struck = counted.struck;
    std::vector<double> times;
    for (const int call : counted.calls) times.push_back(calls_.at(call).ms);
    if (times.empty()) continue;
    const scenario::SweepCell& cell = cells_[index];
    row.operation = collectiveName(cell.operation);
    row.size_bytes = bytesOf(cell, ranks_);
    row.count = countOf(cell, ranks_);
    row.dtype = reduction::nameOf(cell.dtype);
    if (scenario::reduces(cell.operation)) row.op = reduction::nameOf(cell.op);
    row.in_place = cell.inPlace;
    row.n = static_cast<int>(times.size());
    row.p50_ms = *stats::median(times);
    row.min_ms = *std::ranges::min_element(times);
    row.max_ms = *std::ranges::max_element(times);
    constexpr double kBytesPerMsOfGB = 1e6;  // 1 GB/s
    if (row.p50_ms > 0) {
      row.algbw = static_cast<double>(row.size_bytes) / row.p50_ms / kBytesPerMsOfGB;
    }
    // nccl-tests' factors are those of the bytes that a healthy port has to carry.
    row.busbw = row.algbw * schedule::faultFreeTime(cell.operation, ranks_);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace faultline::run
