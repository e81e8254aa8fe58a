#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/shaper_plan.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Handle of the control class of our shapers. Frames of sockets that have it as SO_PRIORITY go
/// through that class, whatever they are; where nothing is shaped it means nothing.
inline constexpr std::uint32_t kControlClass = 0xfa170020;

/// What the bulk class of a shaped port is set to and has done.
struct ShaperState {
  BitsPerSecond rate = 0;
  Bytes burst = 0;               ///< to within the kernel's 64 ns ticks
  std::uint64_t sent_bytes = 0;  ///< that have left the queue
  std::uint64_t drops = 0;
  Bytes backlog = 0;  ///< waiting in the queue
};

/// Makes the interface's egress a port of the given rate (htb with our own handle). An interface
/// that already has a queueing discipline of somebody's is left alone: kAlreadyExists.
Status installShaper(Socket& socket, int ifindex, BitsPerSecond rate);

/// Changes the rate (and burst) of the bulk class; queue and control class stay. kNotFound when the
/// interface has no shaper of ours.
Status setShaperRate(Socket& socket, int ifindex, BitsPerSecond rate);

/// kNotFound when the interface has no shaper of ours.
Result<ShaperState> readShaper(Socket& socket, int ifindex);

/// Removes our shaper; kNotFound when there is none.
Status removeShaper(Socket& socket, int ifindex);

}  // namespace faultline::netlink
