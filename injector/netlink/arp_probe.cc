#include "injector/netlink/arp_probe.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if_arp.h>

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
  ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(socket, ifindex));
  ASSIGN_OR_RETURN(PacketSocket packets, PacketSocket::open(socket, ifindex, ETH_P_ARP));
  return ArpProbe(std::move(packets), link.mac);
}

Status ArpProbe::ask(std::uint32_t address) const {
  ArpPacket question;
  question.operation = htons(ARPOP_REQUEST);
  question.sender_mac = mac_;
  question.target_address = address;
  const auto sent = packets_.send(ETH_P_ARP, kBroadcastMac, &question, sizeof question);
  // A full queue is no failure: it is asked again.
  return sent.status().withContext("ask who has an address");
}

Result<std::vector<ArpAnswer>> ArpProbe::answers() const {
  std::vector<ArpAnswer> answers;
  while (true) {
    ArpPacket packet;
    ASSIGN_OR_RETURN(const auto size, packets_.receive(&packet, sizeof packet));
    if (!size) return answers;
    if (*size < sizeof packet) continue;
    if (packet.operation != htons(ARPOP_REPLY)) continue;
    answers.push_back({packet.sender_address, packet.sender_mac});
  }
}

}  // namespace faultline::netlink
