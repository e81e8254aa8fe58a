#pragma once

#include <string>

#include "harness/cli/output.h"
#include "harness/site/cluster_look.h"

namespace faultline::cli {

/// What `doctor --cluster FILE` does: says what each host of a cluster is like, or why it cannot be
/// used, and what rails they would have. The exit code.
int lookAtCluster(const std::string& file, bool json);

/// Whether a run could use all of it.
bool isUsable(const site::ClusterLook& look);
/// A table with a line for each node, and below it what is wrong, and what was chosen.
std::string toText(const site::ClusterLook& look);
Json toJson(const site::ClusterLook& look);

}  // namespace faultline::cli
