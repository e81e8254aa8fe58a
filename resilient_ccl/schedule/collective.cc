#include "resilient_ccl/schedule/collective.h"

#include <algorithm>

namespace faultline::schedule {

std::string_view collectiveName(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kSendRecv:
      return "send_recv";
  }
  return "unknown";
}

std::optional<Collective> collectiveFromName(std::string_view name) {
  const auto* const found = std::ranges::find(kAllCollectives, name, collectiveName);
  return found == kAllCollectives.end() ? std::nullopt : std::optional(*found);
}

}  // namespace faultline::schedule
