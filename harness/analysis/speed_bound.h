#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// True when a run did its work to the end, so that its speed means something: it is ok, or it hung
/// as fail-stop must and went on after a restart.
bool completed(const reports::Run& run);

/// The same, and its block is not void: what comparisons, medians and intervals are made of.
bool comparable(const reports::Run& run);

/// The same of runs that prove nothing: all results are there.
bool didAllWork(const reports::Run& run);

/// A measurement that is better than possible by more than this share has a mistake in it; two of
/// the same thing differ by as much without anything being wrong.
inline constexpr double kBoundTolerance = 0.01;

/// What is taken from a rail's port of a node, and when, on the clock of the run.
struct PortLoss {
  int node = 0;
  int rail = 0;
  double tx = 0;  ///< 1: all of it
  double rx = 0;
  double start_ms = 0;
  double end_ms = 0;  ///< infinite: until the end
};
/// What the faults of a run took away; nullopt when there is no model of one of them.
std::optional<std::vector<PortLoss>> lossesOf(const scenario::Scenario& scenario,
                                              const reports::Run& run);

/// The share of so many bytes through a port that may pass at once, above its rate: a port that was
/// idle begins with a full bucket (netlink::ShaperPlan).
double burstShare(const scenario::Scenario& scenario, double bytesPerPort);

/// Whether so many bytes through a port pass at its rate, or mostly in its burst, above it.
bool mostlyBurst(const scenario::Scenario& scenario, double bytesPerPort);

/// `bound_pct` of a strategy's row: what the faults of its runs, at the moments at which they were
/// really applied, would cost the best possible algorithm (baseline/bound_model.h). Per completed
/// run, against the fault_free run of its block, as its overhead is: the least extra time over that
/// run's time; then the median, in percent. The model's iteration and gap are that run's medians;
/// what is slowed down is the time that the bytes need on the wire at the shaped rate. nullopt for
/// fault_free itself and where there is no model: no completed fault_free run, another workload
/// than training, a fault that the model does not know, a job that could never end, whyNoBound().
/// Pure.
std::optional<double> boundPercent(const scenario::Scenario& scenario,
                                   std::span<const reports::Run> runs, const std::string& strategy);

/// Why this strategy's row cannot have a bound although its faults have one: there is no model of
/// the job, or the messages are so short that they mostly pass in the burst of the ports, above
/// their rate. Empty: no such reason.
std::string whyNoBound(const scenario::Scenario& scenario, std::span<const reports::Run> runs,
                       const std::string& strategy);

/// Whether the row's overhead is below its bound by more than measurements vary (1 %, or the noise
/// of equal runs where that is known and greater): one of the two, or the fault_free run, was
/// measured wrong.
bool betterThanPossible(const reports::Summary& row, const std::optional<reports::Noise>& noise);

}  // namespace faultline::run
