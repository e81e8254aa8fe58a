#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/result.h"

namespace faultline::reports {

struct TerminalStyle {
  bool colour = false;     ///< only when the output is a terminal
  std::string report_dir;  ///< where the files are; named at the end when not empty
};

/// The sequences that colour the summary.
std::span<const std::string_view> terminalColours();

/// The table that ends `faultline run`: strategies, verdict, expectations, where the report is and
/// how long it took. No line is wider than 100 columns but the last one, which is the headline.
std::string terminalSummary(const ScenarioResult& result, const TerminalStyle& style = {});

}  // namespace faultline::reports
