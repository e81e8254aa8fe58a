#include "injector/netlink/packet_hook.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

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
  const std::uint32_t side = passing == Passing::kReceived ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS;
  tcmsg filter = trafficControlHeader(ifindex, 0, TC_H_MAKE(TC_H_CLSACT, side));
  filter.tcm_info = TC_H_MAKE(kFilterPriority << 16, htons(ETH_P_ALL));
  Message message(RTM_NEWTFILTER, kCreateNew, filter);
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

}  // namespace faultline::netlink
