#include "harness/strike/plan.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <sstream>
#include <utility>

#include "base/file_text.h"
#include "injector/faults/registry.h"
#include "injector/netlink/indispensable.h"
#include "injector/netlink/needed_peers.h"
#include "injector/safety/policy_file.h"

namespace faultline::strike {
namespace {

std::int64_t wallSeconds() {
  return duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::vector<std::string_view> hostFaults() {
  std::vector<std::string_view> names;
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (kind.makeOnHost != nullptr) names.push_back(kind.name);
  }
  return names;
}

Status requireNetAdmin() {
  std::istringstream status(fileText("/proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t capabilities = 0;
    if (!(words >> key >> std::hex >> capabilities) || key != "CapEff:") continue;
    if ((capabilities >> CAP_NET_ADMIN & 1) != 0) return okStatus();
  }
  return errorf(Code::kPermissionDenied,
                "to change interfaces needs CAP_NET_ADMIN: run it with sudo");
}

Result<Plan> makePlan(const Order& order, netlink::Socket& socket) {
  Plan plan{.order = order, .texts = order.parameters};
  const injector::FaultKind& kind = *order.kind;
  for (const auto& [name, value] : kind.hostDefaults) plan.texts.emplace(name, value);
  ASSIGN_OR_RETURN(plan.parameters, injector::FaultParameters::parse(kind, plan.texts));
  auto fault = kind.makeOnHost(plan.parameters);
  if (!fault.ok()) {
    return errorf(Code::kInvalidArgument, "{}: {}", kind.name, fault.status().message());
  }
  plan.fault = *std::move(fault);
  ASSIGN_OR_RETURN(const auto present, safety::presentTargets(socket));
  ASSIGN_OR_RETURN(plan.target, safety::choose(present, order.target));
  ASSIGN_OR_RETURN(plan.radius, safety::blastRadius(socket, plan.target));
  return plan;
}

Result<safety::Policy> policyFor(const Files& files, std::string_view interface,
                                 std::string_view kind) {
  const auto kinds = hostFaults();
  auto policy = safety::readPolicy(files.policy, kinds);
  if (policy.status().code() != Code::kNotFound) return policy;
  return errorf(Code::kPermissionDenied,
                "there is no policy {}: without one nothing on a host is touched. Its owner writes "
                "it, as root, for example:\n\n{}",
                files.policy, safety::policyToStartFrom(interface, kind));
}

Status refuseManagement(netlink::Socket& socket, const safety::Target& target,
                        const safety::Policy& policy, const std::vector<std::string>& keep,
                        pid_t asker) {
  if (target.interface == "lo") {
    return errorf(Code::kPermissionDenied,
                  "lo is this machine's way to itself, which programs cannot do without");
  }
  std::vector<netlink::NeededPeer> peers = netlink::neededPeers(asker);
  for (const auto* const addresses : {&keep, &policy.keep}) {
    for (const std::string& address : *addresses) {
      peers.push_back({address, "who is to be kept (--keep, or keep in the policy)",
                       "choose another interface"});
    }
  }
  ASSIGN_OR_RETURN(const auto why, netlink::whyIndispensable(socket, target.ifindex, peers));
  if (!why) return okStatus();
  return errorf(Code::kPermissionDenied, "{} {}", target.interface, *why);
}

Status allowed(netlink::Socket& socket, const safety::Target& target, std::string_view kind,
               Duration length, const safety::Policy& policy, const std::vector<std::string>& keep,
               const safety::Kept& kept, const Asker& asker) {
  if (asker.caller) RETURN_IF_ERROR(safety::mayAsk(policy, *asker.caller));
  RETURN_IF_ERROR(refuseManagement(socket, target, policy, keep, asker.process));
  safety::Request request{.interface = target.interface,
                          .pci = target.pci,
                          .kind = std::string(kind),
                          .length = length};
  for (const safety::Entry& entry : kept.entries) {
    ++request.heldOnNode;
    if (entry.job == asker.job) ++request.heldByJob;
    if (safety::sameOf({target}, entry.target).ok()) {
      return errorf(Code::kUnavailable,
                    "{} is struck already ({}); wait for its end, or see 'faultline restore'",
                    target.interface, safety::inWords(entry));
    }
  }
  return safety::allows(policy, request);
}

std::string newId() {
  return fmt::format("{}-{}-{:08x}", wallSeconds(), ::getpid(), std::random_device()());
}

safety::Entry entryOf(const Plan& plan, const safety::Policy& policy, const Asker& asker,
                      const std::string& id) {
  safety::Entry entry{.id = id, .bootId = safety::currentBoot()};
  entry.holder = safety::holderOf(::getpid());
  entry.target = plan.target;
  entry.kind = plan.order.kind->name;
  entry.parameters = plan.texts;
  entry.operations = plan.fault.operations;
  entry.before = policy.before;
  entry.after = policy.after;
  entry.commandLimit = policy.commandLimit;
  entry.beganAt = wallSeconds();
  entry.endsAt = entry.beganAt + std::chrono::ceil<std::chrono::seconds>(plan.order.length).count();
  entry.endsMonotonic = now() + plan.order.length;
  entry.user = asker.user;
  entry.job = asker.job;
  return entry;
}

}  // namespace faultline::strike
