#include "injector/faults/blackhole.h"

#include <spdlog/spdlog.h>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

// Probes go before bulk data, and from one port of a switch to another in one call of the kernel:
// what has not passed so long after it arrived never will.
constexpr Duration kCrossed = 2ms;

constexpr std::array kBlackholeSignatures{Signature{{"path", "both"}, {"path", "both"}}};

}  // namespace

constinit const FaultKind kBlackholeKind{
    .name = "blackhole",
    .summary = "One link swallows everything in both directions while its carrier stays up.",
    .sees = "silence: the NIC stays up, nothing is answered",
    .evidence =
        "the NIC's transmit counter rises while what the switch forwards from and to that node "
        "stands still; without load of the job, probe frames of the injector's own",
    .undo = "the switch port forwards again",
    .cutsLink = true,
    .signatures = kBlackholeSignatures,
    .outside = Outside::kSwitch,
    .damage = allOfIt,
    .needs = {KernelMechanism::kBridgePortState},
    .make = makeOne<Blackhole>};

Blackhole::Blackhole(const FaultParameters& /*parameters*/, const netlink::LinkTarget& target)
    : target_(target), forwarding_(target) {}

Blackhole::~Blackhole() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("blackhole: {}", status.message());
}

Status Blackhole::prepare() {
  RETURN_IF_ERROR(forwarding_.prepare().withContext("blackhole"));
  return CrossingProbe::requireWhole(target_).withContext("blackhole");
}

Status Blackhole::readyForBriefStrikes() { return openProbe(); }

Status Blackhole::openProbe() {
  ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_));
  probe_.emplace(std::move(probe));
  return okStatus();
}

Status Blackhole::apply() {
  applied_ = swallowing_ = true;
  probing_ = false;
  return transit(true, [&] { return forwarding_.stop(); });
}

Status Blackhole::beginProbing() {
  RETURN_IF_ERROR(probe_ ? probe_->restart() : openProbe());
  ASSIGN_OR_RETURN(const netlink::LinkCounters nic,
                   netlink::readCounters(*target_.nic.socket, target_.nic.ifindex));
  transmitted_before_ = nic.tx_packets;
  forwarded_ = leaked_ = {};
  reached_.reset();
  probing_ = true;
  return okStatus();
}

Status Blackhole::step(TimePoint now) {
  // Healed: what was not sent before may pass now.
  const bool over = applied_ && !swallowing_;
  if (over && (!probing_ || !reached_)) return okStatus();
  if (!probing_) RETURN_IF_ERROR(beginProbing());
  if (conclusive()) return okStatus();
  RETURN_IF_ERROR(probe_->step());
  ASSIGN_OR_RETURN(const netlink::LinkCounters nic,
                   netlink::readCounters(*target_.nic.socket, target_.nic.ifindex));
  ASSIGN_OR_RETURN(const netlink::LinkCounters port,
                   netlink::readCounters(*target_.attachment.socket, target_.attachment.ifindex));
  ASSIGN_OR_RETURN(const netlink::NetDevice link,
                   netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
  carrier_ = link.carrier;
  transmitted_ = nic.tx_packets - transmitted_before_;
  latest_ = now;
  forwarded_.observe(port.tx_packets, now);
  leaked_.observe(static_cast<std::uint64_t>(probe_->out() + probe_->in()), now);
  const bool all_out = probe_->allSent() &&
                       transmitted_ >= static_cast<std::uint64_t>(probe_->sent()) &&
                       probe_->arrived() > 0 && probe_->control() > 0;
  if (all_out && !reached_) reached_ = now;
  return okStatus();
}

bool Blackhole::conclusive() const {
  return probing_ && reached_ && latest_ - *reached_ >= kStill && carrier_ &&
         leaked_.value() == 0 && forwarded_.stillFor() >= kStill;
}

Evidence Blackhole::verdict() const {
  if (!probing_) return {"blackhole", "frames forwarded", "nothing was observed", false};
  return {"blackhole", "frames forwarded by the switch",
          fmt::format("the NIC {} its carrier and sent {} frames, {} of them probes, of which {} "
                      "left by other ports; of {} probes from the switch {} left by another port "
                      "and {} by this one, whose counter stood still for {:.0f} ms",
                      carrier_ ? "kept" : "lost", transmitted_, probe_->sent(), probe_->out(),
                      probe_->sent(), probe_->control(), probe_->in(),
                      toMilliseconds(forwarded_.stillFor())),
          conclusive()};
}

bool Blackhole::glimpsed() const {
  return probing_ && reached_ && latest_ - *reached_ >= kCrossed && leaked_.value() == 0;
}

std::string Blackhole::glimpse() const {
  if (!probing_) return "nothing was observed";
  return fmt::format(
      "{} probes of the NIC arrived at the switch, {} of its own left by another "
      "port, and {} crossed the link",
      probe_->arrived(), probe_->control(), leaked_.value());
}

Status Blackhole::heal() {
  RETURN_IF_ERROR(transit(false, [&] { return forwarding_.resume(); }));
  swallowing_ = false;
  return okStatus();
}

Status Blackhole::revert() {
  if (!applied_) return okStatus();
  if (swallowing_) RETURN_IF_ERROR(heal());
  RETURN_IF_ERROR(forwarding_.checkResumed().withContext("blackhole"));
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
