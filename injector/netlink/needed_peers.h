#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::netlink {

/// Somebody in the network whom this process or its user cannot do without.
struct NeededPeer {
  std::string address;  ///< of IPv4 or IPv6, perhaps with a scope ("fe80::1%eth0")
  std::string what;     ///< "the client of this ssh session (SSH_CONNECTION)"
  std::string remedy;   ///< what to do instead of cutting the way to it
  /// The address of this end, which may choose the route (`ip rule from`); empty: not known.
  std::string from{};
  bool operator==(const NeededPeer&) const = default;
};

/// The client's address of a value of SSH_CONNECTION (ssh(1): its address and port, the server's
/// address and port); nothing when it is not one. Pure.
std::optional<std::string> sshClient(std::string_view connection);
/// The server's address of it, which is one of this machine. Pure.
std::optional<std::string> sshServer(std::string_view connection);

/// The servers of the network file systems (NFS, SMB) in the text of /proc/PID/mounts, as far as
/// their options tell them (`addr`). Pure.
std::vector<NeededPeer> fileServers(std::string_view mounts);

/// The servers of block devices over the network (iSCSI, NVMe over TCP or RDMA) that a sysfs tells
/// of.
std::vector<NeededPeer> blockServers(const std::string& sysfs);

/// The clients of the ssh sessions that a process comes from, by its own environment and that of
/// all processes above it, as far as they may be read: sudo does not pass the variable on. And the
/// servers of the network file systems and block devices that this process sees. 0: this process.
std::vector<NeededPeer> neededPeers(pid_t of = 0);

}  // namespace faultline::netlink
