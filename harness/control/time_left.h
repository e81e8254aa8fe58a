#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"

/// How long an experiment takes: before it by the scenario alone, while it runs by the runs that
/// are done. All of it is pure.
namespace faultline::run {

/// How long one run takes by the scenario alone: set-up, and iterations of compute and
/// communication at the rates of the rails; for jobs that are restarted also what they wait for.
/// nullopt: a program that is not ours. Never more than the deadline.
///
/// An estimate: it knows neither how busy the machine is nor what a fault slows down.
std::optional<Duration> estimatedRun(const scenario::Scenario& scenario, const PlannedRun& planned);

/// As many iterations as one run has: calls of all cells of a sweep, requests of a server. 0:
/// nobody knows.
int iterationsOf(const scenario::Scenario& scenario);

/// Of a whole plan.
struct TimeEstimate {
  std::optional<Duration> likely;  ///< nullopt: nothing is known of programs that are not ours
  Duration atMost{};               ///< every run is ended at its deadline
};
TimeEstimate estimateOf(const scenario::Scenario& scenario, std::span<const PlannedRun> plan);

/// The estimates of a plan, corrected by the runs that are done: a run takes as long as those of
/// its strategy did on average; one of a strategy that has none yet, its estimate times the factor
/// by which all others differed from theirs.
class TimeLeft {
 public:
  TimeLeft(const scenario::Scenario& scenario, std::span<const PlannedRun> plan);

  /// The run of that number in the plan has taken so long, with set-up and clean-up.
  void finished(std::size_t run, Duration took);

  /// How long that run takes; nullopt: nothing is known yet.
  std::optional<Duration> expected(std::size_t run) const;
  /// Of the runs from `first` to before `last`, together.
  std::optional<Duration> expected(std::size_t first, std::size_t last) const;

 private:
  struct Entry {
    std::string strategy;
    std::optional<Duration> estimate;
  };
  struct Sum {
    Duration took{};
    int runs = 0;
  };
  std::vector<Entry> runs_;
  std::map<std::string, Sum> done_;  // by strategy
  Sum all_;
  Duration estimates_{};  // of those that are done
};

}  // namespace faultline::run
