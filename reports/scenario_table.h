#pragma once

#include <span>
#include <string>

#include "reports/result.h"

namespace faultline::reports {

/// One Markdown table over many results: a row for each strategy that met faults, in the order of
/// the results. Its columns: how many faults struck, what the failovers held to be broken (how
/// often), their pause as p50 / p99 (or p50 / >max below 300 of them), what `expect` says of the
/// pause, and the verdict of the whole result. All numbers are those of the results' own summary.
std::string scenarioTable(std::span<const ScenarioResult> results);

}  // namespace faultline::reports
