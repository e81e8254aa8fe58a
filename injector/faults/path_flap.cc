#include "injector/faults/path_flap.h"

#include <spdlog/spdlog.h>

namespace faultline::injector {
namespace {

// Probes go before bulk data, and from one port of a switch to another in one call of the kernel:
// what has not passed so long after it arrived never will.
constexpr Duration kCrossed = 2ms;

}  // namespace

PathFlap::PathFlap(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : target_(target), forwarding_(target), clock_(parameters) {}

PathFlap::~PathFlap() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("path_flap: {}", status.message());
}

Status PathFlap::prepare() {
  RETURN_IF_ERROR(forwarding_.prepare().withContext("path_flap"));
  RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext("path_flap"));
  ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_));
  probe_.emplace(std::move(probe));
  return okStatus();
}

Status PathFlap::apply() {
  applied_ = true;
  clock_.restart();
  arrived_.reset();
  proven_before_ = 0;
  leaked_ = leaked_before_ = 0;
  return toggle();
}

Status PathFlap::toggle() {
  const bool stopping = !clock_.broken();
  RETURN_IF_ERROR(
      transit(stopping, [&] { return stopping ? forwarding_.stop() : forwarding_.resume(); }));
  clock_.changed(stopping, now());
  if (!stopping) return okStatus();
  proven_before_ = proven();
  leaked_before_ = leaked_;
  arrived_.reset();
  probing_ = false;
  return okStatus();
}

Status PathFlap::step(TimePoint now) {
  RETURN_IF_ERROR(look(now));
  return clock_.due(now) ? toggle() : okStatus();
}

/// Probes are sent in outages only; whether they pass is watched until the next one.
Status PathFlap::look(TimePoint now) {
  latest_ = now;
  if (!probe_) return okStatus();
  if (!probing_ && clock_.broken()) {
    RETURN_IF_ERROR(probe_->restart());
    probing_ = true;
  }
  if (!probing_ || (!clock_.broken() && !arrived_)) return okStatus();
  RETURN_IF_ERROR(probe_->step());
  leaked_ = leaked_before_ + probe_->out() + probe_->in();
  const bool there = probe_->allSent() && probe_->arrived() > 0 && probe_->control() > 0;
  if (clock_.broken() && there && !arrived_) arrived_ = now;
  return okStatus();
}

bool PathFlap::conclusive() const {
  return clock_.breaks() > 0 && proven() >= clock_.breaks() && leaked_ == 0 && arrived_ &&
         latest_ - *arrived_ >= kCrossed;
}

Evidence PathFlap::verdict() const {
  return {"path_flap", "frames forwarded by the switch",
          fmt::format("in {} of {} outages the NIC's probes arrived at the switch, and the "
                      "switch's own left by another port; {} of them all crossed the link",
                      proven(), clock_.breaks(), leaked_),
          conclusive()};
}

Status PathFlap::revert() {
  if (!applied_) return okStatus();
  if (clock_.broken()) RETURN_IF_ERROR(toggle());
  clock_.stop();
  RETURN_IF_ERROR(forwarding_.checkResumed().withContext("path_flap"));
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
