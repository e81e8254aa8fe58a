#include "injector/netlink/roce_frames.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cstring>

namespace faultline::netlink {
namespace {

// From the network header on (RFC 791, RFC 8200, RFC 768).
constexpr std::uint32_t kNetworkHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kIpv4FragmentAt = kNetworkHeader + 6;
constexpr std::uint32_t kIpv4FragmentMask = 0x1fff;
constexpr std::uint32_t kIpv4ProtocolAt = kNetworkHeader + 9;
constexpr std::uint32_t kIpv4PortAt = kNetworkHeader + 22;
constexpr std::uint32_t kIpv4NoOptions = 0x45;
constexpr std::uint32_t kIpv6NextAt = kNetworkHeader + 6;
constexpr std::uint32_t kIpv6PortAt = kNetworkHeader + 42;

// What a RoCE packet has at least after UDP: base transport header and checksum.
constexpr std::size_t kLeastPayload = 16;

/// RFC 1071.
std::uint16_t checksum(const void* data, std::size_t size) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<std::uint16_t>(~sum));
}

}  // namespace

std::vector<sock_filter> roceProgram(std::uint32_t on_roce, std::uint32_t otherwise) {
  constexpr auto kEthertype =
      static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_PROTOCOL);
  return {
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kEthertype},           // 0
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 8, ETH_P_IP},            // 1: else 10
      sock_filter{BPF_LD | BPF_B | BPF_ABS, 0, 0, kNetworkHeader},       // 2
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 12, kIpv4NoOptions},     // 3: else 16
      sock_filter{BPF_LD | BPF_B | BPF_ABS, 0, 0, kIpv4ProtocolAt},      // 4
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 10, IPPROTO_UDP},        // 5: else 16
      sock_filter{BPF_LD | BPF_H | BPF_ABS, 0, 0, kIpv4FragmentAt},      // 6
      sock_filter{BPF_JMP | BPF_JSET | BPF_K, 8, 0, kIpv4FragmentMask},  // 7: if so 16
      sock_filter{BPF_LD | BPF_H | BPF_ABS, 0, 0, kIpv4PortAt},          // 8
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 5, 6, kRocePort},           // 9: 15 or 16
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 5, ETH_P_IPV6},          // 10: else 16
      sock_filter{BPF_LD | BPF_B | BPF_ABS, 0, 0, kIpv6NextAt},          // 11
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, IPPROTO_UDP},         // 12: else 16
      sock_filter{BPF_LD | BPF_H | BPF_ABS, 0, 0, kIpv6PortAt},          // 13
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kRocePort},           // 14: 15 or 16
      sock_filter{BPF_RET | BPF_K, 0, 0, on_roce},                       // 15
      sock_filter{BPF_RET | BPF_K, 0, 0, otherwise},                     // 16
  };
}

std::vector<std::uint8_t> roceProbe() {
  constexpr const char* kSource = "192.0.2.1";
  constexpr const char* kDestination = "192.0.2.2";
  std::vector<std::uint8_t> packet(sizeof(iphdr) + sizeof(udphdr) + kLeastPayload);
  iphdr ip{};
  ip.version = 4;
  ip.ihl = sizeof(iphdr) / 4;
  ip.tot_len = htons(static_cast<std::uint16_t>(packet.size()));
  ip.ttl = 1;
  ip.protocol = IPPROTO_UDP;
  ::inet_pton(AF_INET, kSource, &ip.saddr);
  ::inet_pton(AF_INET, kDestination, &ip.daddr);
  ip.check = checksum(&ip, sizeof ip);
  udphdr udp{};
  udp.uh_sport = udp.uh_dport = htons(kRocePort);
  udp.uh_ulen = htons(static_cast<std::uint16_t>(sizeof(udphdr) + kLeastPayload));
  std::memcpy(packet.data(), &ip, sizeof ip);
  std::memcpy(packet.data() + sizeof ip, &udp, sizeof udp);
  return packet;
}

}  // namespace faultline::netlink
