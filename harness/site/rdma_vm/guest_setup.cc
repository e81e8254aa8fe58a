#include "harness/site/rdma_vm/guest_setup.h"

#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "harness/site/addresses.h"
#include "harness/site/rdma_vm/vm_plan.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/message.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/socket.h"

namespace faultline::rdma_vm {

namespace {

constexpr int kLoopbackIndex = 1;
constexpr Duration kActiveBudget = 30s;
constexpr int kPauseMilliseconds = 10;
constexpr const char* kRdmaKind = "rxe";
constexpr std::string_view kActive = "ACTIVE";
constexpr const char* kMissing = "missing";

Status rename(netlink::Socket& socket, int ifindex, const std::string& name) {
  ifinfomsg header{};
  header.ifi_index = ifindex;
  netlink::Message message(RTM_NEWLINK, 0, header);
  message.putString(IFLA_IFNAME, name);
  return socket.request(std::move(message), "name an interface " + name);
}

/// As `rdma link add DEVICE type rxe netdev NIC` does.
Status addRdmaDevice(netlink::Socket& socket, const std::string& device, const std::string& nic) {
  netlink::Message message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK), 0,
                           std::string_view());
  message.putString(RDMA_NLDEV_ATTR_DEV_NAME, device);
  message.putString(RDMA_NLDEV_ATTR_LINK_TYPE, kRdmaKind);
  message.putString(RDMA_NLDEV_ATTR_NDEV_NAME, nic);
  return socket.request(std::move(message), fmt::format("make {} over {}", device, nic));
}

Status setUpNic(netlink::Socket& socket, const wire::GuestSetup& setup, int nic) {
  ASSIGN_OR_RETURN(const std::vector<netlink::NetDevice> links, netlink::listNetDevices(socket));
  const MacAddress mac = macOf(setup.host, nic);
  const auto link = std::ranges::find(links, mac, &netlink::NetDevice::mac);
  if (link == links.end()) {
    return errorf(Code::kNotFound, "there is no NIC with the address {}", inWords(mac));
  }
  RETURN_IF_ERROR(rename(socket, link->ifindex, nicName(nic)));
  if (nic > 0) RETURN_IF_ERROR(netlink::setMtu(socket, link->ifindex, setup.mtu));
  RETURN_IF_ERROR(
      netlink::addAddress(socket, link->ifindex, nicAddress(setup.host, nic), site::kPrefixLength));
  return netlink::setUp(socket, link->ifindex, true);
}

/// The first line of a file; empty when there is none.
std::string lineOf(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

std::string orMissing(const std::string& text) { return text.empty() ? kMissing : text; }

Status awaitActive(int rails) {
  const TimePoint deadline = now() + kActiveBudget;
  for (;;) {
    const std::vector<wire::RailState> states = readRailStates(rails);
    const auto waiting = std::ranges::find_if(states, [](const wire::RailState& state) {
      return state.rdma.find(kActive) == std::string::npos;
    });
    if (waiting == states.end()) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{} is not active after {}, but {} ({}, its NIC {})",
                    rdmaDeviceName(static_cast<int>(waiting - states.begin())),
                    formatDuration(kActiveBudget), waiting->rdma, waiting->physical, waiting->link);
    }
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
}

}  // namespace

Status setUpGuest(const wire::GuestSetup& setup) {
  const std::string name = fmt::format("host{}", setup.host);
  if (::sethostname(name.data(), name.size()) != 0) {
    return Status::fromErrno(errno, "name the host " + name);
  }
  ASSIGN_OR_RETURN(const UniqueFd network, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket links, netlink::Socket::open(network.get()));
  ASSIGN_OR_RETURN(netlink::Socket rdma, netlink::Socket::open(network.get(), NETLINK_RDMA));
  RETURN_IF_ERROR(netlink::setUp(links, kLoopbackIndex, true));
  for (int nic = 0; nic < setup.nics; ++nic) {
    RETURN_IF_ERROR(setUpNic(links, setup, nic).withContext("set up " + nicName(nic)));
    if (nic == 0) continue;
    RETURN_IF_ERROR(addRdmaDevice(rdma, rdmaDeviceName(nic - 1), nicName(nic)));
  }
  return awaitActive(setup.nics - 1);
}

std::vector<wire::RailState> readRailStates(int rails) {
  std::vector<wire::RailState> states;
  for (int rail = 0; rail < rails; ++rail) {
    const std::string link = "/sys/class/net/" + nicName(rail + 1);
    const std::string port = fmt::format("/sys/class/infiniband/{}/ports/1", rdmaDeviceName(rail));
    states.push_back({orMissing(lineOf(link + "/operstate")), lineOf(link + "/carrier") == "1",
                      orMissing(lineOf(port + "/state")), orMissing(lineOf(port + "/phys_state"))});
  }
  return states;
}

}  // namespace faultline::rdma_vm
