#include "injector/netlink/address.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <array>

namespace faultline::netlink {
namespace {

Result<in_addr> parseIpv4(std::string_view address) {
  in_addr binary{};
  if (::inet_pton(AF_INET, std::string(address).c_str(), &binary) == 1) return binary;
  return errorf(Code::kInvalidArgument, "'{}' is not an IPv4 address", address);
}

}  // namespace

Status addAddress(Socket& socket, int ifindex, std::string_view address, int prefix_length) {
  ASSIGN_OR_RETURN(const in_addr binary, parseIpv4(address));
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = static_cast<std::uint8_t>(prefix_length);
  header.ifa_index = static_cast<std::uint32_t>(ifindex);
  const auto host_bits = static_cast<std::uint32_t>((std::uint64_t{1} << (32 - prefix_length)) - 1);
  const std::uint32_t broadcast = binary.s_addr | htonl(host_bits);
  Message message(RTM_NEWADDR, kCreateNew, header);
  message.put(IFA_LOCAL, binary.s_addr).put(IFA_ADDRESS, binary.s_addr);
  message.put(IFA_BROADCAST, broadcast);
  return socket.request(std::move(message),
                        fmt::format("give interface {} the address {}", ifindex, address));
}

std::string Ipv4Address::toString() const {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &binary, text.data(), text.size());
  return text.data();
}

Result<std::vector<Ipv4Address>> listAddresses(Socket& socket, int ifindex) {
  std::vector<Ipv4Address> addresses;
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  Message message(RTM_GETADDR, 0, header);
  RETURN_IF_ERROR(socket.dump(
      message, "list addresses",
      [&](const nlmsghdr* answer) {
        const auto* const found = static_cast<const ifaddrmsg*>(nlmsg_data(answer));
        if (static_cast<int>(found->ifa_index) != ifindex) return;
        const Attributes<IFA_MAX> attributes(answer, sizeof(ifaddrmsg));
        addresses.push_back({attributes.value<std::uint32_t>(IFA_LOCAL), found->ifa_prefixlen});
      },
      [&] { addresses.clear(); }));
  return addresses;
}

Status removeAddress(Socket& socket, int ifindex, const Ipv4Address& address) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.prefix_length);
  header.ifa_index = static_cast<std::uint32_t>(ifindex);
  Message message(RTM_DELADDR, 0, header);
  message.put(IFA_LOCAL, address.binary).put(IFA_ADDRESS, address.binary);
  return socket.request(std::move(message), fmt::format("take the address {} from interface {}",
                                                        address.toString(), ifindex));
}

Status setAddressQuestions(Socket& socket, int ifindex, const AddressQuestions& questions) {
  ndtmsg header{};
  header.ndtm_family = AF_INET;
  Message message(RTM_SETNEIGHTBL, 0, header);
  message.putString(NDTA_NAME, "arp_cache");
  const auto milliseconds = duration_cast<std::chrono::milliseconds>(questions.pause).count();
  const auto count = static_cast<std::uint32_t>(questions.patience / questions.pause);
  message.nest(NDTA_PARMS, [&](Message& nested) {
    nested.put(NDTPA_IFINDEX, static_cast<std::uint32_t>(ifindex));
    nested.put(NDTPA_RETRANS_TIME, static_cast<std::uint64_t>(milliseconds));
    nested.put(NDTPA_MCAST_PROBES, count);  // for a neighbour's first address
    nested.put(NDTPA_UCAST_PROBES, count);  // whether it still has it
  });
  return socket.request(std::move(message),
                        fmt::format("set how interface {} asks for addresses", ifindex));
}

Status addNeighbour(Socket& socket, int ifindex, std::string_view address, const MacAddress& mac) {
  ASSIGN_OR_RETURN(const in_addr binary, parseIpv4(address));
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = ifindex;
  header.ndm_state = NUD_PERMANENT;
  Message message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, header);
  message.put(NDA_DST, binary.s_addr).put(NDA_LLADDR, mac.data(), mac.size());
  return socket.request(std::move(message),
                        fmt::format("tell interface {} where {} is", ifindex, address));
}

}  // namespace faultline::netlink
