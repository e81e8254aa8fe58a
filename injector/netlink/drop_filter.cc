#include "injector/netlink/drop_filter.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <cmath>
#include <limits>
#include <vector>

#include "injector/netlink/roce_frames.h"

namespace faultline::netlink {
namespace {

// The kernel knows clsact by this handle only.
constexpr std::uint32_t kClsactHandle = TC_H_MAKE(TC_H_CLSACT, 0);
constexpr std::uint32_t kFilterPriority = 0xfa;

/// Classic BPF, which needs no privilege but that of the namespace: drop when a random number of 32
/// bits is below the share, else go on to other filters.
std::vector<sock_filter> dropProgram(const DropRule& rule) {
  const auto drop = static_cast<std::uint32_t>(rule.unnoticed ? TC_ACT_STOLEN : TC_ACT_SHOT);
  constexpr auto kGoOn = static_cast<std::uint32_t>(TC_ACT_UNSPEC);
  const double share = rule.share;
  if (rule.only_roce) return roceProgram(drop, kGoOn);
  if (share >= 1) return {sock_filter{BPF_RET | BPF_K, 0, 0, drop}};
  const auto below =
      static_cast<std::uint32_t>(std::llround(share * std::numeric_limits<std::uint32_t>::max()));
  return {
      sock_filter{
          BPF_LD | BPF_W | BPF_ABS, 0, 0,
          static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_RANDOM)},
      sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, below},
      sock_filter{BPF_RET | BPF_K, 0, 0, kGoOn},
      sock_filter{BPF_RET | BPF_K, 0, 0, drop},
  };
}

Status addRule(Socket& socket, int ifindex, const DropRule& rule) {
  const std::uint32_t side =
      rule.passing == Passing::kReceived ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS;
  tcmsg filter = trafficControlHeader(ifindex, 0, TC_H_MAKE(TC_H_CLSACT, side));
  filter.tcm_info = TC_H_MAKE(kFilterPriority << 16, htons(ETH_P_ALL));
  const std::vector<sock_filter> program = dropProgram(rule);
  Message message(RTM_NEWTFILTER, kCreateNew, filter);
  message.putString(TCA_KIND, "bpf");
  message.nest(TCA_OPTIONS, [&](Message& nested) {
    nested.put(TCA_BPF_OPS_LEN, static_cast<std::uint16_t>(program.size()));
    nested.put(TCA_BPF_OPS, program.data(), program.size() * sizeof(sock_filter));
    nested.put(TCA_BPF_FLAGS, std::uint32_t{TCA_BPF_FLAG_ACT_DIRECT});
  });
  return socket.request(std::move(message),
                        fmt::format("drop frames of interface {} (cls_bpf)", ifindex));
}

/// An unknown kind of queue or filter is "not found" to the kernel.
Status missingMechanism(const Status& status) {
  if (status.code() != Code::kNotFound) return status;
  return Status(Code::kUnsupported, status.message() + ": this kernel lacks clsact or cls_bpf");
}

}  // namespace

Status addDropRules(Socket& socket, int ifindex, std::span<const DropRule> rules) {
  Message clsact(RTM_NEWQDISC, kCreateNew,
                 trafficControlHeader(ifindex, kClsactHandle, TC_H_CLSACT));
  clsact.putString(TCA_KIND, "clsact");
  RETURN_IF_ERROR(missingMechanism(
      socket.request(std::move(clsact), fmt::format("hook into interface {} (clsact)", ifindex))));
  for (const DropRule& rule : rules) {
    const Status status = missingMechanism(addRule(socket, ifindex, rule));
    if (status.ok()) continue;
    const Status undone = removeDropRules(socket, ifindex);
    return undone.ok() ? status : status.withContext(undone.message());
  }
  return okStatus();
}

Status removeDropRules(Socket& socket, int ifindex) {
  return socket.request(
      Message(RTM_DELQDISC, 0, trafficControlHeader(ifindex, kClsactHandle, TC_H_CLSACT)),
      fmt::format("let frames of interface {} pass again", ifindex));
}

}  // namespace faultline::netlink
