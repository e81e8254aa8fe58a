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
// Of mlx5, by the kernel's names. Two-sided sends are counted nowhere.
constexpr std::array<std::string_view, 3> kRequestNames{"rx_write_requests", "rx_read_requests",
                                                        "rx_atomic_requests"};
constexpr std::array<std::string_view, 3> kRepeatNames{"local_ack_timeout_err", "roce_adp_retrans",
                                                       "roce_adp_retrans_to"};
constexpr std::array<std::string_view, 1> kDuplicateNames{"duplicate_request"};

template <typename Names>
std::optional<std::uint64_t> firstOf(const rdma::Counters& counters, const Names& names) {
  for (const std::string_view name : names) {
    const auto found = counters.find(name);
    if (found != counters.end()) return found->second;
  }
  return std::nullopt;
}

template <typename Names>
std::uint64_t sumOf(const rdma::Counters& counters, const Names& names) {
  std::uint64_t sum = 0;
  for (const std::string_view name : names) {
    const auto found = counters.find(name);
    if (found != counters.end()) sum += found->second;
  }
  return sum;
}

Result<std::uint64_t> portCounter(const rdma::TargetDevice& device, std::string_view name) {
  const std::string path = fmt::format("/sys/class/infiniband/{}/ports/{}/counters/{}",
                                       device.device().name, device.portAtFirst().number, name);
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return errorf(Code::kUnsupported, "{} has no counter {} ({})", device.portName(), name, path);
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
  ASSIGN_OR_RETURN(const std::uint64_t words, portCounter(device, "port_xmit_data"));
  constexpr std::uint64_t kBytesPerWord = 4;  // IBA 16.1.3.5, PortXmitData
  return words * kBytesPerWord;
}

AdapterCounts transportCounts(const rdma::Counters& counters) {
  AdapterCounts counts;
  counts.requests = sumOf(counters, kRequestNames);
  counts.repeats = sumOf(counters, kRepeatNames);
  counts.duplicates = sumOf(counters, kDuplicateNames);
  return counts;
}

Result<AdapterCounts> readAdapterCounts(rdma::TargetDevice& device) {
  ASSIGN_OR_RETURN(const rdma::Counters counters, device.readCounters());
  AdapterCounts counts = transportCounts(counters);
  ASSIGN_OR_RETURN(counts.sent, portCounter(device, "port_xmit_packets"));
  ASSIGN_OR_RETURN(counts.received, portCounter(device, "port_rcv_packets"));
  return counts;
}

}  // namespace faultline::injector
