#include "injector/safety/host_machine.h"

#include <fmt/format.h>
#include <poll.h>

#include "base/json_fields.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/interface_configuration.h"

namespace faultline::safety {
namespace {

constexpr int kSettleLookMs = 5;

/// The configuration of a target, as it stands in an entry.
struct Saved {
  bool worked = false;  ///< frames could pass
  nlohmann::json lost;  ///< netlink::InterfaceConfiguration; null: nothing
};

template <typename V>
void visitFields(V& v, Of<Saved> auto& saved) {
  v.required("worked", saved.worked);
  v.required("lost", saved.lost);
}

}  // namespace

Result<int> HostMachine::find(const Target& target) {
  ASSIGN_OR_RETURN(const std::vector<Target> present, presentTargets(socket_));
  ASSIGN_OR_RETURN(const Target same, sameOf(present, target));
  return same.ifindex;
}

Status HostMachine::change(bool broken, const std::function<Status()>& make) {
  const TimePoint before = now();
  const Status made = make();
  if (made.ok() && changed_) changed_(broken, before, now());
  return made;
}

Status HostMachine::check(const Target& target, const Operation& operation) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  if (allowed_) RETURN_IF_ERROR(allowed_());
  return safety::check(operation, socket_, ifindex);
}

Status HostMachine::apply(const Target& target, const Operation& operation) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  return change(true, [&] { return safety::apply(operation, socket_, ifindex); });
}

Result<bool> HostMachine::isInEffect(const Target& target, const Operation& operation) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  return safety::isInEffect(operation, socket_, ifindex);
}

Status HostMachine::undo(const Target& target, const Operation& operation) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  return change(false, [&] { return safety::undo(operation, socket_, ifindex); });
}

Result<nlohmann::json> HostMachine::configuration(const Target& target, bool loses) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(socket_, ifindex));
  Saved saved{.worked = netlink::isOperational(link), .lost = nullptr};
  if (loses) {
    ASSIGN_OR_RETURN(const auto lost, netlink::InterfaceConfiguration::read(socket_, ifindex));
    saved.lost = lost.toJson();
  }
  return JsonWriter<nlohmann::json>::write(saved);
}

Result<std::string> HostMachine::whatIsMissing(const Target& target,
                                               const nlohmann::json& configuration) {
  ASSIGN_OR_RETURN(const int ifindex, find(target));
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(socket_, ifindex));
  Saved saved;
  RETURN_IF_ERROR(JsonReader<nlohmann::json>::read(configuration, "configuration", saved));
  if (saved.worked && !netlink::isOperational(link)) {
    return fmt::format("{} {}", link.name,
                       link.carrier ? "is not operational yet" : "has no carrier yet");
  }
  if (saved.lost.is_null()) return missing_ ? missing_(ifindex) : std::string();
  ASSIGN_OR_RETURN(auto lost, netlink::InterfaceConfiguration::fromJson(saved.lost));
  lost.rebind(ifindex);
  ASSIGN_OR_RETURN(const int missing, lost.missing(socket_));
  // Where somebody has switched it off, it is to stay so.
  if (missing > 0 && link.admin_up) {
    const Status mended = lost.restore(socket_, netlink::settlingOnHost(ifindex));
    if (!mended.ok()) return fmt::format("{}: {}", link.name, mended.message());
  }
  return missing_ ? missing_(ifindex) : std::string();
}

Status HostMachine::settle(const Target& target, const nlohmann::json& configuration) {
  if (configuration.is_null()) return okStatus();
  const TimePoint begin = now();
  while (true) {
    ASSIGN_OR_RETURN(const std::string missing, whatIsMissing(target, configuration));
    if (missing.empty()) return okStatus();
    if (now() - begin >= kSettlePatience) {
      return errorf(Code::kDeadlineExceeded, "{}; 'faultline restore' tries again", missing);
    }
    ::poll(nullptr, 0, kSettleLookMs);
  }
}

Status HostMachine::run(const std::vector<std::string>& command, Duration limit) {
  return run_(command, limit);
}

}  // namespace faultline::safety
