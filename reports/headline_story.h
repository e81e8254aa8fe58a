#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/result.h"
#include "reports/swept_calls.h"
#include "reports/tally.h"

/// What the headline tells of, by strategy. Pure.
namespace faultline::reports {

/// How a job under one strategy came through the faults; the worst of its runs.
enum class JobFate { kSurvived, kShrunk, kRestarted, kDied };

/// What the headline knows of one strategy that was executed.
struct Story {
  std::string name;
  bool plain = false;            ///< nothing that is for faults was on, and there were none
  bool stock = false;            ///< its library has no failover, and is started again
  bool as_it_is = false;         ///< a program that is not ours, for which nothing was set up
  const Summary* row = nullptr;  ///< nullptr: it has no row
  StrategyTally tally;
  bool faulted = false;
  JobFate fate = JobFate::kSurvived;
  int died = 0;   ///< runs that did not go on
  int hung = 0;   ///< of them
  int ranks = 0;  ///< of a smaller job: those that were left, the fewest
  int all_ranks = 0;
  std::optional<double> usual_restart_ms{};  ///< the longest, had the watchdog been the usual one
};

/// Of every strategy that was executed, in the order of the result, which must outlive them.
std::vector<Story> storiesOf(const ScenarioResult& result);

/// Percent above the fault-free time; nullopt: not known.
std::optional<double> overheadOf(const Story& story);

/// Share of the fault-free bus bandwidth at the largest size of a sweep; nullopt: of no sweep.
struct KeptBandwidth {
  std::string call;
  double share = 0;
};
std::optional<KeptBandwidth> keptBandwidth(const std::vector<SweptCall>& calls,
                                           const std::string& strategy);

/// Somebody's words, fit for one line.
std::string plainLine(const std::string& text);

}  // namespace faultline::reports
