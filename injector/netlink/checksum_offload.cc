#include "injector/netlink/checksum_offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

/// One question or order of ethtool to the interface; its answer.
Result<std::uint32_t> ask(const LinkEnd& end, std::uint32_t command, std::uint32_t value) {
  ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(*end.socket, end.ifindex));
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(end.socket->namespaceFd()));
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "open a socket for ethtool");
  ethtool_value ethtool{.cmd = command, .data = value};
  ifreq request{};
  std::copy_n(link.name.data(), std::min(link.name.size(), sizeof request.ifr_name - 1),
              request.ifr_name);
  request.ifr_data = reinterpret_cast<char*>(&ethtool);
  if (::ioctl(fd.get(), SIOCETHTOOL, &request) == 0) return ethtool.data;
  const std::string attempt = fmt::format("{} (ethtool, transmit checksums)", link.name);
  if (errno != EOPNOTSUPP) return Status::fromErrno(errno, attempt);
  return errorf(Code::kUnsupported, "{}: the interface has no such setting", attempt);
}

}  // namespace

Result<bool> leavesChecksums(const LinkEnd& end) {
  ASSIGN_OR_RETURN(const std::uint32_t on, ask(end, ETHTOOL_GTXCSUM, 0));
  return on != 0;
}

Status setLeavesChecksums(const LinkEnd& end, bool leaves) {
  RETURN_IF_ERROR(ask(end, ETHTOOL_STXCSUM, leaves ? 1 : 0).status());
  ASSIGN_OR_RETURN(const bool now, leavesChecksums(end));
  if (now == leaves) return okStatus();
  return errorf(Code::kUnsupported, "interface {}: transmit checksums cannot be switched {}",
                end.ifindex, leaves ? "on" : "off");
}

}  // namespace faultline::netlink
