#include "injector/netlink/ipv6_mtu.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::netlink {

Result<std::optional<std::uint32_t>> readOwnIpv6Mtu(Socket& socket, int ifindex) {
  ifinfomsg header{};
  header.ifi_index = ifindex;
  Message message(RTM_GETLINK, 0, header);
  std::optional<std::uint32_t> own;
  RETURN_IF_ERROR(socket.ask(
      message, fmt::format("read the IPv6 MTU of interface {}", ifindex),
      [&](const nlmsghdr* answer) {
        const Attributes<IFLA_MAX> link(answer, sizeof header);
        forEachNested(link[IFLA_AF_SPEC], [&](const nlattr* family) {
          if (nla_type(family) != AF_INET6) return;
          const Attributes<IFLA_INET6_MAX> inet6(family);
          const nlattr* const settings = inet6[IFLA_INET6_CONF];
          constexpr int kNeeded = (DEVCONF_MTU6 + 1) * int{sizeof(std::uint32_t)};
          if (settings == nullptr || nla_len(settings) < kNeeded) return;
          std::uint32_t mtu = 0;
          __builtin_memcpy(&mtu,
                           static_cast<const char*>(nla_data(settings)) + DEVCONF_MTU6 * sizeof mtu,
                           sizeof mtu);
          if (mtu != link.value<std::uint32_t>(IFLA_MTU)) own = mtu;
        });
      }));
  return own;
}

Status setIpv6Mtu(Socket& socket, int ifindex, std::uint32_t mtu) {
  ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(socket, ifindex));
  // /proc/sys/net shows the namespace of the thread that opens the file.
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  const std::string path = fmt::format("/proc/sys/net/ipv6/conf/{}/mtu", link.name);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(mtu);
  if (file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return okStatus();
  }
  return Status::fromErrno(errno, fmt::format("write {} to {}", text, path));
}

}  // namespace faultline::netlink
