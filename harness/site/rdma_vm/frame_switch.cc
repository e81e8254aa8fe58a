#include "harness/site/rdma_vm/frame_switch.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "injector/netlink/roce_frames.h"

namespace faultline::rdma_vm {
namespace {

constexpr std::size_t kSmallestFrame = 14;  // two addresses and a type
constexpr std::uint8_t kGroupBit = 1;       // of an address's first byte

void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

bool isBlocked(const SwitchPort& port) { return port.blocked.load(std::memory_order_relaxed) != 0; }

}  // namespace

Result<SwitchPorts> SwitchPorts::create(int hosts, int nics) {
  UniqueFd fd(::memfd_create("faultline-switch", MFD_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, "make the switch's counters");
  const std::size_t size =
      sizeof(SwitchPort) * static_cast<std::size_t>(hosts) * static_cast<std::size_t>(nics);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Status::fromErrno(errno, "make the switch's counters");
  }
  return open(std::move(fd), hosts, nics);
}

Result<SwitchPorts> SwitchPorts::open(UniqueFd fd, int hosts, int nics) {
  SwitchPorts ports(std::move(fd), nullptr, hosts, nics);
  void* const memory =
      ::mmap(nullptr, ports.size(), PROT_READ | PROT_WRITE, MAP_SHARED, ports.fd_.get(), 0);
  if (memory == MAP_FAILED) return Status::fromErrno(errno, "map the switch's counters");
  ports.memory_ = memory;
  return ports;
}

SwitchPorts::SwitchPorts(UniqueFd fd, void* memory, int hosts, int nics)
    : fd_(std::move(fd)), memory_(memory), hosts_(hosts), nics_(nics) {}

SwitchPorts::SwitchPorts(SwitchPorts&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      hosts_(other.hosts_),
      nics_(other.nics_) {}

SwitchPorts::~SwitchPorts() {
  if (memory_ != nullptr) ::munmap(memory_, size());
}

std::size_t SwitchPorts::size() const {
  return sizeof(SwitchPort) * static_cast<std::size_t>(hosts_) * static_cast<std::size_t>(nics_);
}

SwitchPort& SwitchPorts::at(int host, int nic) const {
  return static_cast<SwitchPort*>(memory_)[host * nics_ + nic];
}

bool isRoce(std::span<const std::uint8_t> frame) {
  const auto has = [&](std::size_t at, std::uint16_t value) {
    return frame.size() >= at + 2 && (frame[at] << 8 | frame[at + 1]) == value;
  };
  const auto hasUdp = [&](std::size_t header, std::size_t protocol, std::size_t length) {
    return frame.size() > header + protocol && frame[header + protocol] == IPPROTO_UDP &&
           has(header + length + 2, netlink::kRocePort);
  };
  constexpr std::uint8_t kWithoutOptions = 0x45;
  if (has(2 * ETH_ALEN, ETH_P_IP)) {
    return frame.size() > ETH_HLEN && frame[ETH_HLEN] == kWithoutOptions &&
           hasUdp(ETH_HLEN, offsetof(iphdr, protocol), sizeof(iphdr));
  }
  return has(2 * ETH_ALEN, ETH_P_IPV6) &&
         hasUdp(ETH_HLEN, offsetof(ip6_hdr, ip6_nxt), sizeof(ip6_hdr));
}

std::vector<int> forward(const SwitchPorts& ports, int host, int nic,
                         std::span<const std::uint8_t> frame) {
  SwitchPort& in = ports.at(host, nic);
  count(in.inFrames);
  count(in.inBytes, frame.size());
  if (isRoce(frame)) count(in.inRoceFrames);
  if (frame.size() < kSmallestFrame) return {};
  if (isBlocked(in)) {
    count(in.dropped);
    return {};
  }
  MacAddress destination;
  std::copy_n(frame.begin(), destination.size(), destination.begin());
  const bool group = (destination[0] & kGroupBit) != 0;
  const int only = hostOf(destination);
  std::vector<int> hosts;
  for (int other = 0; other < ports.hosts(); ++other) {
    if (other == host || (!group && other != only)) continue;
    SwitchPort& out = ports.at(other, nic);
    if (isBlocked(out)) {
      count(out.dropped);
      continue;
    }
    count(out.outFrames);
    count(out.outBytes, frame.size());
    hosts.push_back(other);
  }
  return hosts;
}

}  // namespace faultline::rdma_vm
