#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// What an interface has carried since it exists, counted by the kernel in 64 bits.
struct LinkCounters {
  int ifindex = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_packets = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_dropped = 0;
};

/// Counters of one interface.
Result<LinkCounters> readCounters(Socket& socket, int ifindex);

/// Counters of all interfaces of one namespace, made to be read every millisecond. Through procfs
/// and not through netlink: a netlink answer waits for the kernel's one lock of all network
/// namespaces, which somebody else's namespace may hold for 100 ms while it is taken down.
class CounterFile {
 public:
  /// Opens the namespace's counters (the calling thread goes there and comes back). Holds the
  /// namespace.
  static Result<CounterFile> open(int namespace_fd);

  /// Calls `visit(name, counters)` for every interface; the name lives during the call.
  Status read(const std::function<void(std::string_view, const LinkCounters&)>& visit);

 private:
  explicit CounterFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::string buffer_;
};

}  // namespace faultline::netlink
