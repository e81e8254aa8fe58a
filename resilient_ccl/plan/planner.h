#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/plan/health.h"
#include "resilient_ccl/schedule/bound.h"
#include "resilient_ccl/schedule/collective.h"

namespace faultline::plan {

/// What a message costs, as measured at start-up and agreed upon by all ranks: n bytes of one
/// message take latency + perMessage + n / bandwidth, the latency without occupying the ports.
struct LinkModel {
  double latency = 50e-6;    ///< seconds
  double perMessage = 5e-6;  ///< seconds
  /// Of the fastest port, bytes per second and direction; where ranks share the NICs of a node, of
  /// the fastest node.
  double bandwidth = 1e9;
};

/// What is to be done, and over what. Equal on all ranks.
struct PlanRequest {
  HealthVector health;        ///< one per rank
  std::int64_t elements = 0;  ///< of data per rank (`schedule::ScheduleRequest`)
  Bytes elementSize = 4;
  /// Ranks that share the NICs of a node (schedule::ScheduleRequest).
  int ranksPerNode = 1;
  /// Of a port; over several, messages are cut into a part for each.
  int rails = 1;
  /// The one to plan for; empty: the cheapest of all. Of an AllReduce.
  std::string algorithm = {};
  /// Where all ports are equally fast, the ring instead of that algorithm, if the model says that
  /// it is cheaper. Of an AllReduce.
  bool ringWhereEqual = false;
  /// Segments of that algorithm; 0: as many as are cheapest. Of another collective: of one in which
  /// segments are lanes, or passed on slice by slice; 0: one.
  int segments = 0;
  schedule::Collective collective = schedule::Collective::kAllReduce;
  int root = 0;  ///< of a Broadcast or Reduce
  /// Bytes in which an operation travels, and is passed on by a chain.
  Bytes slice = 256 << 10;
};

/// Whether there is something to choose by the health of the ports: which algorithm (AllReduce,
/// ReduceScatter, AllGather), or in which order (Broadcast, Reduce).
bool plannable(schedule::Collective collective);

/// One way to do it, and what the model says of that.
struct Candidate {
  std::string algorithm = "ring";
  int segments = 1;
  double predicted = 0;  ///< seconds, by the model
  /// Of the model, where what it leaves out is known from measurements.
  double correction = 1;

  /// Seconds: what candidates are compared by.
  double expected() const { return correction * predicted; }
};

/// How it is done. All ranks must have the same: `hash` says whether they have.
struct Plan {
  std::string algorithm = "ring";
  int segments = 1;
  /// By the model; all in seconds.
  double predicted = 0;
  double ring = 0;   ///< the best ring, over the same ports
  double bound = 0;  ///< bandwidth term of the best possible algorithm
  /// All ways that are worth a thought, cheapest first by the model, but for the one that is
  /// chosen, which is the first: each algorithm that fits, in its best number of segments and,
  /// where these would not be too small, in twice as many. Of several that the model cannot tell
  /// apart there is one. Empty when an algorithm was asked for.
  std::vector<Candidate> candidates;
  /// Of everything that the schedule is made from: number of ranks, health (from which the shares
  /// follow), elements, their size, algorithm, segments.
  std::uint64_t hash = 0;
};

/// The cheapest of all registered algorithms, or of the numbers of segments of the one that is
/// asked for unless its number is, too, by the fluid model (the one that real ports follow; the
/// one-port model ranks ring first where it is not). A pure function: equal arguments give equal
/// plans on every rank. Never slower than the ring, by the model, unless an algorithm is asked for.
///
/// Of other collectives that are `plannable`, the first algorithm that is listed for it, made for
/// this health (a chain has slow ports where they do not matter), unless the model gives another
/// one 5 % less time, of all and of bandwidth alone: relays, where ranks lost bandwidth in one
/// direction. kInvalidArgument for impossible numbers, and kNotFound for an algorithm that is not
/// known.
Result<Plan> choosePlan(const PlanRequest& request, const LinkModel& model);

}  // namespace faultline::plan
