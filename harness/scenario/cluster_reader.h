#pragma once

#include <string>

#include "base/parameter.h"
#include "base/units.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"

namespace faultline::scenario {

/// The section `cluster`, whose scalars are read already (`values`, "cluster.nodes"), and what is
/// wrong with what its kind adds. Where the kind finds its rails and nobody says how many there
/// are, `cluster.rails` is 1 and not to be relied on.
Cluster readCluster(const Node& root, const Parameters& values, Findings& findings);

/// What a site is asked for; `folder` and what runs there is somebody else's to say.
site::ClusterSpec specOf(const Cluster& cluster);

/// Whether `rail_rate` may be that.
bool isRailRate(BitsPerSecond rate);

/// How many rails a node may have: as many as it has, or, where they are found, as can be.
int mostRails(const Cluster& cluster);

/// "2 rails of 400Mbit"; without the rate where nobody knows it.
std::string railsInWords(const Cluster& cluster);

}  // namespace faultline::scenario
