#include "reports/bandwidth_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"
#include "reports/swept_calls.h"
#include "reports/tally.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr std::size_t kBandwidthCallColumns = 36;
constexpr std::size_t kCellColumns = 15;
constexpr std::size_t kStrategiesInATable = 4;

std::string callText(const SweptCall& call) {
  std::string text =
      fmt::format("{} {} {}", call.operation, formatSize(call.size_bytes), call.dtype);
  if (!call.op.empty() && call.op != "sum") text += " " + call.op;
  if (call.in_place) text += " in place";
  return text.substr(0, kBandwidthCallColumns);
}

/// "0.0912  77 %"; "!": not to be believed, or too small to say something; "*": of struck calls.
std::string cellText(const SweptCall& call, const std::string& strategy) {
  const auto of = std::ranges::find(call.strategies, strategy, &StrategyCalls::strategy);
  if (of == call.strategies.end() || !of->busbw) return kDash;
  constexpr double kPercent = 100;
  std::string text = fmt::format("{:.4f}", *of->busbw);
  if (of->kept) text += fmt::format(" {:>3.0f} %", *of->kept * kPercent);
  if (of->mis_measured || of->unsettled) return text + '!';
  return text + (of->untouched > 0 ? "*" : "");
}

}  // namespace

std::string bandwidthTable(const ScenarioResult& result) {
  const std::vector<SweptCall> calls = sweptCalls(result);
  if (calls.empty()) return "";
  std::vector<std::string> names;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    if (tally.runs > 0) names.push_back(tally.strategy);
  }
  std::string text = "bus bandwidth in GB/s, medians; and its share of fault_free's\n";
  bool doubtful = false;
  bool struck = false;
  for (std::size_t first = 0; first < names.size(); first += kStrategiesInATable) {
    const std::size_t end = std::min(names.size(), first + kStrategiesInATable);
    text += std::string(kBandwidthCallColumns, ' ');
    for (std::size_t i = first; i < end; ++i) {
      text += fmt::format(" {:>{}}", cleanText(names[i]).substr(0, kCellColumns), kCellColumns);
    }
    text += "\n";
    for (const SweptCall& call : calls) {
      text += fmt::format("{:<{}}", cleanText(callText(call)), kBandwidthCallColumns);
      for (std::size_t i = first; i < end; ++i) {
        const std::string cell = cellText(call, names[i]);
        doubtful = doubtful || cell.ends_with('!');
        struck = struck || cell.ends_with('*');
        text += fmt::format(" {:>{}}", cell, kCellColumns);
      }
      text += "\n";
    }
  }
  if (struck) text += "* of the calls that met a fault; the others of that size do not count\n";
  if (doubtful) text += "! better than possible, or of a plan that still changed\n";
  return text;
}

}  // namespace faultline::reports
