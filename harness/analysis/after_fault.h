#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Whether a job comes back to its speed when its last fault has been taken back.
///
/// What is counted is work over time, in windows of one second, pauses and checks of data between
/// iterations included. An iteration counts as done evenly from its begin to its end, so that a
/// window may hold a share of it: where an iteration is longer than a window, a window tells how
/// fast that iteration was, and no more. An iteration that is done again after a restart counts
/// once, at the first time; one that is done by fewer ranks counts for as much less.
///
///   training, command with marks   iterations; fault_free's mean over its run
///   collective                     calls, each worth what fault_free took for the same call
///   inference                      requests, from arrival to last token; fault_free's mean over
///                                  the requests of the same rate
///   command without marks          bytes that the rails sent, also those sent twice; fault_free's
///                                  mean from its first to its last byte
inline constexpr double kAfterWindowMs = 1000;
/// Of fault_free's speed: less than this is not back.
inline constexpr double kBackShare = 0.95;

/// What became of `run` after its last fault; `free`: the run of fault_free in its block. Nothing
/// where there was no fault, where fault_free has no speed, or where the run ended within a second
/// after the fault was taken back. A run that failed or hung for good is one that did nothing then.
/// Pure.
std::optional<reports::AfterFault> afterFault(const scenario::Scenario& scenario,
                                              const reports::Run& run, const reports::Run& free);

/// Why this run of the result has no Run::after_fault, in words that say what one can do.
std::string whyNothingAfterFault(const reports::ScenarioResult& result, const reports::Run& run);

/// Sets Run::after_fault, after_pct and back_to_95_pct_ms of all runs; not in blocks that are void.
void measureAfterFaults(const scenario::Scenario& scenario, std::span<reports::Run> runs);

/// Of the runs of a strategy, for its row; nullopt: none of them has it.
std::optional<reports::AfterSpread> afterPercentOf(std::span<const reports::Run> runs,
                                                   const std::string& strategy);
std::optional<reports::BackSpread> backOf(std::span<const reports::Run> runs,
                                          const std::string& strategy);

}  // namespace faultline::run
