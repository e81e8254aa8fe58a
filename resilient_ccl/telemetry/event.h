#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace faultline::telemetry {

/// What happened, as the process sees it that records it.
enum class EventKind : std::uint16_t {
  kChunkSent,       ///< handed to a rail
  kChunkArrived,    ///< the payload was read: from its header until its last byte
  kMessageSent,     ///< all chunks acknowledged
  kMessageArrived,  ///< all chunks there
  kRailUp,          ///< connected; `epoch` is the connection's
  kRailSlow,        ///< it lives and carries far less than the others
  kRailFast,        ///< it carries as much as the others again
  kRailFence,       ///< this end is to be closed
  kRailClosed,      ///< this end is closed: no byte of it is read or written any more
  kFailedOver,      ///< from giving the rail up until its last chunk was delivered elsewhere
  kLinkFailed,      ///< the peer is given up
};

/// The kind in the words of results: "chunk_sent", ...
std::string_view nameOf(EventKind kind);

/// One event: a cache line.
struct alignas(64) Event {
  TimePoint at{};            ///< begin
  Duration length{};         ///< zero: a moment
  std::int64_t bytes = 0;    ///< of the chunk or message, or resent by the failover
  std::uint64_t number = 0;  ///< of the chunk on its rail and epoch, or the message's token
  std::uint64_t offset = 0;  ///< of the chunk in its message
  std::uint32_t slot = 0;    ///< of the chunk's message at the receiver
  std::uint32_t epoch = 0;   ///< of the rail
  std::int32_t peer = -1;    ///< the other process
  std::int16_t rail = -1;    ///< -1: none
  EventKind kind{};
};
static_assert(sizeof(Event) == 64);

}  // namespace faultline::telemetry
