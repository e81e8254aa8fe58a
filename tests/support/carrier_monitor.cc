#include "tests/support/carrier_monitor.h"

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "injector/netlink/namespace.h"
#include "tests/support/poll_until.h"

namespace faultline::test {

Result<CarrierMonitor> CarrierMonitor::open(int namespace_fd, int ifindex) {
  ASSIGN_OR_RETURN(const netlink::ScopedNamespace inside,
                   netlink::ScopedNamespace::enter(namespace_fd));
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, "listen to link events");
  }
  return CarrierMonitor(std::move(fd), ifindex);
}

const std::vector<CarrierMonitor::Event>& CarrierMonitor::changes() {
  alignas(nlmsghdr) std::array<char, 16384> buffer;
  while (true) {
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return changes_;
    auto left = static_cast<unsigned>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      const auto* const link = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
      if (header->nlmsg_type != RTM_NEWLINK || link->ifi_index != ifindex_) continue;
      const bool carrier = (link->ifi_flags & IFF_LOWER_UP) != 0;
      if (carrier == carrier_) continue;
      carrier_ = carrier;
      changes_.push_back({now(), carrier});
    }
  }
}

bool CarrierMonitor::await(bool carrier, Duration budget) {
  return pollUntil(budget, [&] {
    changes();
    return carrier_ == carrier;
  });
}

}  // namespace faultline::test
