#include "injector/netlink/shaper.h"

#include <arpa/inet.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "injector/netlink/root_queue.h"

namespace faultline::netlink {
namespace {

// Handles of ours, so that they are told from other people's.
constexpr std::uint32_t kRoot = 0xfa170000;
constexpr std::uint32_t kBulkClass = kRoot | 0x10;
static_assert(kControlClass == (kRoot | 0x20));
constexpr std::uint32_t kBulkQueue = 0xfa180000;
constexpr std::uint32_t kControlQueue = 0xfa190000;

// Control needs room for bursts of probes and small messages, not more.
constexpr Bytes kControlQueueBytes = 128 * 1024;
constexpr std::uint32_t kControlPriority = 0;
constexpr std::uint32_t kBulkPriority = 1;
// Bytes per round between classes of one priority: no two of ours share one, so any value that is
// above the MTU does; given, because the kernel warns about what it computes by itself.
constexpr std::uint32_t kQuantum = 64 * 1024;
constexpr std::uint32_t kHtbVersion = 3;        // the kernel refuses any other
constexpr std::uint32_t kHtbRate2Quantum = 10;  // the kernel's own default

std::uint64_t bytesPerSecond(BitsPerSecond rate) { return static_cast<std::uint64_t>(rate) / 8; }

Status writeClass(Socket& socket, int ifindex, std::uint32_t handle, std::uint32_t priority,
                  const ClassPlan& plan, int flags) {
  tc_htb_opt options{};
  const std::uint64_t rate = bytesPerSecond(plan.rate);
  options.rate.rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(rate, std::numeric_limits<std::uint32_t>::max()));
  // With the link layer named, the kernel computes transmission times and needs no table of them.
  options.rate.linklayer = TC_LINKLAYER_ETHERNET;
  options.ceil = options.rate;
  options.buffer = options.cbuffer = burstTicks(plan);
  options.quantum = kQuantum;
  options.prio = priority;
  Message message(RTM_NEWTCLASS, flags, trafficControlHeader(ifindex, handle, kRoot));
  message.putString(TCA_KIND, "htb");
  message.nest(TCA_OPTIONS, [&](Message& nested) {
    nested.put(TCA_HTB_PARMS, &options, sizeof options);
    if (rate > std::numeric_limits<std::uint32_t>::max()) {
      nested.put(TCA_HTB_RATE64, rate).put(TCA_HTB_CEIL64, rate);
    }
  });
  return socket.request(std::move(message), fmt::format("set the rate of interface {} to {}",
                                                        ifindex, formatRate(plan.rate)));
}

Status addRoot(Socket& socket, int ifindex) {
  tc_htb_glob options{};
  options.version = kHtbVersion;
  options.rate2quantum = kHtbRate2Quantum;
  options.defcls = TC_H_MIN(kBulkClass);
  Message message(RTM_NEWQDISC, kCreateNew, trafficControlHeader(ifindex, kRoot, TC_H_ROOT));
  message.putString(TCA_KIND, "htb");
  message.nest(TCA_OPTIONS,
               [&](Message& nested) { nested.put(TCA_HTB_INIT, &options, sizeof options); });
  return socket.request(std::move(message), fmt::format("shape interface {} (htb)", ifindex));
}

Status addQueue(Socket& socket, int ifindex, std::uint32_t handle, std::uint32_t parent,
                Bytes limit) {
  tc_fifo_qopt options{};
  options.limit = static_cast<std::uint32_t>(limit);
  Message message(RTM_NEWQDISC, kCreateNew, trafficControlHeader(ifindex, handle, parent));
  message.putString(TCA_KIND, "bfifo").put(TCA_OPTIONS, &options, sizeof options);
  return socket.request(std::move(message), fmt::format("give interface {} a queue", ifindex));
}

/// Frames of `protocol` whose first 32 bits, masked, equal `value` go to the control class.
Status addFilter(Socket& socket, int ifindex, std::uint16_t priority, std::uint16_t protocol,
                 std::uint32_t value, std::uint32_t mask) {
  tc_u32_sel selector{};
  selector.flags = TC_U32_TERMINAL;
  selector.nkeys = 1;
  tc_u32_key key{};
  key.val = htonl(value);
  key.mask = htonl(mask);
  std::array<char, sizeof selector + sizeof key> match;  // the keys follow the selector
  std::memcpy(match.data(), &selector, sizeof selector);
  std::memcpy(match.data() + sizeof selector, &key, sizeof key);
  tcmsg filter = trafficControlHeader(ifindex, 0, kRoot);
  filter.tcm_info = TC_H_MAKE(std::uint32_t{priority} << 16, htons(protocol));
  Message message(RTM_NEWTFILTER, kCreateNew, filter);
  message.putString(TCA_KIND, "u32");
  message.nest(TCA_OPTIONS, [&](Message& nested) {
    nested.put(TCA_U32_CLASSID, kControlClass).put(TCA_U32_SEL, match.data(), match.size());
  });
  return socket.request(std::move(message),
                        fmt::format("sort control frames of interface {} (u32)", ifindex));
}

Status requireOurs(Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const RootQueue root, readAnyRootQueue(socket, ifindex));
  const std::string& kind = root.state.kind;
  if (kind == "htb" && root.handle == kRoot) return okStatus();
  return errorf(Code::kNotFound, "interface {} is not shaped by us: its root queue is {}", ifindex,
                kind.empty() ? "none" : kind);
}

