#include "injector/netlink/root_queue.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "injector/netlink/shaper_plan.h"

namespace faultline::netlink {
namespace {

// A handle of ours, so that it is told from other people's.
constexpr std::uint32_t kRootQueueHandle = 0xfa1a0000;

Status installRoot(Socket& socket, int ifindex, std::string_view kind, std::string_view attempt,
                   const std::function<void(Message&)>& options) {
  RETURN_IF_ERROR(requireDefaultRoot(socket, ifindex, attempt));
  Message message(RTM_NEWQDISC, kCreateNew,
                  trafficControlHeader(ifindex, kRootQueueHandle, TC_H_ROOT));
  message.putString(TCA_KIND, kind);
  options(message);
  const Status status = socket.request(
      std::move(message), fmt::format("{} of interface {} ({})", attempt, ifindex, kind));
  // An unknown kind is "not found" to the kernel.
  if (status.code() != Code::kNotFound) return status;
  return errorf(Code::kUnsupported, "{}: this kernel lacks it (module sch_{})", status.message(),
                kind);
}

}  // namespace

Result<RootQueue> readAnyRootQueue(Socket& socket, int ifindex) {
  Message message(RTM_GETQDISC, 0, trafficControlHeader(ifindex, 0, 0));
  RootQueue root;
  RETURN_IF_ERROR(socket.dump(
      message, fmt::format("read the queues of interface {}", ifindex),
      [&](const nlmsghdr* answer) {
        const auto* const found = static_cast<const tcmsg*>(nlmsg_data(answer));
        // Asked for one interface, kernels answer for all of them.
        if (found->tcm_ifindex != ifindex || found->tcm_parent != TC_H_ROOT) return;
        const Attributes<TCA_MAX> attributes(answer, sizeof(tcmsg));
        root.handle = found->tcm_handle;
        root.state.kind = attributes.text(TCA_KIND);
        if (attributes[TCA_STATS2] == nullptr) return;
        const Attributes<TCA_STATS_MAX> stats(attributes[TCA_STATS2]);
        root.state.sent_bytes = stats.value<std::uint64_t>(TCA_STATS_BASIC);  // its first member
        const auto queue = stats.value<gnet_stats_queue>(TCA_STATS_QUEUE);
        root.state.backlog = queue.backlog;
        root.state.drops = queue.drops;
      },
      [&] { root = {}; }));
  return root;
}

Status requireDefaultRoot(Socket& socket, int ifindex, std::string_view attempt) {
  ASSIGN_OR_RETURN(const RootQueue root, readAnyRootQueue(socket, ifindex));
  if (root.handle == 0) return okStatus();
  return errorf(Code::kAlreadyExists,
                "{} of interface {}: it already has the root queue {} (handle {:x}:), which is not "
                "ours to replace",
                attempt, ifindex, root.state.kind, root.handle >> 16);
}

Status installTokenBucket(Socket& socket, int ifindex, BitsPerSecond rate) {
  const ShaperPlan plan = planShaper(rate);
  constexpr std::uint64_t kBitsPerByte = 8;
  const std::uint64_t bytes_per_second = static_cast<std::uint64_t>(rate) / kBitsPerByte;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  tc_tbf_qopt options{};
  options.rate.rate = static_cast<std::uint32_t>(std::min(bytes_per_second, kMost));
  // With the link layer named, the kernel computes transmission times and needs no table of them.
  options.rate.linklayer = TC_LINKLAYER_ETHERNET;
  options.limit = static_cast<std::uint32_t>(plan.bulk_queue);
  options.buffer = burstTicks(plan.bulk);
  return installRoot(socket, ifindex, "tbf", "limit the rate", [&](Message& message) {
    message.nest(TCA_OPTIONS, [&](Message& nested) {
      nested.put(TCA_TBF_PARMS, &options, sizeof options);
      nested.put(TCA_TBF_BURST, static_cast<std::uint32_t>(plan.bulk.burst));
      if (bytes_per_second > kMost) nested.put(TCA_TBF_RATE64, bytes_per_second);
    });
  });
}

Status installBlackhole(Socket& socket, int ifindex) {
  return installRoot(socket, ifindex, "blackhole", "drop what leaves", [](Message&) {});
}

Status installNetemLoss(Socket& socket, int ifindex) {
  tc_netem_qopt options{};
  constexpr std::uint32_t kFrames = 1000;
  options.limit = kFrames;
  options.loss = std::numeric_limits<std::uint32_t>::max();
  return installRoot(socket, ifindex, "netem", "drop what leaves",
                     [&](Message& message) { message.put(TCA_OPTIONS, &options, sizeof options); });
}

Result<RootQueueState> readRootQueue(Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const RootQueue root, readAnyRootQueue(socket, ifindex));
  if (root.handle == kRootQueueHandle) return root.state;
  return errorf(Code::kNotFound, "the root queue of interface {} is {}, and not ours", ifindex,
                root.state.kind.empty() ? "none" : root.state.kind);
}

Status removeRootQueue(Socket& socket, int ifindex) {
  RETURN_IF_ERROR(readRootQueue(socket, ifindex).status());
  return socket.request(
      Message(RTM_DELQDISC, 0, trafficControlHeader(ifindex, kRootQueueHandle, TC_H_ROOT)),
      fmt::format("remove the root queue of interface {}", ifindex));
}

}  // namespace faultline::netlink
