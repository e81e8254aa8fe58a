#include "resilient_ccl/fabric/route_lookup.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/unique_fd.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {
namespace {

struct RouteRequest {
  nlmsghdr header{};
  rtmsg route{};
  std::array<std::byte, 3 * RTA_SPACE(sizeof(std::uint32_t))> attributes{};

  void add(unsigned short type, std::uint32_t value) {
    rtattr attribute{};
    attribute.rta_type = type;
    attribute.rta_len = RTA_LENGTH(sizeof(value));
    std::byte* const at = attributes.data() + (header.nlmsg_len - NLMSG_LENGTH(sizeof(route)));
    std::memcpy(at, &attribute, sizeof(attribute));
    std::memcpy(at + RTA_LENGTH(0), &value, sizeof(value));
    header.nlmsg_len += RTA_SPACE(sizeof(value));
  }
};

}  // namespace

Result<Route> lookUpRoute(std::uint32_t from, std::uint32_t to, const std::string& device) {
  constexpr unsigned char kAllBits = 32;
  RouteRequest request;
  request.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg)),
                    .nlmsg_type = RTM_GETROUTE,
                    .nlmsg_flags = NLM_F_REQUEST,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.route.rtm_family = AF_INET;
  request.route.rtm_dst_len = kAllBits;
  // The entry of a table, where otherwise a route would be made up.
  request.route.rtm_flags = RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH;
  request.add(RTA_DST, htonl(to));
  if (from != 0) {
    request.route.rtm_src_len = kAllBits;
    request.add(RTA_SRC, htonl(from));
  }
  if (!device.empty()) {
    const unsigned index = if_nametoindex(device.c_str());
    if (index == 0) return errorf(Code::kIo, "there is no interface {} now", device);
    request.add(RTA_OIF, index);
  }
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return Status::fromErrno(errno, "open a netlink socket");
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) {
    return Status::fromErrno(errno, "ask for a route over netlink");
  }
  constexpr std::size_t kLongestAnswer = 8192;
  alignas(nlmsghdr) std::array<std::byte, kLongestAnswer> answer{};
  const ssize_t size = ::recv(socket.get(), answer.data(), answer.size(), 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) {
    return errorf(Code::kIo, "the kernel's answer about a route is no answer");
  }
  nlmsghdr header;
  std::memcpy(&header, answer.data(), sizeof(header));
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    std::memcpy(&error.error, answer.data() + NLMSG_LENGTH(0), sizeof(error.error));
    switch (-error.error) {
      case ENETUNREACH:
      case EHOSTUNREACH:
      case EACCES:  // a route that prohibits
        return Route::kNone;
      default:
        return Status::fromErrno(-error.error, "ask for a route over netlink");
    }
  }
  rtmsg route;
  std::memcpy(&route, answer.data() + NLMSG_LENGTH(0), sizeof(route));
  return route.rtm_type == RTN_LOCAL ? Route::kRemains : Route::kLeaves;
}

std::string missingRoute(std::uint32_t from, std::uint32_t to, const std::string& device) {
  if (from == 0 || to == 0 || device.empty()) return "";
  const Result<Route> route = lookUpRoute(from, to, device);
  if (!route.ok() || *route != Route::kNone) return "";
  const std::string source = transport::tcp::formatAddress(from);
  return fmt::format(
      "this node has no route from {} to {} over {}: see `ip rule` (from {} lookup TABLE) and `ip "
      "route show table TABLE`",
      source, transport::tcp::formatAddress(to), device, source);
}

}  // namespace faultline::fabric
