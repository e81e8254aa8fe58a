#pragma once

#include <limits>
#include <optional>
#include <span>

/// What the best possible algorithm would lose to a fault: the iterations of a fault-free job,
/// replayed with communication slowed down by the lower bound of AllReduce at each moment's
/// bandwidth. Pure; times are milliseconds.
namespace faultline::baseline {

/// Of a training step of one micro-batch: one forward pass, and a backward pass that costs about
/// twice as much.
inline constexpr double kForwardShare = 1.0 / 3;

/// One iteration of data-parallel training. In the rest of the compute after the share `readyFrom`
/// the gradient's buckets become ready at equal distances, the last one at its end. Buckets are
/// reduced in order, one after the other; the iteration ends when all of them are.
struct IterationModel {
  double computeMs = 0;
  double readyFrom = kForwardShare;
  int buckets = 1;
  double bucketMs = 0;  ///< time to reduce one bucket on healthy rails
  /// Share of `bucketMs` in which bytes are on the wire, 0 to 1. Slower rails stretch only this;
  /// the rest (reducing, system calls, waiting for each other) takes as long as before.
  double wireShare = 1;
};

/// The model whose fault-free iteration takes `iterationMs`, as measured. When that is not longer
/// than the compute, communication costs nothing that could be seen: bucketMs = 0.
IterationModel fitIteration(double computeMs, int buckets, double iterationMs,
                            double readyFrom = kForwardShare);

/// Time of a fault-free iteration.
double iterationTime(const IterationModel& model);

/// A job over `rails` equal rails per node.
struct JobModel {
  int nodes = 1;
  int rails = 1;
  int iterations = 1;
  IterationModel iteration;
  /// Between two iterations, not counted as time of the job (its data are checked), while faults go
  /// on. Because the replay has these gaps too, faults keep the length that they really had.
  double gapMs = 0;
};

/// A rail of a node that has lost bandwidth for a while.
struct RailDamage {
  int node = 0;
  int rail = 0;
  int iteration = 0;    ///< the damage begins...
  double offsetMs = 0;  ///< ...so long after the beginning of this iteration; may be longer than it
  double durationMs = std::numeric_limits<double>::infinity();  ///< infinite: until the end
  double lostTx = 1;  ///< share of the rail's bandwidth out of the node that is lost, 0 to 1
  double lostRx = 1;  ///< the same into the node
};

/// How many times longer AllReduce must take at least when the nodes' bandwidths are these shares,
/// 0 to 1, of the healthy ones: the fluid bound of schedule/bound.h over the fault-free ring, for
/// the worse of the two directions. Infinite when a node is cut off; 1 for a single node. A node is
/// one port: what its ranks do among themselves costs nothing.
double leastSlowdown(std::span<const double> tx, std::span<const double> rx);

/// How much longer the job takes with these damages than without, in milliseconds. Damages of
/// different rails add; of those of one rail that overlap the greatest counts, so that the result
/// stays a bound. nullopt when the job would never end.
///
/// With all damages placed in iteration 0 more damage never gives less. Elsewhere it can: damage
/// that is bound to a later iteration is put off when earlier ones take longer, and may then no
/// longer coincide with another.
std::optional<double> leastExtraMs(const JobModel& job, std::span<const RailDamage> damages);

}  // namespace faultline::baseline
