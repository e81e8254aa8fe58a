#include "injector/faults/blackhole.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/netlink/counters.h"
#include "injector/netlink/link.h"

namespace faultline::injector {
namespace {

constexpr int kThisPort = 0;  // listeners of the inward round
constexpr int kControlPort = 1;
// A broadcast leaves by all other ports alike: a few tell as much as all.
constexpr std::size_t kMostListeners = 3;
// Queues on the way may hold some 10 ms of bulk data.
constexpr Duration kControlBudget = 500ms;

constexpr int kForwarding = static_cast<int>(netlink::BridgePortState::kForwarding);

}  // namespace

Blackhole::Blackhole(const FaultParameters& /*parameters*/, const netlink::LinkTarget& target)
    : target_(target) {}

Blackhole::~Blackhole() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("blackhole: {}", status.message());
}

Status Blackhole::prepare() {
  if (target_.siblings.empty()) {
    return errorf(Code::kUnsupported,
                  "blackhole: the switch has no other port, so there is nobody "
                  "to be cut off from");
  }
  ASSIGN_OR_RETURN(const netlink::Link port,
                   netlink::readLink(*target_.attachment.socket, target_.attachment.ifindex));
  if (port.bridge_port_state < 0) {
    return errorf(Code::kUnsupported, "blackhole: {} is not a port of a bridge", port.name);
  }
  if (port.bridge_port_state != kForwarding) {
    return errorf(Code::kUnavailable, "blackhole: {} does not forward even now", port.name);
  }
  bridge_ifindex_ = port.bridge_ifindex;
  // The same probes must pass while the link is whole; otherwise their absence later proves
  // nothing.
  RETURN_IF_ERROR(openRounds());
  const TimePoint deadline = now() + kControlBudget;
  while (true) {
    RETURN_IF_ERROR(stepRounds());
    if (outward_->passesEverywhere() && inward_->passesEverywhere()) break;
    if (now() >= deadline) {
      return errorf(Code::kUnavailable, "blackhole: probes do not pass {} even now", port.name);
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
  // Listening costs every frame of the job a little, so not before it is needed. Closing waits for
  // the kernel, some 10 ms per socket: here that is harmless, during the fault it is not done.
  outward_.reset();
  inward_.reset();
  return okStatus();
}

Status Blackhole::apply() {
  applied_ = true;
  return transit(true, [&] {
    return netlink::setBridgePortState(*target_.attachment.socket, target_.attachment.ifindex,
                                       netlink::BridgePortState::kDisabled);
  });
}

Status Blackhole::openRounds() {
  netlink::Socket& switch_socket = *target_.attachment.socket;
  std::vector<int> listeners = target_.siblings;
  if (listeners.size() > kMostListeners) listeners.resize(kMostListeners);
  ASSIGN_OR_RETURN(ProbeRound outward, ProbeRound::open(target_.nic, switch_socket, listeners));
  ASSIGN_OR_RETURN(ProbeRound inward,
                   ProbeRound::open({&switch_socket, bridge_ifindex_}, switch_socket,
                                    {target_.attachment.ifindex, target_.siblings.front()}));
  outward_.emplace(std::move(outward));
  inward_.emplace(std::move(inward));
  ASSIGN_OR_RETURN(const netlink::LinkCounters nic,
                   netlink::readCounters(*target_.nic.socket, target_.nic.ifindex));
  transmitted_before_ = nic.tx_packets;
  return okStatus();
}

Status Blackhole::stepRounds() {
  RETURN_IF_ERROR(outward_->step());
  return inward_->step();
}

Status Blackhole::step(TimePoint now) {
  if (conclusive()) return okStatus();
  if (!outward_) RETURN_IF_ERROR(openRounds());
  RETURN_IF_ERROR(stepRounds());
  ASSIGN_OR_RETURN(const netlink::LinkCounters nic,
                   netlink::readCounters(*target_.nic.socket, target_.nic.ifindex));
  ASSIGN_OR_RETURN(const netlink::LinkCounters port,
                   netlink::readCounters(*target_.attachment.socket, target_.attachment.ifindex));
  ASSIGN_OR_RETURN(const netlink::Link link,
                   netlink::readLink(*target_.nic.socket, target_.nic.ifindex));
  carrier_ = link.carrier;
  transmitted_ = nic.tx_packets - transmitted_before_;
  latest_ = now;
  forwarded_.observe(port.tx_packets, now);
  leaked_.observe(
      static_cast<std::uint64_t>(outward_->passedAnywhere() + inward_->passed(kThisPort)), now);
  const bool all_out = outward_->allSent() && inward_->allSent() &&
                       transmitted_ >= static_cast<std::uint64_t>(outward_->sent()) &&
                       inward_->passed(kControlPort) > 0;
  if (all_out && !reached_) reached_ = now;
  return okStatus();
}

bool Blackhole::conclusive() const {
  return reached_ && latest_ - *reached_ >= kStill && carrier_ && leaked_.value() == 0 &&
         forwarded_.stillFor() >= kStill;
}

Evidence Blackhole::verdict() const {
  if (!outward_) return {"blackhole", "frames forwarded", "nothing was observed", false};
  return {"blackhole", "frames forwarded by the switch",
          fmt::format("the NIC {} its carrier and sent {} frames, {} of them probes, of which {} "
                      "left by other ports; of {} probes from the switch {} left by another port "
                      "and {} by this one, whose counter stood still for {:.0f} ms",
                      carrier_ ? "kept" : "lost", transmitted_, outward_->sent(),
                      outward_->passedAnywhere(), inward_->sent(), inward_->passed(kControlPort),
                      inward_->passed(kThisPort), toMilliseconds(forwarded_.stillFor())),
          conclusive()};
}

Status Blackhole::revert() {
  if (!applied_) return okStatus();
  const Status status = transit(false, [&] {
    return netlink::setBridgePortState(*target_.attachment.socket, target_.attachment.ifindex,
                                       netlink::BridgePortState::kForwarding);
  });
  // A port that is down takes no state; it forwards by itself when it comes up.
  if (status.code() != Code::kUnavailable) RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(const netlink::Link port,
                   netlink::readLink(*target_.attachment.socket, target_.attachment.ifindex));
  if (port.admin_up && port.carrier && port.bridge_port_state != kForwarding) {
    return errorf(Code::kInternal, "blackhole: {} is in state {} after reverting", port.name,
                  port.bridge_port_state);
  }
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
