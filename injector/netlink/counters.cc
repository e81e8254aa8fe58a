#include "injector/netlink/counters.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

Message question(int ifindex) {
  if_stats_msg header{};
  header.family = AF_UNSPEC;
  header.ifindex = static_cast<std::uint32_t>(ifindex);
  header.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  return Message(RTM_GETSTATS, 0, header);
}

LinkCounters parse(const nlmsghdr* message) {
  const Attributes<IFLA_STATS_MAX> attributes(message, sizeof(if_stats_msg));
  LinkCounters counters;
  counters.ifindex =
      static_cast<int>(static_cast<const if_stats_msg*>(nlmsg_data(message))->ifindex);
  const nlattr* const found = attributes[IFLA_STATS_LINK_64];
  rtnl_link_stats64 stats{};
  if (found != nullptr) {
    // Older kernels send a shorter structure: what is missing stays zero.
    const auto size = std::min<std::size_t>(sizeof stats, static_cast<std::size_t>(nla_len(found)));
    __builtin_memcpy(&stats, nla_data(found), size);
  }
  counters.rx_bytes = stats.rx_bytes;
  counters.tx_bytes = stats.tx_bytes;
  counters.rx_packets = stats.rx_packets;
  counters.tx_packets = stats.tx_packets;
  counters.tx_dropped = stats.tx_dropped;
  return counters;
}

}  // namespace

Result<LinkCounters> readCounters(Socket& socket, int ifindex) {
  Message message = question(ifindex);
  LinkCounters counters;
  RETURN_IF_ERROR(socket.ask(message, fmt::format("read the counters of interface {}", ifindex),
                             [&](const nlmsghdr* answer) { counters = parse(answer); }));
  return counters;
}

Result<CounterFile> CounterFile::open(int namespace_fd) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(namespace_fd));
  constexpr const char* kPath = "/proc/thread-self/net/dev";
  UniqueFd fd(::open(kPath, O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, fmt::format("open {}", kPath));
  return CounterFile(std::move(fd));
}

Status CounterFile::read(const std::function<void(std::string_view, const LinkCounters&)>& visit) {
  constexpr std::size_t kStep = 16 << 10;
  std::size_t size = 0;
  for (;;) {
    if (buffer_.size() < size + kStep) buffer_.resize(size + kStep);
    const ssize_t got =
        ::pread(fd_.get(), buffer_.data() + size, buffer_.size() - size, static_cast<off_t>(size));
    if (got < 0) return Status::fromErrno(errno, "read the counters of a namespace");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  // "  name: rx_bytes rx_packets errs drop fifo frame compressed multicast tx_bytes tx_packets ..."
  std::string_view text(buffer_.data(), size);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;  // a heading
    std::string_view name = line.substr(0, colon);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    std::array<std::uint64_t, 12> numbers{};
    const char* at = line.data() + colon + 1;
    for (std::uint64_t& number : numbers) {
      while (at < line.data() + line.size() && *at == ' ') ++at;
      at = std::from_chars(at, line.data() + line.size(), number).ptr;
    }
    LinkCounters counters;
    counters.rx_bytes = numbers[0];
    counters.rx_packets = numbers[1];
    counters.tx_bytes = numbers[8];
    counters.tx_packets = numbers[9];
    counters.tx_dropped = numbers[11];
    visit(name, counters);
  }
  return okStatus();
}

}  // namespace faultline::netlink
