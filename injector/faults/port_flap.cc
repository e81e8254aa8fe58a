#include "injector/faults/port_flap.h"

#include <spdlog/spdlog.h>

namespace faultline::injector {

PortFlap::PortFlap(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : port_(target, parameters.get<std::string>("how")), clock_(parameters) {}

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
  clock_.restart();
  applied_ = true;
  return toggle();
}

Status PortFlap::toggle() {
  const bool to_down = !clock_.broken();
  RETURN_IF_ERROR(transit(to_down, [&] { return to_down ? port_.down() : port_.up(); }));
  clock_.changed(to_down, now());
  return okStatus();
}

Status PortFlap::step(TimePoint now) {
  if (clock_.due(now)) RETURN_IF_ERROR(toggle());
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
bool PortFlap::conclusive() const { return losses_ > 0 && losses_ >= clock_.breaks(); }

Evidence PortFlap::verdict() const {
  return {"port_flap", "losses of carrier counted by the other end",
          fmt::format("{} counted {} losses of its carrier; the port was taken down {} times",
                      port_.otherEndName(), losses_, clock_.breaks()),
          clock_.breaks() > 0 && losses_ >= clock_.breaks()};
}

Status PortFlap::revert() {
  if (!applied_) return okStatus();
  if (clock_.broken()) RETURN_IF_ERROR(toggle());
  clock_.stop();
  applied_ = false;
  return port_.awaitWhole();
}

}  // namespace faultline::injector
