#pragma once

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Fills in what the rows of a sweep are compared with, from the goodput that was measured in the
/// run and the bandwidths that its faults left while the calls of a row were made:
///
/// - ideal: the bytes that each node sends over its ports in a fault-free call
///   (`schedule::faultFreeTime`), 2(p-1)/p of the size for AllReduce, at the goodput of all its
///   rails; none where nothing leaves a node;
/// - bound: `schedule::lowerBound` on fluid ports;
/// - least: of that, what is left when each port began with a full bucket, whose burst passes at
///   once (`burstShare`);
/// - model: `schedule::costOf` of the schedule that the strategy runs, likewise: of a strategy that
///   plans, the one that its ranks told of. Without alpha and o (`CostOptions::alpha`,
///   `perMessage`), though the plans tell of both: the ranks measured them on themselves, so that a
///   slow transport would get a slow model and pass;
/// - formula: of r2_allreduce with at most one slow node, that of its authors for the chunks that
///   its schedule had (`schedule::r2Formula`).
///
/// Where ranks share the ports of a node (`scenario::Cluster::ranksPerNode`), `send` and `receive`
/// are still those of the nodes, and the bound is that of as many ranks as there are nodes (of an
/// AllReduce OptCC's at server level, arXiv 2606.01680; of an AllToAll times the ranks of a node).
/// Bound and model are over the ideal, which for AllReduce, ReduceScatter and AllGather is the
/// healthy ring of all ranks, so that a bound may be below 1. Moving data inside a node takes no
/// time in any of them (`CostOptions::insideBandwidth`). Formulas are for one rank per node.
///
/// A row has bandwidths when all calls whose times count had the same; of those of a row of which
/// all do, all but the first (it may be hit by what strikes at t = 0). Pure.
void compareWithModels(const scenario::Scenario& scenario, reports::Run& run);

}  // namespace faultline::run
