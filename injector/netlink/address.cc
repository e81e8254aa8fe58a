#include "injector/netlink/address.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

namespace faultline::netlink {
namespace {

/// The family header and those attributes that say what the thing is. Others (ages, counters,
/// cache information) change by themselves and are refused or ignored when adding.
template <int kMax, typename Header>
std::string identity(const nlmsghdr* message, const Header& header,
                     std::initializer_list<int> attributes) {
  const Attributes<kMax> found(message, sizeof(Header));
  std::string request(reinterpret_cast<const char*>(&header), sizeof header);
  request.resize(NLMSG_ALIGN(request.size()));
  for (const int attribute : attributes) {
    const nlattr* const value = found[attribute];
    if (value == nullptr) continue;
    request.append(reinterpret_cast<const char*>(value), value->nla_len);
    request.resize(NLMSG_ALIGN(request.size()));
  }
  return request;
}

std::string addressIdentity(const nlmsghdr* message) {
  auto header = *static_cast<const ifaddrmsg*>(nlmsg_data(message));
  header.ifa_flags &= IFA_F_NODAD;  // the others describe a state
  return identity<IFA_MAX>(message, header, {IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST, IFA_LABEL});
}

std::string routeIdentity(const nlmsghdr* message) {
  auto header = *static_cast<const rtmsg*>(nlmsg_data(message));
  header.rtm_flags &= RTNH_F_ONLINK;  // the others describe a state
  return identity<RTA_MAX>(message, header,
                           {RTA_TABLE, RTA_DST, RTA_SRC, RTA_PREFSRC, RTA_OIF, RTA_GATEWAY, RTA_VIA,
                            RTA_PRIORITY, RTA_METRICS, RTA_MULTIPATH, RTA_PREF});
}

bool isOfInterface(const nlmsghdr* message, int ifindex) {
  if (message->nlmsg_type == RTM_NEWADDR) {
    const auto* const header = static_cast<const ifaddrmsg*>(nlmsg_data(message));
    // Link-local IPv6 addresses are made by the kernel itself when the interface comes up.
    return static_cast<int>(header->ifa_index) == ifindex && header->ifa_scope != RT_SCOPE_LINK;
  }
  const auto* const header = static_cast<const rtmsg*>(nlmsg_data(message));
  // What the kernel makes by itself from addresses (connected and local routes, cache entries,
  // redirects) comes and goes with them.
  if (header->rtm_protocol == RTPROT_KERNEL || header->rtm_protocol == RTPROT_REDIRECT ||
      (header->rtm_flags & RTM_F_CLONED) != 0) {
    return false;
  }
  const Attributes<RTA_MAX> attributes(message, sizeof(rtmsg));
  return attributes.value<int>(RTA_OIF) == ifindex;
}

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

Result<InterfaceConfiguration> InterfaceConfiguration::read(Socket& socket, int ifindex) {
  InterfaceConfiguration configuration;
  configuration.ifindex_ = ifindex;
  const auto add = [&](const nlmsghdr* message) {
    if (!isOfInterface(message, ifindex)) return;
    const bool is_address = message->nlmsg_type == RTM_NEWADDR;
    configuration.entries_.push_back(
        {message->nlmsg_type, is_address ? addressIdentity(message) : routeIdentity(message)});
  };
  // Addresses first: restoring happens in this order, and routes need them.
  const auto forget = [&](int type) {
    return [&configuration, type] {
      std::erase_if(configuration.entries_, [&](const Entry& entry) { return entry.type == type; });
    };
  };
  Message addresses(RTM_GETADDR, 0, ifaddrmsg{});
  RETURN_IF_ERROR(socket.dump(addresses, "list addresses", add, forget(RTM_NEWADDR)));
  Message routes(RTM_GETROUTE, 0, rtmsg{});
  RETURN_IF_ERROR(socket.dump(routes, "list routes", add, forget(RTM_NEWROUTE)));
  // Routes without a gateway before those whose gateway they lead to (narrower scope first).
  std::stable_sort(
      configuration.entries_.begin(), configuration.entries_.end(),
      [](const Entry& left, const Entry& right) {
        const auto rank = [](const Entry& entry) {
          if (entry.type != RTM_NEWROUTE) return -256;
          return -static_cast<int>(reinterpret_cast<const rtmsg*>(entry.request.data())->rtm_scope);
        };
        return rank(left) < rank(right);
      });
  return configuration;
}

Result<std::vector<InterfaceConfiguration::Entry>> InterfaceConfiguration::missingEntries(
    Socket& socket) const {
  ASSIGN_OR_RETURN(const InterfaceConfiguration present, read(socket, ifindex_));
  std::vector<Entry> missing;
  for (const Entry& entry : entries_) {
    if (std::find(present.entries_.begin(), present.entries_.end(), entry) ==
        present.entries_.end()) {
      missing.push_back(entry);
    }
  }
  return missing;
}

Status InterfaceConfiguration::restore(Socket& socket) const {
  ASSIGN_OR_RETURN(const std::vector<Entry> lost, missingEntries(socket));
  Status first_error;
  for (const Entry& entry : lost) {
    const Status status =
        socket.request(Message(entry.type, kCreateNew, std::string_view(entry.request)),
                       fmt::format("restore {} of interface {}",
                                   entry.type == RTM_NEWADDR ? "an address" : "a route", ifindex_));
    // The rest is restored all the same: one lost route must not cost the others.
    if (!status.ok() && status.code() != Code::kAlreadyExists && first_error.ok()) {
      first_error = status;
    }
  }
  return first_error;
}

Result<int> InterfaceConfiguration::missing(Socket& socket) const {
  ASSIGN_OR_RETURN(const std::vector<Entry> lost, missingEntries(socket));
  return static_cast<int>(lost.size());
}

}  // namespace faultline::netlink
