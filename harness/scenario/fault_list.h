#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// All faults of a run, each on one link, node or machine: those that are written down one by one,
/// those of sequences, and those that fault processes mean. Of a rail group there is one for each
/// of its nodes; where the first waits for bytes, the others strike with it. A rank has its node.
/// Pure.
std::vector<Fault> allFaults(const Scenario& scenario);

/// "port_down how=carrier, node 1, rail 0, at 2s for 500ms": when it is to strike, with all moments
/// that are known. Others are called by their number in the list.
std::string inWords(const Fault& fault);

/// "node 1, rail 0"
std::string inWords(const Target& target);

/// "200ms after the end of fault 0"
std::string inWords(const After& after);

/// Ranks of the job; of programs that are not ours the processes that the bench starts.
int ranksOf(const Scenario& scenario);

/// The node of one of them.
int nodeOf(const Scenario& scenario, int rank);

/// The nodes of a rail group, all if it names none.
std::vector<int> groupNodes(const Target& target, const Cluster& cluster);

/// The earliest moment after t = 0 at which the sequence can be over; nullopt when that is not to
/// be known, because it begins with bytes.
std::optional<Duration> earliestEnd(const Sequence& sequence);

}  // namespace faultline::scenario
