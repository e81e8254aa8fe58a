#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::reports {

/// Rows of the same call, of the runs of one strategy.
using CallRows = std::vector<const CollectiveRow*>;

/// Of the rows that have a number there, of an even count of them the mean of the middle two;
/// nullopt: none has.
std::optional<double> medianOf(const CallRows& rows, double CollectiveRow::*column);
std::optional<double> medianOf(const CallRows& rows, std::optional<double> CollectiveRow::*column);

/// What a call of a sweep took one strategy: medians and sums over the rows of its runs. A number
/// that no row has is absent.
struct StrategyCalls {
  std::string strategy;
  std::optional<double> p50_ms;
  std::optional<double> busbw;  ///< GB/s
  /// Share of the busbw of kReferenceRow: its time over that of this strategy, as both move the
  /// same bytes. Absent for that row itself, and where it has not run the call.
  std::optional<double> kept;
  std::optional<double> bound;  ///< this and the next three as in CollectiveRow
  std::optional<double> least;
  std::optional<double> model;
  std::optional<double> time_over_bound;
  std::int64_t n = 0;
  std::int64_t left_out = 0;
  std::int64_t untouched = 0;
  std::int64_t struck = 0;
  bool faulted = false;  ///< its runs have faults
  std::int64_t wrong_elements = 0;
  bool latency_only = false;  ///< in its first run: that follows from the size
  bool unsettled = false;     ///< in one of the runs
  bool mis_measured = false;  ///< likewise
};

/// All calls of a result with the same operation, size, type, operator and place.
struct SweptCall {
  std::string operation;
  std::int64_t size_bytes = 0;
  std::string dtype;
  std::string op;
  bool in_place = false;
  std::vector<StrategyCalls> strategies;  ///< in the order of tallyByStrategy
};

/// In the order of the first run that has them. Pure.
std::vector<SweptCall> sweptCalls(const ScenarioResult& result);

/// Whether faults met only some of the calls of a sweep. What calls kept of their bandwidth then
/// does not say what the faults cost: the time of the whole run does. One call of a run may be over
/// before a fault that begins with the run is there.
bool metSomeCalls(const ScenarioResult& result);

}  // namespace faultline::reports
