#include "harness/analysis/call_rows.h"

#include <algorithm>

#include "harness/stats/quantile.h"
#include "resilient_ccl/schedule/bound.h"

namespace faultline::run {

std::vector<reports::CollectiveRow> rowsOf(const CallTable& table, const CallFates& fates) {
  const auto& calls = table.calls();
  const auto& cells = table.cells();
  const int ranks = table.ranks();
  std::vector<reports::CollectiveRow> rows;
  for (int index = 0; index < std::ssize(cells); ++index) {
    reports::CollectiveRow row;
    std::vector<int> all;
    const auto end = calls.lower_bound((index + 1) * table.callsPerCell());
    for (auto it = calls.lower_bound(index * table.callsPerCell()); it != end; ++it) {
      const CallTable::Call& call = it->second;
      row.checked_elements += call.checked;
      row.wrong_elements += call.wrong;
      if (call.endedRanks < ranks && !call.unfinished) continue;
      row.unfinished += call.unfinished ? 1 : 0;
      all.push_back(it->first);
    }
    const CountedCalls counted = countedOf(all, fates);
    row.left_out = counted.leftOut;
    row.unsettled = counted.unsettled;
    row.untouched = counted.untouched;
    row.struck = counted.struck;
    std::vector<double> times;
    for (const int call : counted.calls) times.push_back(calls.at(call).ms);
    if (times.empty()) continue;
    const scenario::SweepCell& cell = cells[index];
    row.operation = collectiveName(cell.operation);
    row.size_bytes = bytesOf(cell, ranks);
    row.count = countOf(cell, ranks);
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
    row.busbw = row.algbw * schedule::faultFreeTime(cell.operation, ranks);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace faultline::run
