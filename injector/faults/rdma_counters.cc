#include "injector/faults/rdma_counters.h"

#include <array>
#include <fstream>
#include <string_view>

#include "injector/netlink/counters.h"

namespace faultline::injector {
namespace {

// Of rxe all packets; of mlx5 requests.
constexpr std::array<std::string_view, 3> kReceivedNames{"rcvd_pkts", "rx_read_requests",
                                                         "rx_write_requests"};
constexpr std::array<std::string_view, 1> kSentNames{"sent_pkts"};

template <typename Names>
std::optional<std::uint64_t> firstOf(const rdma::Counters& counters, const Names& names) {
  for (const std::string_view name : names) {
    const auto found = counters.find(name);
    if (found != counters.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> receivedPackets(const rdma::Counters& counters) {
  return firstOf(counters, kReceivedNames);
}

std::optional<std::uint64_t> sentPackets(const rdma::Counters& counters) {
  return firstOf(counters, kSentNames);
}

Result<std::uint64_t> receivedPackets(rdma::TargetDevice& device) {
  ASSIGN_OR_RETURN(const rdma::Counters counters, device.readCounters());
  if (const auto packets = receivedPackets(counters)) return *packets;
  if (device.portAtFirst().netdev_ifindex == 0) return std::uint64_t{0};
  ASSIGN_OR_RETURN(const netlink::LinkCounters netdev,
                   netlink::readCounters(device.route(), device.portAtFirst().netdev_ifindex));
  return netdev.rx_packets;
}

Result<std::uint64_t> sentBytes(const rdma::TargetDevice& device) {
  const std::string path = fmt::format("/sys/class/infiniband/{}/ports/{}/counters/port_xmit_data",
                                       device.device().name, device.portAtFirst().number);
  std::ifstream file(path);
  std::uint64_t words = 0;
  if (!(file >> words)) {
    return errorf(Code::kUnsupported, "{} has no counter of what it sends ({})", device.portName(),
                  path);
  }
  constexpr std::uint64_t kBytesPerWord = 4;  // IBA 16.1.3.5, PortXmitData
  return words * kBytesPerWord;
}

}  // namespace faultline::injector
