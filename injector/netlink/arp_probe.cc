#include "injector/netlink/arp_probe.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "injector/netlink/frame_socket.h"
#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

/// RFC 826 for Ethernet and IPv4.
struct [[gnu::packed]] ArpPacket {
  std::uint16_t hardware = htons(ARPHRD_ETHER);
  std::uint16_t protocol = htons(ETH_P_IP);
  std::uint8_t hardware_size = ETH_ALEN;
  std::uint8_t protocol_size = sizeof(std::uint32_t);
  std::uint16_t operation = 0;
  MacAddress sender_mac{};
  std::uint32_t sender_address = 0;
  MacAddress target_mac{};
  std::uint32_t target_address = 0;
};
static_assert(sizeof(ArpPacket) == 28);

}  // namespace

Result<ArpProbe> ArpProbe::open(Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const Link link, readLink(socket, ifindex));
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ARP)));
  if (!fd) return Status::fromErrno(errno, "open a packet socket");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex;
  address.sll_protocol = htons(ETH_P_ARP);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, fmt::format("listen on interface {}", ifindex));
  }
  return ArpProbe(std::move(fd), ifindex, link.mac);
}

Status ArpProbe::ask(std::uint32_t address) const {
  ArpPacket question;
  question.operation = htons(ARPOP_REQUEST);
  question.sender_mac = mac_;
  question.target_address = address;
  sockaddr_ll everybody{};
  everybody.sll_family = AF_PACKET;
  everybody.sll_ifindex = ifindex_;
  everybody.sll_protocol = htons(ETH_P_ARP);
  everybody.sll_halen = ETH_ALEN;
  std::copy(kBroadcastMac.begin(), kBroadcastMac.end(), everybody.sll_addr);
  const ssize_t sent = ::sendto(fd_.get(), &question, sizeof question, 0,
                                reinterpret_cast<const sockaddr*>(&everybody), sizeof everybody);
  if (sent >= 0 || errno == EAGAIN || errno == ENOBUFS) return okStatus();  // is asked again
  return Status::fromErrno(errno, fmt::format("ask on interface {} who has an address", ifindex_));
}

Result<std::vector<ArpAnswer>> ArpProbe::answers() const {
  std::vector<ArpAnswer> answers;
  while (true) {
    ArpPacket packet;
    const ssize_t size = ::recv(fd_.get(), &packet, sizeof packet, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return answers;
    if (size < 0 && errno == ENETDOWN) continue;  // what is queued can still be read
    if (size < 0) return Status::fromErrno(errno, "receive answers to who has an address");
    if (size < static_cast<ssize_t>(sizeof packet)) continue;
    if (packet.operation != htons(ARPOP_REPLY)) continue;
    answers.push_back({packet.sender_address, packet.sender_mac});
  }
}

}  // namespace faultline::netlink
