#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "injector/fault_kind.h"

namespace faultline::scenario {

/// Whether a fault of this kind may be drawn at random: it acts on a link or on processes, and can
/// be taken back.
bool canBeRandom(const injector::FaultKind& kind);

/// The faults that `processes` mean in this cluster: one for each process, kind and target that was
/// drawn, with all its moments. Equal arguments give equal lists. Pure.
///
/// Every element (a NIC, or a rail) of every process is a renewal process with a random stream of
/// its own, which only the seed, the number of the process and the element decide: it works for a
/// time drawn from `failures`, is broken for one drawn from `repairs`, and so on. Which kind of
/// fault breaks it is drawn by weight; a fault of processes strikes the node of the NIC.
///
/// A failure finds no place, and is left out, when there are `atMost` of its process, when it would
/// be shorter than `shortest` before `length` is over, or when another fault of any process is on
/// its rail, at whatever node: what proves a fault counts on the other ports of its switch, and two
/// faults never meet in one link. A rail that has had one is spared for `rest`, and `spareRails`
/// are whole. Of a node's processes the same holds. Its element then works on, as after a repair. A
/// repair that would come after `length` comes then.
std::vector<Fault> expandProcesses(const std::vector<FaultProcess>& processes,
                                   const Cluster& cluster, std::uint64_t seed);

/// NICs, or rails, that may fail.
int elementsOf(const FaultProcess& process, const Cluster& cluster);

/// In one sentence, with what acceleration makes of the times.
std::string inWords(const FaultProcess& process, const Cluster& cluster);

}  // namespace faultline::scenario
