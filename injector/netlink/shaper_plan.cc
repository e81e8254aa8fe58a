#include "injector/netlink/shaper_plan.h"

#include <algorithm>
#include <limits>

namespace faultline::netlink {
namespace {

constexpr double kBitsPerByte = 8;

// Burst: large enough that timers firing a millisecond late lose nothing, small enough that a port
// cannot save up bandwidth while idle and flatter whoever pauses. (Measured: with 2 ms a ring keeps
// 0.97 of what iperf3 reaches.)
constexpr double kBurstSeconds = 0.002;
constexpr Bytes kSmallestBurst = 16 * 1024;

// Queue: as the buffer of a switch port, so many milliseconds at full rate; never less than what a
// few senders' segments of 64 KiB need in order not to be dropped at once.
constexpr double kQueueSeconds = 0.010;
constexpr Bytes kSmallestQueue = 256 * 1024;

// Control: a tenth of the port, besides it. Fabrics give control the right of way and no rate of
// its own; here it must have one, and what is too little of it makes small messages, each of which
// has a grant and an acknowledgement, slower than the network. (Measured: of 4 Mbit/s, 2000
// datagrams a second, AllReduces of 1 KiB among 4 ranks take 3.6 ms instead of 0.56.)
constexpr BitsPerSecond kControlShare = 10;
constexpr BitsPerSecond kLeastControlRate = 40'000'000;

// The kernel's packet scheduler counts time in ticks of 2^6 ns since Linux 2.6.31
// (PSCHED_SHIFT in include/net/pkt_sched.h).
constexpr double kTicksPerSecond = 1e9 / 64;

Bytes bytesIn(BitsPerSecond rate, double seconds) {
  return static_cast<Bytes>(static_cast<double>(rate) / kBitsPerByte * seconds);
}

}  // namespace

ShaperPlan planShaper(BitsPerSecond rate) {
  ShaperPlan plan;
  plan.bulk = {rate, std::max(kSmallestBurst, bytesIn(rate, kBurstSeconds))};
  plan.bulk_queue = std::max(kSmallestQueue, bytesIn(rate, kQueueSeconds));
  plan.control = {std::max(kLeastControlRate, rate / kControlShare), kSmallestBurst};
  return plan;
}

std::uint32_t burstTicks(const ClassPlan& plan) {
  const double seconds =
      static_cast<double>(plan.burst) * kBitsPerByte / static_cast<double>(plan.rate);
  return static_cast<std::uint32_t>(
      std::min<double>(seconds * kTicksPerSecond, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace faultline::netlink
