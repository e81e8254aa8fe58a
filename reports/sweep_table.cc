#include "reports/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "reports/swept_calls.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr const char* kSweepHead =
    "| scenario | left of the ports | call | bytes | strategy | n | time ms | time / ideal | bound "
    "| / bound | model | / model | formula | / formula | wrong |\n"
    "|---|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

std::string ratioText(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : "";
}

std::string millisecondsText(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : "";
}

/// "1: 0.50, 2: 0.75 out 1.00 in": the nodes that do not have everything.
std::string portsOf(const CollectiveRow& row) {
  if (row.send.empty()) return "changing, or not known";
  std::string text;
  for (std::size_t node = 0; node < row.send.size(); ++node) {
    const double send = row.send[node], receive = row.receive[node];
    if (send == 1 && receive == 1) continue;
    text += fmt::format("{}{}: {:.2f}", text.empty() ? "" : ", ", node, send);
    if (send != receive) text += fmt::format(" out {:.2f} in", receive);
  }
  return text.empty() ? "all" : text;
}

std::string callOf(const CollectiveRow& row) {
  std::string text = row.operation + " " + row.dtype;
  if (!row.op.empty() && row.op != "sum") text += " " + row.op;
  return row.in_place ? text + " in place" : text;
}

std::string lineOf(const ScenarioResult& result, const std::string& strategy,
                   const CallRows& rows) {
  const auto over = [&](auto column) { return medianOf(rows, column); };
  const CollectiveRow& first = *rows.front();
  int calls = 0, leftOut = 0, untouched = 0;
  std::int64_t wrong = 0;
  bool misMeasured = false, unsettled = false;
  for (const CollectiveRow* row : rows) {
    calls += row->n;
    leftOut += row->left_out;
    untouched += row->untouched;
    unsettled = unsettled || row->unsettled;
    wrong += row->wrong_elements;
    misMeasured = misMeasured || row->mis_measured;
  }
  std::string overBound = ratioText(over(&CollectiveRow::time_over_bound));
  if (misMeasured) overBound += " mis-measured";
  if (first.latency_only) overBound = "latency";
  if (unsettled) overBound += " unsettled";
  const std::string counted = leftOut + untouched == 0
                                  ? fmt::format("{}", calls)
                                  : fmt::format("{} of {}", calls, calls + leftOut + untouched);
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
      cleanText(scenarioName(result)), portsOf(first), callOf(first), first.size_bytes,
      cleanText(strategy), counted, millisecondsText(over(&CollectiveRow::p50_ms)),
      ratioText(over(&CollectiveRow::time_over_ideal)), ratioText(over(&CollectiveRow::bound)),
      overBound, ratioText(over(&CollectiveRow::model)),
      ratioText(over(&CollectiveRow::time_over_model)), ratioText(over(&CollectiveRow::formula)),
      ratioText(over(&CollectiveRow::time_over_formula)), wrong);
}

}  // namespace

std::string sweepTable(std::span<const ScenarioResult> results) {
  std::string text = kSweepHead;
  for (const ScenarioResult& result : results) {
    // By cell in the order of the first run, then by strategy likewise.
    std::vector<std::pair<std::size_t, std::string>> order;
    std::map<std::pair<std::size_t, std::string>, CallRows> lines;
    std::vector<const CollectiveRow*> cells;
    const auto cellOf = [&](const CollectiveRow& row) {
      const auto key = [](const CollectiveRow& one) {
        return std::tie(one.operation, one.size_bytes, one.dtype, one.op, one.in_place, one.send,
                        one.receive);
      };
      const auto found =
          std::ranges::find_if(cells, [&](const auto* cell) { return key(*cell) == key(row); });
      if (found != cells.end()) return static_cast<std::size_t>(found - cells.begin());
      cells.push_back(&row);
      return cells.size() - 1;
    };
    for (const Run& run : result.runs) {
      for (const CollectiveRow& row : run.collectives) {
        CallRows& rows = lines[{cellOf(row), run.strategy}];
        if (rows.empty()) order.emplace_back(cellOf(row), run.strategy);
        rows.push_back(&row);
      }
    }
    std::ranges::stable_sort(order, {}, [](const auto& line) { return line.first; });
    for (const auto& line : order) text += lineOf(result, line.second, lines[line]);
  }
  return text;
}

}  // namespace faultline::reports
