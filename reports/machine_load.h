#pragma once

#include <optional>
#include <span>
#include <string>

#include "reports/run_result.h"

namespace faultline::reports {

/// What the machine did while all runs were made: of each share, the runs' median, and the least
/// and most that any of them had. Null where no run has it.
struct LoadOfRuns {
  int runs = 0;
  std::optional<LoadRange> others_pct;
  std::optional<LoadRange> busy_pct;
  std::optional<LoadRange> stolen_pct;
  std::optional<LoadRange> load_average;
  std::optional<LoadRange> waiting_pct;
};

/// Nullopt: no run says anything. Pure.
std::optional<LoadOfRuns> loadOf(std::span<const Run> runs);

/// A sentence for the reader where other programs or the host took enough of the machine in a run
/// to be seen in its speed; empty: they did not, or nobody knows. Pure.
std::string busyNote(std::span<const Run> runs);

}  // namespace faultline::reports
