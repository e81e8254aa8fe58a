#include "injector/netlink/ethtool.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/unique_fd.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::netlink {

Status callEthtool(Socket& socket, std::string_view interface, void* command,
                   std::string_view attempt) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "open a socket for ethtool");
  ifreq request{};
  std::copy_n(interface.data(), std::min(interface.size(), sizeof request.ifr_name - 1),
              request.ifr_name);
  request.ifr_data = static_cast<char*>(command);
  if (::ioctl(fd.get(), SIOCETHTOOL, &request) == 0) return okStatus();
  const std::string what = fmt::format("{} (ethtool, {})", interface, attempt);
  if (errno != EOPNOTSUPP) return Status::fromErrno(errno, what);
  return errorf(Code::kUnsupported, "{}: the interface has no such setting", what);
}

Result<Adapter> readAdapter(Socket& socket, std::string_view interface) {
  Adapter adapter;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  const Status asked = callEthtool(socket, interface, &driver, "driver");
  if (!asked.ok() && asked.code() != Code::kUnsupported) return asked;
  if (asked.ok()) {
    adapter.bus.assign(driver.bus_info, ::strnlen(driver.bus_info, sizeof driver.bus_info));
  }
  // The address stands behind the struct.
  alignas(ethtool_perm_addr) std::byte answer[sizeof(ethtool_perm_addr) + ETH_ALEN]{};
  const ethtool_perm_addr question{.cmd = ETHTOOL_GPERMADDR, .size = ETH_ALEN};
  std::memcpy(answer, &question, sizeof question);
  const Status address = callEthtool(socket, interface, answer, "permanent address");
  if (!address.ok() && address.code() != Code::kUnsupported) return address;
  MacAddress mac{};
  std::memcpy(mac.data(), answer + sizeof(ethtool_perm_addr), mac.size());
  if (address.ok() && mac != MacAddress{}) {
    adapter.permanentMac = fmt::format("{:02x}", fmt::join(mac, ":"));
  }
  return adapter;
}

}  // namespace faultline::netlink
