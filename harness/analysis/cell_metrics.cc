#include "harness/analysis/cell_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/analysis/speed_bound.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using reports::CollectiveRow;
using CellKey = std::tuple<std::string, std::int64_t, std::string, std::string, bool>;
/// The rows of one strategy, of all its runs.
using CellRows = std::map<CellKey, std::vector<const CollectiveRow*>>;

CellRows cellsOfRuns(const std::vector<const reports::Run*>& runs) {
  CellRows cells;
  for (const reports::Run* run : runs) {
    for (const CollectiveRow& row : run->collectives) {
      cells[{row.operation, row.size_bytes, row.dtype, row.op, row.in_place}].push_back(&row);
    }
  }
  return cells;
}

bool counts(const CollectiveRow& row, Cells which) {
  if (which == Cells::kLargeAllReduce && row.operation != "all_reduce") return false;
  return which == Cells::kAll || row.size_bytes >= kLargeCell;
}

double medianTime(const std::vector<const CollectiveRow*>& rows) {
  std::vector<double> times;
  for (const CollectiveRow* row : rows) times.push_back(row->p50_ms);
  return stats::median(times).value_or(0);
}

/// And faults met both or neither.
bool samePorts(const std::vector<const CollectiveRow*>& a,
               const std::vector<const CollectiveRow*>& b) {
  const auto same = [&](const CollectiveRow* row) {
    return row->send == a.front()->send && row->receive == a.front()->receive &&
           (row->struck > 0) == (a.front()->struck > 0);
  };
  return std::ranges::all_of(a, same) && std::ranges::all_of(b, same);
}

/// The others that met the same faults, and did not choose their algorithm themselves.
std::map<std::string, CellRows> rivalsOf(const MetricScope& scope) {
  std::map<std::string, std::vector<const reports::Run*>> runs;
  for (const reports::Run& run : scope.result.runs) {
    const baseline::StrategySpec* const kind = baseline::findStrategy(reports::kindOf(run));
    const bool fixed =
        kind != nullptr && kind->meetsFaults && kind->plannedBy != baseline::kAnyAlgorithm;
    if (!fixed || scope.runs.empty() || run.faulted != scope.runs.front()->faulted) continue;
    if (run.strategy != scope.runs.front()->strategy) runs[run.strategy].push_back(&run);
  }
  std::map<std::string, CellRows> rivals;
  for (const auto& [strategy, of] : runs) rivals[strategy] = cellsOfRuns(of);
  return rivals;
}

constexpr double kWhole = 100;  // percent

// What is kept is that of the same row here and in the report.
static_assert(reports::kReferenceRow == baseline::kReferenceRow);

struct KeptCell {
  const CollectiveRow* row;  ///< of the first run
  double percent;
};

std::vector<KeptCell> keptCells(const MetricScope& scope, Cells which) {
  std::vector<const reports::Run*> reference;
  for (const reports::Run& run : scope.result.runs) {
    if (run.strategy == baseline::kReferenceRow) reference.push_back(&run);
  }
  const CellRows whole = cellsOfRuns(reference);
  std::vector<KeptCell> kept;
  for (const auto& [key, rows] : cellsOfRuns(scope.runs)) {
    if (!counts(*rows.front(), which) || rows.front()->latency_only) continue;
    const auto before = whole.find(key);
    const double time = medianTime(rows);
    if (before == whole.end() || time <= 0) return {};
    kept.push_back({rows.front(), kWhole * medianTime(before->second) / time});
  }
  return kept;
}

}  // namespace

std::vector<double> cellRatios(const MetricScope& scope, Cells which,
                               std::optional<double> CollectiveRow::*column) {
  std::vector<double> ratios;
  for (const auto& [key, rows] : cellsOfRuns(scope.runs)) {
    if (!counts(*rows.front(), which) || rows.front()->latency_only) continue;
    std::vector<double> values;
    for (const CollectiveRow* row : rows) {
      if (!(row->*column)) return {};
      values.push_back(*(row->*column));
    }
    ratios.push_back(*stats::median(values));
  }
  return ratios;
}

std::vector<double> cellsOverBest(const MetricScope& scope, Cells which) {
  std::vector<double> ratios;
  const std::map<std::string, CellRows> rivals = rivalsOf(scope);
  for (const auto& [key, rows] : cellsOfRuns(scope.runs)) {
    if (!counts(*rows.front(), which)) continue;
    std::optional<double> best;
    for (const auto& [strategy, cells] : rivals) {
      const auto rival = cells.find(key);
      if (rival == cells.end() || !samePorts(rows, rival->second)) continue;
      const double time = medianTime(rival->second);
      if (time > 0) best = std::min(best.value_or(time), time);
    }
    if (!best) return {};
    ratios.push_back(medianTime(rows) / *best);
  }
  return ratios;
}

std::vector<double> cellsKept(const MetricScope& scope, Cells which) {
  std::vector<double> kept;
  for (const KeptCell& cell : keptCells(scope, which)) kept.push_back(cell.percent);
  return kept;
}

std::string cellKeptTooMuch(const MetricScope& scope) {
  for (const KeptCell& cell : keptCells(scope, Cells::kLarge)) {
    if (!cell.row->least || cell.percent * *cell.row->least <= kWhole * (1 + kBoundTolerance)) {
      continue;
    }
    return fmt::format("{} of {} bytes kept {:.1f} % of fault_free, of {:.1f} % that are possible",
                       cell.row->operation, cell.row->size_bytes, cell.percent,
                       kWhole / *cell.row->least) +
           ": mis-measured.";
  }
  return "";
}

std::string misMeasuredCell(const MetricScope& scope, bool othersToo) {
  const auto look = [](const reports::Run& run) -> std::string {
    const auto row = std::ranges::find_if(run.collectives, &CollectiveRow::mis_measured);
    if (row == run.collectives.end()) return "";
    return fmt::format("{} of {} bytes of {}, block {}, was faster than possible: mis-measured.",
                       row->operation, row->size_bytes, run.strategy, run.block + 1);
  };
  for (const reports::Run* run : scope.runs) {
    if (const std::string cell = look(*run); !cell.empty()) return cell;
  }
  for (const reports::Run& run : scope.result.runs) {
    if (!othersToo) break;
    if (const std::string cell = look(run); !cell.empty()) return cell;
  }
  return "";
}

}  // namespace faultline::run
