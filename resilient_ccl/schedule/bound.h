#pragma once

#include "resilient_ccl/schedule/collective.h"
#include "resilient_ccl/schedule/port_bandwidths.h"

namespace faultline::schedule {

/// How the flows of a rank share its port.
enum class PortModel {
  kFluid,    ///< ports are shared freely (sockets, many RDMA queue pairs)
  kOnePort,  ///< a port carries one flow at a time (strictly ordered sends; the OptCC paper's
             ///< model)
};

/// Times are in units of S/B: S = bytes per rank, B = bandwidth of a healthy port per direction.

/// Fault-free ring AllReduce over `ranks` healthy ports: 2(p-1)/p.
double faultFreeRingTime(int ranks);
/// The same of a collective: (p-1)/p for ReduceScatter, AllGather and AllToAll, 1 for Broadcast,
/// Reduce and SendRecv (pipelined); 0 for one rank.
///
/// Where `ranksPerNode` ranks in a row share the port of a node it is what crosses that port, B is
/// its bandwidth, and moving data inside a node takes no time: a ring, a chain and a shift enter
/// and leave each node once, with what one rank sends; of an AllToAll each of the g ranks sends
/// blocks to the p-g ranks of other nodes, g(p-g)/p. 0 for one node.
double faultFreeTime(Collective collective, int ranks, int ranksPerNode = 1);

/// Least time of any AllReduce that moves each element uncoded (bandwidth term only); 0 for one
/// rank. Every rank sends and receives at least S, and an element needs at least 2(p-1) transfers:
///
/// - fluid: per direction max(1/min(b), 2(p-1)/sum(b)), the larger of both, which is attainable;
/// - one port: with one straggler of bandwidth r max(1/r, 2(p-1)/(p-2+2r)) (attainable; OptCC
///   Theorem 13 with l = 1/r; docs/schedules.md has it per direction). With several, the largest of
///   the fluid bound and of the one-straggler bounds with all others healed: valid, but not always
///   attainable.
double lowerBound(const PortBandwidths& bandwidths, PortModel model);

/// Least time of a collective on fluid ports (docs/schedules.md). AllReduce: as above. The others
/// need what has to cross the cut around each rank, and in all one transfer of each element less
/// than it has holders: for ReduceScatter p-1 transfers, a rank sends (p-1)/p and receives 1/p at
/// least; AllGather the reverse; Broadcast and Reduce S into and out of every rank but the root's
/// one way; AllToAll (p-1)/p and SendRecv 1 both ways.
///
/// `bandwidths` of nodes where `ranksPerNode` ranks in a row share the port of each: ranks of a
/// node can add up what they send, and hand on what they get, so that all are bounded as one rank
/// per node is, but for AllToAll: each of them has blocks for each rank of the others, g times as
/// much.
double lowerBound(Collective collective, const PortBandwidths& bandwidths, PortModel model,
                  int ranksPerNode = 1);

}  // namespace faultline::schedule
