#include "resilient_ccl/telemetry/event.h"

namespace faultline::telemetry {

std::string_view nameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kChunkSent:
      return "chunk_sent";
    case EventKind::kChunkArrived:
      return "chunk_arrived";
    case EventKind::kMessageSent:
      return "message_sent";
    case EventKind::kMessageArrived:
      return "message_arrived";
    case EventKind::kRailSlow:
      return "rail_slow";
    case EventKind::kRailFast:
      return "rail_fast";
    case EventKind::kRailUp:
      return "rail_up";
    case EventKind::kRailFence:
      return "rail_fence";
    case EventKind::kRailClosed:
      return "rail_closed";
    case EventKind::kFailedOver:
      return "failed_over";
    case EventKind::kLinkFailed:
      return "link_failed";
  }
  return "unknown";
}

}  // namespace faultline::telemetry
