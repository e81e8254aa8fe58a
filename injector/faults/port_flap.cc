#include "injector/faults/port_flap.h"

#include <spdlog/spdlog.h>

namespace faultline::injector {

PortFlap::PortFlap(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : port_(target, parameters.get<std::string>("how")),
      count_(parameters.get<std::int64_t>("count")),
      down_time_(duration_cast<Duration>(parameters.get<Duration>("period") *
                                         (parameters.get<Percent>("duty").value / 100))),
      up_time_(parameters.get<Duration>("period") - down_time_) {}

PortFlap::~PortFlap() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("port_flap: {}", status.message());
}

Status PortFlap::prepare() {
  RETURN_IF_ERROR(port_.prepare());
  ASSIGN_OR_RETURN(losses_before_, countLosses());  // evidence() may come without apply()
  return okStatus();
}

Status PortFlap::apply() {
  ASSIGN_OR_RETURN(losses_before_, countLosses());
  losses_ = 0;
  downs_ = 0;
  applied_ = true;
  return toggle();
}

Status PortFlap::toggle() {
  const bool to_down = !down_;
  RETURN_IF_ERROR(transit(to_down, [&] { return to_down ? port_.down() : port_.up(); }));
  down_ = to_down;
  // From the true moment on, not from when it was due: a late step must not shorten a phase.
  due_ = now() + (down_ ? down_time_ : up_time_);
  if (down_) ++downs_;
  if (!down_ && count_ != 0 && downs_ >= count_) due_.reset();
  return okStatus();
}

Status PortFlap::step(TimePoint now) {
  if (due_ && now >= *due_) RETURN_IF_ERROR(toggle());
  ASSIGN_OR_RETURN(const std::uint32_t losses, countLosses());
  losses_ = losses - losses_before_;
  return okStatus();
}

Result<std::uint32_t> PortFlap::countLosses() {
  const netlink::LinkEnd& end = port_.otherEnd();
  ASSIGN_OR_RETURN(const netlink::Link link, netlink::readLink(*end.socket, end.ifindex));
  return link.carrier_down_count;
}

// The counters are exact at once; one look is enough.
bool PortFlap::conclusive() const { return losses_ > 0 && losses_ >= downs_; }

Evidence PortFlap::verdict() const {
  return {"port_flap", "losses of carrier counted by the other end",
          fmt::format("{} counted {} losses of its carrier; the port was taken down {} times",
                      port_.otherEndName(), losses_, downs_),
          downs_ > 0 && losses_ >= downs_};
}

Status PortFlap::revert() {
  if (!applied_) return okStatus();
  due_.reset();
  if (down_) RETURN_IF_ERROR(toggle());
  due_.reset();
  applied_ = false;
  return port_.awaitWhole();
}

}  // namespace faultline::injector
