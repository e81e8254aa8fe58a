#pragma once

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

/// Least time of any AllReduce that moves each element uncoded (bandwidth term only); 0 for one
/// rank. Every rank sends and receives at least S, and an element needs at least 2(p-1) transfers:
///
/// - fluid: per direction max(1/min(b), 2(p-1)/sum(b)), the larger of both, which is attainable;
/// - one port: with one straggler of bandwidth r max(1/r, 2(p-1)/(p-2+2r)) (attainable; OptCC
///   Theorem 13 with l = 1/r; docs/schedules.md has it per direction). With several, the largest of
///   the fluid bound and of the one-straggler bounds with all others healed: valid, but not always
///   attainable.
double lowerBound(const PortBandwidths& bandwidths, PortModel model);

}  // namespace faultline::schedule
