#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace faultline::run {

/// What a fault caused may be noticed this long after the fault has ended: verdicts of probes, a
/// busy machine.
inline constexpr Duration kAftermath = 1s;

/// What a fault did to the way between two nodes: it struck between `before` and `after`.
struct Damage {
  TimePoint before;
  TimePoint after;
  std::optional<TimePoint> over{};  ///< it was whole again; nullopt: not before the failure
  std::optional<int> group{};       ///< of the fault, as scenario::Fault has it
  bool operator==(const Damage&) const = default;
};

/// One change that a fault made, between the two moments (injector::Transition).
struct FaultChange {
  bool broken = false;  ///< true: damaged by it; false: whole again
  TimePoint before{};
  TimePoint after{};
  std::optional<int> peer{};  ///< the only other node that it concerns; nullopt: all of the link
  bool operator==(const FaultChange&) const = default;
};

/// What these changes (of one fault, oldest first) damaged of what leads to the node `peer` and
/// failed at `when`; nullopt when nothing was damaged then, nor shortly before.
///
/// A strike may damage several things there, one after the other, and nobody knows which of them
/// failed first: the damage began with the first, and was surely there with the last before `when`.
std::optional<Damage> damageBehind(std::span<const FaultChange> changes, TimePoint when, int peer);

/// The one of these, done at both ends of one link, that broke it: the latest. Of a strike at a
/// rail group it is the first: once one end was damaged, nothing passed.
std::optional<Damage> whatBroke(std::vector<Damage> damages);

/// What the faults of one run changed, for finding what caused what once the run is over.
struct FaultChanges {
  /// Those of one fault of the scenario, oldest first.
  struct OfFault {
    /// Of a fault of one rail; nullopt: of something else, a process say.
    std::optional<int> node{};
    std::optional<int> rail{};
    std::optional<int> group{};  ///< as scenario::Fault has it
    std::vector<FaultChange> changes{};
    bool operator==(const OfFault&) const = default;
  };
  std::vector<OfFault> faults{};

  /// The moments at which something was damaged, in the order of time.
  std::vector<TimePoint> damages() const;
  /// The latest of them that is not after `when`.
  std::optional<TimePoint> latestBefore(TimePoint when) const;
  /// The damage behind a failure at `when` of this rail between these two nodes; nullopt when no
  /// fault explains it.
  std::optional<Damage> behind(TimePoint when, int rail, int nodeA, int nodeB) const;
};

}  // namespace faultline::run
