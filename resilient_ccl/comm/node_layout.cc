#include "resilient_ccl/comm/node_layout.h"

#include <algorithm>
#include <set>

namespace faultline::comm {

int ranksPerNode(std::span<const std::string> hosts) {
  if (hosts.empty() || hosts.front().empty()) return 1;
  const auto firstElsewhere =
      std::ranges::find_if(hosts, [&](const std::string& host) { return host != hosts.front(); });
  const std::size_t perNode = firstElsewhere - hosts.begin();
  if (hosts.size() % perNode != 0) return 1;
  std::set<std::string> seen;
  for (std::size_t first = 0; first < hosts.size(); first += perNode) {
    const auto node = hosts.subspan(first, perNode);
    const auto elsewhere = [&](const std::string& host) { return host != node.front(); };
    if (node.front().empty() || std::ranges::any_of(node, elsewhere)) return 1;
    if (!seen.insert(node.front()).second) return 1;
  }
  return static_cast<int>(perNode);
}

}  // namespace faultline::comm
