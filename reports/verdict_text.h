#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::reports {

/// The verdict in words that somebody understands who sees this program for the first time.
struct VerdictText {
  std::string headline;              ///< one sentence
  std::vector<std::string> reasons;  ///< why; the most important first
};

VerdictText explainVerdict(const ScenarioResult& result);

/// "1 234 567": digits in groups of three.
std::string groupDigits(std::int64_t number);

/// The value of an expectation as text: 38.2, ok, or "no such value".
std::string valueText(const Json& value);

}  // namespace faultline::reports
