#pragma once

#include <map>
#include <span>
#include <string>

#include "base/status.h"

namespace faultline::netns {

/// One network setting of a namespace, as in /proc/sys/net.
struct Sysctl {
  const char* path;  ///< below /proc/sys/net, e.g. "ipv4/tcp_orphan_retries"
  const char* value;
  const char* reason;
  bool required;  ///< false: a kernel that does not have it needs no setting
};

/// What is set in each namespace of a cluster before it has interfaces.
std::span<const Sysctl> clusterSysctls();

/// Writes the settings into the namespace (the calling thread goes there and comes back).
Status writeSysctls(int namespace_fd, std::span<const Sysctl> settings);

/// The congestion control of sockets in the namespace that choose none themselves. kInvalidArgument
/// with those that are possible: what the kernel has, and lets a namespace choose.
Status setCongestionControl(int namespace_fd, const std::string& name);

/// The TCP settings of the namespace that shape a result: those we set and the kernel's buffers and
/// congestion control. For the report's environment.
Result<std::map<std::string, std::string>> readTcpSettings(int namespace_fd);

}  // namespace faultline::netns
