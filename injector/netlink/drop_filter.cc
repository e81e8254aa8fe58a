#include "injector/netlink/drop_filter.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/pkt_cls.h>

#include <cmath>
#include <limits>
#include <vector>

#include "injector/netlink/packet_hook.h"
#include "injector/netlink/roce_frames.h"

namespace faultline::netlink {
namespace {

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
  const std::vector<sock_filter> program = dropProgram(rule);
  return addHookedFilter(socket, ifindex, rule.passing,
                         fmt::format("drop frames of interface {}", ifindex), [&](Message& nested) {
                           nested.put(TCA_BPF_OPS_LEN, static_cast<std::uint16_t>(program.size()));
                           nested.put(TCA_BPF_OPS, program.data(),
                                      program.size() * sizeof(sock_filter));
                         });
}

}  // namespace

std::string bytecodeOf(const DropRule& rule) {
  const std::vector<sock_filter> program = dropProgram(rule);
  std::string text = fmt::format("{}", program.size());
  for (const sock_filter& one : program) {
    text += fmt::format(",{} {} {} {}", one.code, one.jt, one.jf, one.k);
  }
  return text;
}

Status addDropRules(Socket& socket, int ifindex, std::span<const DropRule> rules) {
  RETURN_IF_ERROR(addHook(socket, ifindex));
  for (const DropRule& rule : rules) {
    const Status status = addRule(socket, ifindex, rule);
    if (status.ok()) continue;
    const Status undone = removeHook(socket, ifindex);
    return undone.ok() ? status : status.withContext(undone.message());
  }
  return okStatus();
}

Status removeDropRules(Socket& socket, int ifindex) { return removeHook(socket, ifindex); }

}  // namespace faultline::netlink
