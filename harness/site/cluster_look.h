#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

namespace faultline::site {

/// What one node is like.
struct NodeLook {
  std::string name{};
  Status usable{};  ///< or why it cannot be used; nothing else is known then
  std::string hostname{};
  std::string kernel{};
  int cores = 0;
  std::optional<Duration> clockAhead{};  ///< of ours
  Duration clockError{};                 ///< at most
  Bytes agentMemory = 0;                 ///< that its agent has for itself
  std::string management{};              ///< "eth0 10.0.0.3"
  std::vector<std::string> rails{};      ///< likewise; empty: they could not be chosen
};

/// What a cluster is like before the first run.
struct ClusterLook {
  std::vector<NodeLook> nodes{};
  Status rails{};  ///< or why no rails could be chosen among the nodes that can be used
  std::map<std::string, std::string> words{};  ///< what was chosen and why, as in a result
};

}  // namespace faultline::site
