#pragma once

#include <string>

#include "reports/result.h"

namespace faultline::reports {

/// What a result comes to, for somebody who reads nothing else: one line of plain text. It stands
/// last on the terminal, first in the report, and in result.json.
///
/// What takes trust away comes first: wrong results, an invalid or interrupted run, expectations
/// that do not hold. Strategies follow, those that survived the faults first; one that did not, or
/// only with a restart, is always named as such. Numbers of modelled rows say so. Pure.
std::string headline(const ScenarioResult& result);

/// "5 ms", "1.7 s", "10 min", "2.5 h": as many digits as somebody remembers.
std::string shortTime(double ms);

/// "+15 %", "+3.4 %": an overhead in as many digits; never "-": what is faster is "no slower".
std::string shortOverhead(double percent);

}  // namespace faultline::reports
