#include "harness/agent/host_facts.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

#include "base/file_text.h"
#include "base/unique_fd.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/socket.h"
#include "injector/rdma/nldev.h"

namespace faultline::agent {
namespace {

constexpr BitsPerSecond kMegabit = 1'000'000;

/// An interface, as ioctl(2) names it.
ifreq requestOf(const std::string& name) {
  ifreq request{};
  std::copy_n(name.data(), std::min(name.size(), sizeof request.ifr_name - 1), request.ifr_name);
  return request;
}

/// One question of ethtool; false: the driver has no answer.
template <typename Answer>
bool askDriver(int socket, const std::string& name, Answer& answer) {
  ifreq request = requestOf(name);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return ::ioctl(socket, SIOCETHTOOL, &request) == 0;
}

std::string linkLayer(int socket, const std::string& name) {
  ifreq request = requestOf(name);
  if (::ioctl(socket, SIOCGIFHWADDR, &request) != 0) return "other";
  switch (request.ifr_hwaddr.sa_family) {
    case ARPHRD_ETHER:
      return "ether";
    case ARPHRD_INFINIBAND:
      return "infiniband";
    case ARPHRD_LOOPBACK:
      return "loopback";
    default:
      return "other";
  }
}

BitsPerSecond speedOf(int socket, const std::string& name) {
  // The older question of the two: any driver answers it, and no second round is needed.
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_GSET;
  if (!askDriver(socket, name, settings)) return 0;
  const std::uint32_t megabits = ethtool_cmd_speed(&settings);
  return megabits == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? 0 : kMegabit * megabits;
}

/// "0000:3b:00.0"; empty of what is on no PCI bus.
std::string pciOf(int socket, const std::string& name) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!askDriver(socket, name, driver)) return "";
  const char* const end = std::find(std::begin(driver.bus_info), std::end(driver.bus_info), 0);
  const std::string bus(static_cast<const char*>(driver.bus_info), end);
  return std::ranges::count(bus, ':') == 2 && bus.find('.') != std::string::npos ? bus : "";
}

/// By the name of the interface behind it; none where the kernel has no RDMA.
std::map<std::string, std::string> rdmaDevices() {
  std::map<std::string, std::string> devices;
  auto socket = rdma::openSocket();
  if (!socket.ok()) return devices;
  const auto list = rdma::listDevices(*socket);
  if (!list.ok()) return devices;
  for (const rdma::Device& device : *list) {
    const auto ports = rdma::listPorts(*socket, device.index);
    if (!ports.ok()) continue;
    for (const rdma::Port& port : *ports) {
      if (!port.netdev.empty()) devices.emplace(port.netdev, device.name);
    }
  }
  return devices;
}

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string defaultRouteIn(std::string_view text) {
  // "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
  std::string found;
  unsigned long lowest = ~0UL;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string interface, destination, gateway, flags, references, use, mask;
    unsigned long metric = 0;
    words >> interface >> destination >> gateway >> flags >> references >> use >> metric >> mask;
    constexpr const char* kAny = "00000000";
    if (!words || destination != kAny || mask != kAny || metric >= lowest) continue;
    lowest = metric;
    found = interface;
  }
  return found;
}

std::string reachedAt(std::string_view connection) {
  std::istringstream words{std::string(connection)};
  std::string client, clientPort, address;
  words >> client >> clientPort >> address;
  return address;
}

std::string reachedFrom() {
  const char* const connection = std::getenv("SSH_CONNECTION");
  std::istringstream words{std::string(connection == nullptr ? "" : connection)};
  std::string client;
  words >> client;
  return client.substr(0, client.find('%'));  // of a link: without its interface
}

Bytes privateMemoryIn(std::string_view text) {
  constexpr Bytes kKilobyte = 1024;
  Bytes sum = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes kilobytes = 0;
    if (words >> name >> kilobytes && name.starts_with("Private_")) sum += kilobytes * kKilobyte;
  }
  return sum;
}

Result<wire::HostFacts> readHostFacts() {
  wire::HostFacts facts;
  utsname system{};
  if (::uname(&system) != 0) return Status::fromErrno(errno, "ask for the name of this machine");
  facts.hostname = system.nodename;
  facts.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  facts.bootId = firstLine(fileText("/proc/sys/kernel/random/boot_id"));
  facts.agentMemory = privateMemoryIn(fileText("/proc/self/smaps_rollup"));
  facts.cores = static_cast<int>(std::thread::hardware_concurrency());
  facts.defaultRoute = defaultRouteIn(fileText("/proc/thread-self/net/route"));
  const char* const connection = std::getenv("SSH_CONNECTION");
  if (connection != nullptr) facts.reachedAt = reachedAt(connection);
  const char* const temporary = std::getenv("TMPDIR");
  facts.temporary = temporary != nullptr && *temporary == '/' ? temporary : "/tmp";

  ASSIGN_OR_RETURN(const UniqueFd network, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(network.get()));
  const UniqueFd questions(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!questions) return Status::fromErrno(errno, "open a socket for ethtool");
  const std::map<std::string, std::string> rdma = rdmaDevices();
  ASSIGN_OR_RETURN(const std::vector<netlink::NetDevice> devices, netlink::listNetDevices(socket));
  for (const netlink::NetDevice& device : devices) {
    wire::HostPort& port = facts.ports.emplace_back();
    port.name = device.name;
    port.kind = device.kind;
    port.link = linkLayer(questions.get(), device.name);
    port.up = device.admin_up;
    port.carrier = device.carrier;
    port.mtu = static_cast<int>(device.mtu);
    port.speed = speedOf(questions.get(), device.name);
    port.pci = pciOf(questions.get(), device.name);
    if (const auto found = rdma.find(device.name); found != rdma.end()) port.rdma = found->second;
    ASSIGN_OR_RETURN(const auto addresses, netlink::listAddresses(socket, device.ifindex));
    for (const netlink::Ipv4Address& address : addresses) {
      port.addresses.push_back(fmt::format("{}/{}", address.toString(), address.prefix_length));
    }
  }
  return facts;
}

}  // namespace faultline::agent