ShaperState parseClass(const nlmsghdr* answer) {
  const Attributes<TCA_MAX> attributes(answer, sizeof(tcmsg));
  ShaperState state;
  if (attributes[TCA_OPTIONS] != nullptr) {
    const Attributes<TCA_HTB_MAX> options(attributes[TCA_OPTIONS]);
    const auto parameters = options.value<tc_htb_opt>(TCA_HTB_PARMS);
    const auto rate = options.value<std::uint64_t>(TCA_HTB_RATE64, parameters.rate.rate);
    constexpr double kSecondsPerTick = 64e-9;
    state.rate = static_cast<BitsPerSecond>(rate * 8);
    state.burst = static_cast<Bytes>(static_cast<double>(parameters.buffer) * kSecondsPerTick *
                                     static_cast<double>(rate));
  }
  if (attributes[TCA_STATS2] != nullptr) {
    const Attributes<TCA_STATS_MAX> stats(attributes[TCA_STATS2]);
    state.sent_bytes = stats.value<std::uint64_t>(TCA_STATS_BASIC);  // its first member
    const auto queue = stats.value<gnet_stats_queue>(TCA_STATS_QUEUE);
    state.backlog = queue.backlog;
    state.drops = queue.drops;
  }
  return state;
}

}  // namespace

Status installShaper(Socket& socket, int ifindex, BitsPerSecond rate) {
  RETURN_IF_ERROR(requireDefaultRoot(socket, ifindex, "shape the traffic"));
  const ShaperPlan plan = planShaper(rate);
  RETURN_IF_ERROR(addRoot(socket, ifindex));
  // From here on our own root is in place: an error must not leave it half built.
  const auto build = [&]() -> Status {
    RETURN_IF_ERROR(writeClass(socket, ifindex, kBulkClass, kBulkPriority, plan.bulk, kCreateNew));
    RETURN_IF_ERROR(
        writeClass(socket, ifindex, kControlClass, kControlPriority, plan.control, kCreateNew));
    RETURN_IF_ERROR(addQueue(socket, ifindex, kBulkQueue, kBulkClass, plan.bulk_queue));
    RETURN_IF_ERROR(addQueue(socket, ifindex, kControlQueue, kControlClass, kControlQueueBytes));
    // Byte 1 of the IPv4 header; the two lower bits are ECN's.
    constexpr std::uint32_t kTosMask = 0x00fc0000;
    RETURN_IF_ERROR(
        addFilter(socket, ifindex, 1, ETH_P_IP, std::uint32_t{kControlTos} << 16, kTosMask));
    // All of ARP: a request lost behind bulk data costs a second.
    return addFilter(socket, ifindex, 2, ETH_P_ARP, 0, 0);
  };
  const Status status = build();
  if (!status.ok()) {
    const Status undone = removeShaper(socket, ifindex);
    if (!undone.ok()) return status.withContext(undone.message());
  }
  return status;
}

Status setShaperRate(Socket& socket, int ifindex, BitsPerSecond rate) {
  RETURN_IF_ERROR(requireOurs(socket, ifindex));
  // Without NLM_F_CREATE the kernel changes what is there, and refuses if it is not.
  return writeClass(socket, ifindex, kBulkClass, kBulkPriority, planShaper(rate).bulk, 0);
}

Result<ShaperState> readShaper(Socket& socket, int ifindex) {
  Message message(RTM_GETTCLASS, 0, trafficControlHeader(ifindex, 0, 0));
  ShaperState state;
  bool found = false;
  RETURN_IF_ERROR(socket.dump(
      message, fmt::format("read the classes of interface {}", ifindex),
      [&](const nlmsghdr* answer) {
        if (static_cast<const tcmsg*>(nlmsg_data(answer))->tcm_handle != kBulkClass) return;
        state = parseClass(answer);
        found = true;
      },
      [&] { found = false; }));
  if (!found) return errorf(Code::kNotFound, "interface {} is not shaped by us", ifindex);
  return state;
}

Status removeShaper(Socket& socket, int ifindex) {
  RETURN_IF_ERROR(requireOurs(socket, ifindex));
  return socket.request(Message(RTM_DELQDISC, 0, trafficControlHeader(ifindex, kRoot, TC_H_ROOT)),
                        fmt::format("remove the shaper of interface {}", ifindex));
}

}  // namespace faultline::netlink
