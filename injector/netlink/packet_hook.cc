#include "injector/netlink/packet_hook.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstdint>
#include <utility>

namespace faultline::netlink {
namespace {

// The kernel knows clsact by this handle only.
constexpr std::uint32_t kClsactHandle = TC_H_MAKE(TC_H_CLSACT, 0);
constexpr std::uint32_t kFilterPriority = 0xfa;

/// An unknown kind of queue or filter is "not found" to the kernel.
Status missingMechanism(const Status& status) {
  if (status.code() != Code::kNotFound) return status;
  return Status(Code::kUnsupported, status.message() + ": this kernel lacks clsact or cls_bpf");
}

constexpr std::array<std::uint32_t, 2> kSides{TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
                                              TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)};

tcmsg filterHeader(int ifindex, std::uint32_t side) {
  tcmsg filter = trafficControlHeader(ifindex, 0, side);
  filter.tcm_info = TC_H_MAKE(kFilterPriority << 16, htons(ETH_P_ALL));
  return filter;
}

}  // namespace

Status addHook(Socket& socket, int ifindex) {
  Message clsact(RTM_NEWQDISC, kCreateNew,
                 trafficControlHeader(ifindex, kClsactHandle, TC_H_CLSACT));
  clsact.putString(TCA_KIND, "clsact");
  return missingMechanism(
      socket.request(std::move(clsact), fmt::format("hook into interface {} (clsact)", ifindex)));
}

Status addHookedFilter(Socket& socket, int ifindex, Passing passing, const std::string& attempt,
                       const std::function<void(Message& nested)>& program) {
  Message message(RTM_NEWTFILTER, kCreateNew,
                  filterHeader(ifindex, kSides[passing == Passing::kReceived ? 0 : 1]));
  message.putString(TCA_KIND, "bpf");
  message.nest(TCA_OPTIONS, [&](Message& nested) {
    program(nested);
    nested.put(TCA_BPF_FLAGS, std::uint32_t{TCA_BPF_FLAG_ACT_DIRECT});
  });
  return missingMechanism(socket.request(std::move(message), attempt + " (cls_bpf)"));
}

Status removeHook(Socket& socket, int ifindex) {
  return socket.request(
      Message(RTM_DELQDISC, 0, trafficControlHeader(ifindex, kClsactHandle, TC_H_CLSACT)),
      fmt::format("let packets of interface {} pass again", ifindex));
}

Result<HookState> readHook(Socket& socket, int ifindex) {
  HookState state;
  Message queues(RTM_GETQDISC, 0, trafficControlHeader(ifindex, 0, 0));
  RETURN_IF_ERROR(socket.dump(
      queues, fmt::format("read the queues of interface {}", ifindex),
      [&](const nlmsghdr* answer) {
        const auto* const found = static_cast<const tcmsg*>(nlmsg_data(answer));
        if (found->tcm_ifindex != ifindex || found->tcm_parent != TC_H_CLSACT) return;
        const Attributes<TCA_MAX> attributes(answer, sizeof(tcmsg));
        state.there = true;
        state.clsact = attributes.text(TCA_KIND) == "clsact";
      },
      [&] { state = {}; }));
  if (!state.there) return state;
  for (const std::uint32_t side : kSides) {
    HookState of_side;
    Message filters(RTM_GETTFILTER, 0, trafficControlHeader(ifindex, 0, side));
    RETURN_IF_ERROR(socket.dump(
        filters, fmt::format("read the filters of interface {}", ifindex),
        [&](const nlmsghdr* answer) {
          const auto* const found = static_cast<const tcmsg*>(nlmsg_data(answer));
          // Without a handle it is what several filters of one priority have in common.
          if (found->tcm_ifindex != ifindex || found->tcm_handle == 0) return;
          const Attributes<TCA_MAX> attributes(answer, sizeof(tcmsg));
          const bool ours =
              found->tcm_info >> 16 == kFilterPriority && attributes.text(TCA_KIND) == "bpf";
          ++(ours ? of_side.ours : of_side.foreign);
        },
        [&] { of_side = {}; }));
    state.ours += of_side.ours;
    state.foreign += of_side.foreign;
  }
  return state;
}

Status removeOurHook(Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const HookState state, readHook(socket, ifindex));
  if (!state.clsact) return okStatus();
  if (state.foreign == 0) return removeHook(socket, ifindex);
  for (const std::uint32_t side : kSides) {
    const Status removed =
        socket.request(Message(RTM_DELTFILTER, 0, filterHeader(ifindex, side)),
                       fmt::format("let packets of interface {} pass again", ifindex));
    // There may be none on this side.
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  return okStatus();
}

}  // namespace faultline::netlink
