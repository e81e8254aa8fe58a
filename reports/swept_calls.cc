#include "reports/swept_calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "reports/tally.h"

namespace faultline::reports {
namespace {

std::optional<double> median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

using CallKey =
    std::tuple<std::string_view, std::int64_t, std::string_view, std::string_view, bool>;

CallKey keyOf(const CollectiveRow& row) {
  return {row.operation, row.size_bytes, row.dtype, row.op, row.in_place};
}

/// The rows of each strategy, by its place in the table of strategies.
using RowsByStrategy = std::map<std::size_t, CallRows>;

StrategyCalls callsOf(const std::string& strategy, const CallRows& rows,
                      std::optional<double> reference_ms) {
  StrategyCalls calls;
  calls.strategy = strategy;
  calls.p50_ms = medianOf(rows, &CollectiveRow::p50_ms);
  calls.busbw = medianOf(rows, &CollectiveRow::busbw);
  calls.bound = medianOf(rows, &CollectiveRow::bound);
  calls.least = medianOf(rows, &CollectiveRow::least);
  calls.model = medianOf(rows, &CollectiveRow::model);
  calls.time_over_bound = medianOf(rows, &CollectiveRow::time_over_bound);
  if (reference_ms && calls.p50_ms && *calls.p50_ms > 0 && strategy != kReferenceRow) {
    calls.kept = *reference_ms / *calls.p50_ms;
  }
  calls.latency_only = rows.front()->latency_only;
  for (const CollectiveRow* row : rows) {
    calls.n += row->n;
    calls.left_out += row->left_out;
    calls.untouched += row->untouched;
    calls.struck += row->struck;
    calls.wrong_elements += row->wrong_elements;
    calls.unsettled = calls.unsettled || row->unsettled;
    calls.mis_measured = calls.mis_measured || row->mis_measured;
  }
  return calls;
}

}  // namespace

std::optional<double> medianOf(const CallRows& rows, double CollectiveRow::*column) {
  std::vector<double> values;
  for (const CollectiveRow* row : rows) values.push_back(row->*column);
  return median(std::move(values));
}

std::optional<double> medianOf(const CallRows& rows, std::optional<double> CollectiveRow::*column) {
  std::vector<double> values;
  for (const CollectiveRow* row : rows) {
    if (row->*column) values.push_back(*(row->*column));
  }
  return median(std::move(values));
}

std::vector<SweptCall> sweptCalls(const ScenarioResult& result) {
  const std::vector<StrategyTally> tallies = tallyByStrategy(result);
  std::map<CallKey, std::size_t> places;
  std::vector<const CollectiveRow*> firsts;
  std::vector<RowsByStrategy> rows;
  std::set<std::size_t> faulted;
  for (const Run& run : result.runs) {
    const auto tally = std::ranges::find(tallies, run.strategy, &StrategyTally::strategy);
    const auto strategy = static_cast<std::size_t>(tally - tallies.begin());
    if (run.faulted) faulted.insert(strategy);
    for (const CollectiveRow& row : run.collectives) {
      const auto [place, added] = places.try_emplace(keyOf(row), rows.size());
      if (added) {
        firsts.push_back(&row);
        rows.emplace_back();
      }
      rows[place->second][strategy].push_back(&row);
    }
  }

  const auto reference = std::ranges::find(tallies, kReferenceRow, &StrategyTally::strategy);
  const auto reference_place = static_cast<std::size_t>(reference - tallies.begin());
  std::vector<SweptCall> calls;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CollectiveRow& first = *firsts[i];
    SweptCall& call = calls.emplace_back();
    call.operation = first.operation;
    call.size_bytes = first.size_bytes;
    call.dtype = first.dtype;
    call.op = first.op;
    call.in_place = first.in_place;
    const auto free = rows[i].find(reference_place);
    const std::optional<double> reference_ms =
        free == rows[i].end() ? std::nullopt : medianOf(free->second, &CollectiveRow::p50_ms);
    for (const auto& [strategy, of] : rows[i]) {
      call.strategies.push_back(callsOf(tallies[strategy].strategy, of, reference_ms));
      call.strategies.back().faulted = faulted.contains(strategy);
    }
  }
  return calls;
}

bool metSomeCalls(const ScenarioResult& result) {
  return std::ranges::any_of(result.runs, [](const Run& run) {
    int met = 0;
    int missed = 0;
    for (const CollectiveRow& row : run.collectives) {
      met += row.struck;
      missed += row.untouched + row.n - row.struck;
    }
    return run.faulted && met > 0 && missed > 1;
  });
}

}  // namespace faultline::reports
