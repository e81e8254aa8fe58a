#include "injector/safety/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/units.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/packet_hook.h"
#include "injector/netlink/root_queue.h"
#include "injector/netlink/shaper_plan.h"

namespace faultline::safety {
namespace {

using netlink::Socket;

std::string command(const LinkDown& /*down*/, std::string_view interface) {
  return fmt::format("ip link set dev {} down", interface);
}
std::string command(const SendLimit& limit, std::string_view interface) {
  const netlink::ShaperPlan plan = netlink::planShaper(limit.rate);
  return fmt::format("tc qdisc add dev {} root handle fa1a: tbf rate {}bit burst {} limit {}",
                     interface, limit.rate, plan.bulk.burst, plan.bulk_queue);
}

/// What two operations have in common: filters in a hook that is made for them.
std::vector<netlink::DropRule> rulesOf(const DropFrames& drop) {
  std::vector<netlink::DropRule> rules;
  if (drop.received) rules.push_back({.passing = netlink::Passing::kReceived});
  if (drop.sent) rules.push_back({.passing = netlink::Passing::kSent});
  return rules;
}
std::vector<netlink::DropRule> rulesOf(const LoseFrames& lose) {
  std::vector<netlink::DropRule> rules;
  const auto add = [&](netlink::Passing passing, double percent) {
    if (percent > 0) rules.push_back({.passing = passing, .share = percent / kWholeInPercent});
  };
  add(netlink::Passing::kReceived, lose.receivedPercent);
  add(netlink::Passing::kSent, lose.sentPercent);
  return rules;
}

template <typename T>
concept Filters = requires(const T& operation) {
  rulesOf(operation);
};

std::string command(const Filters auto& operation, std::string_view interface) {
  std::string text = fmt::format("tc qdisc add dev {} clsact", interface);
  for (const netlink::DropRule& rule : rulesOf(operation)) {
    text += fmt::format(
        " && tc filter add dev {} {} protocol all pref 250 bpf direct-action bytecode '{}'",
        interface, rule.passing == netlink::Passing::kReceived ? "ingress" : "egress",
        netlink::bytecodeOf(rule));
  }
  return text;
}

std::string inverse(const LinkDown& /*down*/, std::string_view interface) {
  return fmt::format("ip link set dev {} up", interface);
}
std::string inverse(const SendLimit& /*limit*/, std::string_view interface) {
  return fmt::format("tc qdisc del dev {} root handle fa1a:", interface);
}

std::string inverse(const Filters auto& /*operation*/, std::string_view interface) {
  return fmt::format("tc qdisc del dev {} clsact", interface);
}

Status checkOne(const LinkDown& /*down*/, Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(socket, ifindex));
  if (link.admin_up && link.carrier) {
    ASSIGN_OR_RETURN(const auto links, netlink::listNetDevices(socket));
    return refuseLossAbove(links, ifindex);
  }
  return errorf(Code::kUnavailable, "{} does not work even now: it {}", link.name,
                link.admin_up ? "has no carrier" : "is switched off");
}
Status checkOne(const SendLimit& /*limit*/, Socket& socket, int ifindex) {
  return netlink::requireDefaultRoot(socket, ifindex, "limit the rate");
}

Status checkOne(const Filters auto& /*operation*/, Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const netlink::HookState hook, netlink::readHook(socket, ifindex));
  if (!hook.there) return okStatus();
  return errorf(Code::kAlreadyExists,
                "interface {} has a {} with {} filters already, which is not ours to change",
                ifindex, hook.clsact ? "clsact" : "queue for what comes in",
                hook.ours + hook.foreign);
}

Status doOne(const LinkDown& /*down*/, Socket& socket, int ifindex) {
  return netlink::setUp(socket, ifindex, false);
}
Status doOne(const SendLimit& limit, Socket& socket, int ifindex) {
  return netlink::installTokenBucket(socket, ifindex, limit.rate);
}

Status doOne(const Filters auto& operation, Socket& socket, int ifindex) {
  return netlink::addDropRules(socket, ifindex, rulesOf(operation));
}

Result<bool> lasts(const LinkDown& /*down*/, Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(socket, ifindex));
  return !link.admin_up;
}
Result<bool> lasts(const SendLimit& /*limit*/, Socket& socket, int ifindex) {
  const auto ours = netlink::readRootQueue(socket, ifindex);
  if (ours.ok()) return ours->kind == "tbf";
  if (ours.status().code() == Code::kNotFound) return false;
  return ours.status();
}

/// An empty hook is ours too: there was none before, and whoever made it was ended half-way.
Result<bool> lasts(const Filters auto& /*operation*/, Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(const netlink::HookState hook, netlink::readHook(socket, ifindex));
  return hook.clsact && (hook.ours > 0 || hook.foreign == 0);
}

Status takeBack(const LinkDown& /*down*/, Socket& socket, int ifindex) {
  return netlink::setUp(socket, ifindex, true);
}
Status takeBack(const SendLimit& /*limit*/, Socket& socket, int ifindex) {
  return netlink::removeRootQueue(socket, ifindex);
}

Status takeBack(const Filters auto& /*operation*/, Socket& socket, int ifindex) {
  return netlink::removeOurHook(socket, ifindex);
}

}  // namespace

std::string commandOf(const Operation& operation, std::string_view interface) {
  return std::visit([&](const auto& one) { return command(one, interface); }, operation);
}

std::string inverseOf(const Operation& operation, std::string_view interface) {
  return std::visit([&](const auto& one) { return inverse(one, interface); }, operation);
}

bool losesConfiguration(const Operation& operation) {
  return std::holds_alternative<LinkDown>(operation);
}

Status refuseLossAbove(const std::vector<netlink::NetDevice>& links, int ifindex) {
  std::vector<std::string> names;
  for (const netlink::NetDevice& link : links) {
    if (link.kind == "vlan" && link.peer_ifindex == ifindex && !link.peer_elsewhere) {
      names.push_back(link.name);
    }
  }
  if (names.empty()) return okStatus();
  return errorf(Code::kUnavailable,
                "VLANs sit on it ({}), which go down with it: their addresses and routes would be "
                "lost; choose an interface without VLANs",
                fmt::join(names, ", "));
}

Status check(const Operation& operation, Socket& socket, int ifindex) {
  return std::visit([&](const auto& one) { return checkOne(one, socket, ifindex); }, operation);
}

Status apply(const Operation& operation, Socket& socket, int ifindex) {
  return std::visit([&](const auto& one) { return doOne(one, socket, ifindex); }, operation);
}

Result<bool> isInEffect(const Operation& operation, Socket& socket, int ifindex) {
  return std::visit([&](const auto& one) { return lasts(one, socket, ifindex); }, operation);
}

Status undo(const Operation& operation, Socket& socket, int ifindex) {
  return std::visit([&](const auto& one) { return takeBack(one, socket, ifindex); }, operation);
}

}  // namespace faultline::safety
