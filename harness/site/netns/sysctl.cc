#include "harness/site/netns/sysctl.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "base/unique_fd.h"
#include "injector/netlink/namespace.h"

namespace faultline::netns {
namespace {

constexpr std::array kSettings{
    Sysctl{"ipv6/conf/all/disable_ipv6", "1", "no neighbour discovery beside the measured traffic",
           false},
    Sysctl{"ipv6/conf/default/disable_ipv6", "1", "the same for interfaces made later", false},
    Sysctl{"ipv4/conf/all/rp_filter", "0", "a rail may answer for a path that is down", true},
    Sysctl{"ipv4/conf/default/rp_filter", "0", "the same for interfaces made later", true},
    Sysctl{"ipv4/conf/all/arp_ignore", "1", "a NIC answers only for its own address", true},
    Sysctl{"ipv4/conf/all/arp_announce", "2", "a NIC asks only with its own address", true},
    Sysctl{"ipv4/tcp_orphan_retries", "1",
           "sockets of killed programs let go of the namespace at once, also behind a dead port",
           true},
    Sysctl{"ipv4/tcp_slow_start_after_idle", "0",
           "an iteration's first bytes are not slowed down by the compute phase before them", true},
    Sysctl{"ipv4/tcp_no_metrics_save", "1",
           "what TCP learned on a damaged rail does not colour the next connection", true},
};

constexpr std::array kReported{
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
    "ipv4/tcp_orphan_retries",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_no_metrics_save",
    "core/default_qdisc",
};

std::string fullPath(const char* path) { return fmt::format("/proc/sys/net/{}", path); }

Status write(const Sysctl& setting) {
  const std::string path = fullPath(setting.path);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file && errno == ENOENT && !setting.required) return okStatus();
  const auto size = static_cast<ssize_t>(std::strlen(setting.value));
  if (!file || ::write(file.get(), setting.value, static_cast<std::size_t>(size)) != size) {
    return Status::fromErrno(
        errno, fmt::format("write {} to {} ({})", setting.value, path, setting.reason));
  }
  return okStatus();
}

}  // namespace

std::span<const Sysctl> clusterSysctls() { return kSettings; }

Status writeSysctls(int namespace_fd, std::span<const Sysctl> settings) {
  // /proc/sys/net shows the namespace of the thread that opens the file.
  ASSIGN_OR_RETURN(const netlink::ScopedNamespace inside,
                   netlink::ScopedNamespace::enter(namespace_fd));
  for (const Sysctl& setting : settings) RETURN_IF_ERROR(write(setting));
  return okStatus();
}

Status setCongestionControl(int namespace_fd, const std::string& name) {
  const Sysctl setting{"ipv4/tcp_congestion_control", name.c_str(), "cluster.congestion_control",
                       true};
  const Status status = writeSysctls(namespace_fd, std::span(&setting, 1));
  const bool refused = status.code() == Code::kNotFound || status.code() == Code::kPermissionDenied;
  std::string allowed;
  std::getline(std::ifstream(fullPath("ipv4/tcp_allowed_congestion_control")), allowed);
  if (!refused) return status;
  if (allowed.empty()) return Status(Code::kInvalidArgument, status.message());
  return errorf(
      Code::kInvalidArgument,
      "cluster.congestion_control: {} cannot be chosen here, but {}. Where the kernel has it as a "
      "module, load that; then let everybody choose it, as root: sysctl -w "
      "net.ipv4.tcp_allowed_congestion_control=\"{} {}\" ({})",
      name, allowed, allowed, name, status.message());
}

Result<std::map<std::string, std::string>> readTcpSettings(int namespace_fd) {
  ASSIGN_OR_RETURN(const netlink::ScopedNamespace inside,
                   netlink::ScopedNamespace::enter(namespace_fd));
  std::map<std::string, std::string> settings;
  for (const char* const path : kReported) {
    std::ifstream file(fullPath(path));
    std::string value;
    if (!std::getline(file, value)) continue;  // not visible in this kernel or namespace
    for (char& character : value) character = character == '\t' ? ' ' : character;
    settings[std::strrchr(path, '/') + 1] = value;
  }
  return settings;
}

}  // namespace faultline::netns
