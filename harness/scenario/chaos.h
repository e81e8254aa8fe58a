#pragma once

#include <vector>

#include "harness/scenario/scenario.h"
#include "injector/fault_table.h"

namespace faultline::scenario {

/// Whether a fault of this kind may be drawn at random: it acts on a link or on processes, and can
/// be taken back.
bool canBeRandom(const injector::FaultKind& kind);

/// The faults that `chaos` means in this cluster: one for each kind and target that was drawn, with
/// all its moments. Equal arguments give equal lists on every platform. Pure.
///
/// At every moment a rail has at most one fault at all its nodes, so that what proves a fault can
/// count on the other ports of its switch, and two faults never meet in one link; a rail that has
/// had a fault is spared for `rest`, and `spareRails` of them are whole. Of a node's processes the
/// same holds. A strike that finds no place is left out.
std::vector<Fault> expandChaos(const Chaos& chaos, const Cluster& cluster, std::uint64_t seed);

/// All faults of a run: those that are written down, and those that `chaos` means.
std::vector<Fault> allFaults(const Scenario& scenario);

}  // namespace faultline::scenario
