#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "injector/fault.h"

namespace faultline::run {

/// What a fault did to the way between two nodes: it struck between `before` and `after`.
struct Damage {
  TimePoint before;
  TimePoint after;
  std::optional<TimePoint> over{};  ///< it was whole again; nullopt: not before the failure
  std::optional<int> group{};       ///< of the fault, as scenario::Fault has it
  bool operator==(const Damage&) const = default;
};

/// What these transitions (of one fault, oldest first) damaged of what leads to the address `peer`
/// and failed at `when`; nullopt when nothing was damaged then, nor shortly before.
///
/// A strike may damage several things there, one after the other, and nobody knows which of them
/// failed first: the damage began with the first, and was surely there with the last before `when`.
std::optional<Damage> damageBehind(std::span<const injector::Transition> transitions,
                                   TimePoint when, std::string_view peer);

/// The one of these, done at both ends of one link, that broke it: the latest. Of a strike at a
/// rail group it is the first: once one end was damaged, nothing passed.
std::optional<Damage> whatBroke(std::vector<Damage> damages);

}  // namespace faultline::run
