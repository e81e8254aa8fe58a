#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Ethernet address.
using MacAddress = std::array<std::uint8_t, 6>;

/// What one end of a veth pair shall be.
struct VethEnd {
  std::string name;
  /// Chosen, and different from the other end's. An end's iflink is the other end's ifindex, and
  /// the kernel coalesces carrier events of interfaces whose ifindex equals their iflink (it takes
  /// them for physical ones): in a fast flap train some are never reported, others half a second
  /// late.
  int ifindex = 0;
  unsigned mtu = 1500;  ///< bytes
};

/// Makes a veth pair with one end in the namespace of `near` and the other directly in
/// `far_namespace_fd`. Both ends are down. kAlreadyExists when a name or index is taken.
Status createVeth(Socket& near, const VethEnd& near_end, int far_namespace_fd,
                  const VethEnd& far_end);

/// Makes a bridge that forwards at once and blindly, like a simple switch: no spanning tree, no
/// forward delay, no multicast snooping.
Status createBridge(Socket& socket, std::string_view name, int ifindex);

Status setUp(Socket& socket, int ifindex, bool up);
Status setMtu(Socket& socket, int ifindex, unsigned mtu);
Status enslave(Socket& socket, int ifindex, int bridge_ifindex);

/// Removes the interface (and the other end, if it is a veth).
Status deleteNetDevice(Socket& socket, int ifindex);

/// linux/if_bridge.h BR_STATE_...
enum class BridgePortState : std::uint8_t { kDisabled = 0, kForwarding = 3 };

/// Sets what the bridge does with frames of this port; its carrier is not touched. Needs the port
/// to be up: the kernel refuses (ENETDOWN) otherwise.
Status setBridgePortState(Socket& socket, int ifindex, BridgePortState state);

/// Whether the bridge sends frames to unknown addresses out of this port. Off, a dead port's frames
/// do not turn up at all the others.
Status setUnicastFlood(Socket& socket, int ifindex, bool flood);

/// Whether the port is isolated: the bridge passes nothing between two ports that both are, and
/// everything else as before (Linux 4.18).
Status setPortIsolated(Socket& socket, int ifindex, bool isolated);

/// Makes the bridge know for good that this address is behind this port. What it learns by itself
/// it forgets when the port goes down.
Status addStaticForwarding(Socket& socket, int ifindex, const MacAddress& mac);

/// What the kernel tells about an interface.
struct NetDevice {
  int ifindex = 0;
  std::string name;
  std::string kind;             ///< "veth", "bridge", ...; empty for lo and physical interfaces
  bool admin_up = false;        ///< IFF_UP: what was asked for
  bool carrier = false;         ///< the other end is there; always false while not admin_up
  std::uint8_t operstate = 0;   ///< linux/if.h IF_OPER_...: lags behind `carrier`
  int peer_ifindex = 0;         ///< iflink: the other end, or what it sits on
  bool peer_elsewhere = false;  ///< that one is in another namespace
  int bridge_ifindex = 0;       ///< its master, of whatever kind; 0: none
  /// Raw number, as BridgePortState; -1 when not a bridge port.
  int bridge_port_state = -1;
  /// How often the carrier was lost and has come since the interface exists. Counted where it
  /// happens, before the coalescing of events.
  std::uint32_t carrier_down_count = 0;
  std::uint32_t carrier_up_count = 0;
  unsigned mtu = 0;
  MacAddress mac{};
};

/// Whether frames can pass now: carrier, and the kernel has drawn all consequences of it (queues
/// are active, a bridge port forwards). It does that in a work queue, some time after the carrier
/// has come.
bool isOperational(const NetDevice& link);

/// kNotFound when there is no such interface.
Result<NetDevice> readNetDevice(Socket& socket, int ifindex);
Result<std::vector<NetDevice>> listNetDevices(Socket& socket);

}  // namespace faultline::netlink
