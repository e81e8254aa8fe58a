#include "injector/faults/path_cut.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "injector/faults/fault_list.h"
#include "injector/faults/still_watch.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr std::array kPathCutSignatures{Signature{{"path", "both"}, {"path", "both"}}};

}  // namespace

constinit const FaultKind kPathCutKind{
    .name = "path_cut",
    .summary = "Two nodes no longer reach each other over one rail; both reach all others over it.",
    .sees = "silence between the two, though both links work: only a third node can tell",
    .evidence =
        "probe frames of either NIC leave the switch by the ports of others, and none by that "
        "of the peer; both NICs keep their carrier",
    .undo =
        "the switch's two ports are no longer isolated from each other; that dies with its "
        "namespace",
    .signatures = kPathCutSignatures,
    .alone = true,
    .between = true,
    .make = makeOne<PathCut>};

namespace {

// Where shapers are on the way, their queues may hold bulk data.
constexpr Duration kWholeBudget = 500ms;
// A broadcast leaves by all ports alike: a few tell as much as all.
constexpr std::size_t kMostOtherPorts = 3;

}  // namespace

PathCut::PathCut(const FaultParameters& /*parameters*/, const netlink::LinkTarget& target)
    : target_(target),
      ways_{Way{target.nic, target.peer_attachment}, Way{target.peer_nic, target.attachment}} {}

PathCut::~PathCut() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("path_cut: {}", status.message());
}

Status PathCut::openProbes() {
  others_.clear();
  for (const int port : target_.siblings) {
    if (port != target_.peer_attachment.ifindex) others_.push_back(port);
  }
  if (target_.peer_nic.socket == nullptr || others_.empty()) {
    return errorf(Code::kUnsupported, "it needs two links and a third one at the same switch");
  }
  if (others_.size() > kMostOtherPorts) others_.resize(kMostOtherPorts);
  // The switch itself gets broadcasts of every port that forwards, isolated or not: so it is seen
  // that the two reach the switch also while faults have the other ports.
  ASSIGN_OR_RETURN(const netlink::NetDevice attachment,
                   netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex));
  switch_listens_ = attachment.bridge_ifindex != 0;
  for (Way& way : ways_) {
    std::vector<int> listeners{way.to.ifindex};
    listeners.insert(listeners.end(), others_.begin(), others_.end());
    if (switch_listens_) listeners.push_back(attachment.bridge_ifindex);
    ASSIGN_OR_RETURN(ProbeRound probe, ProbeRound::open(way.from, *way.to.socket, listeners));
    way.probe.emplace(std::move(probe));
  }
  return noteForwarding(/*begins=*/true);
}

/// A port that begins to forward only after the probes were sent need not have seen them.
Status PathCut::noteForwarding(bool begins) {
  if (begins) forwarding_ = others_;
  std::vector<int> still;
  for (const int port : forwarding_) {
    ASSIGN_OR_RETURN(const netlink::NetDevice link,
                     netlink::readNetDevice(*target_.attachment.socket, port));
    if (netlink::isOperational(link)) still.push_back(port);
  }
  forwarding_ = std::move(still);
  return okStatus();
}

int PathCut::byOthers(const Way& way) const {
  int most = 0;
  for (std::size_t index = 0; index < others_.size(); ++index) {
    most = std::max(most, way.probe->passed(1 + index));
  }
  return most;
}

int PathCut::atSwitch(const Way& way) const {
  return switch_listens_ ? way.probe->passed(1 + others_.size()) : 0;
}

bool PathCut::reached(const Way& way) const {
  return byOthers(way) > 0 || (forwarding_.empty() && atSwitch(way) > 0);
}

/// Otherwise their absence later would prove nothing.
Status PathCut::waitUntilWhole() {
  const TimePoint deadline = now() + kWholeBudget;
  while (true) {
    for (Way& way : ways_) RETURN_IF_ERROR(way.probe->step());
    RETURN_IF_ERROR(noteForwarding(/*begins=*/false));
    if (std::ranges::all_of(ways_, [this](const Way& way) {
          return way.probe->allSent() && way.crossed() > 0 && reached(way);
        })) {
      return okStatus();
    }
    if (now() >= deadline) {
      return errorf(Code::kUnavailable, "probes do not cross the path even now");
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

/// All ports, whatever becomes of the first.
Status PathCut::setIsolated(bool isolated) {
  Status first;
  for (const Way& way : ways_) {
    const Status status = netlink::setPortIsolated(*way.to.socket, way.to.ifindex, isolated);
    if (first.ok()) first = status;
  }
  return first;
}

Status PathCut::prepare() {
  RETURN_IF_ERROR(openProbes().withContext("path_cut"));
  RETURN_IF_ERROR(waitUntilWhole().withContext("path_cut"));
  ASSIGN_OR_RETURN(const std::vector<netlink::Ipv4Address> addresses,
                   netlink::listAddresses(*target_.peer_nic.socket, target_.peer_nic.ifindex));
  if (!addresses.empty()) peer_address_ = addresses.front().toString();
  return setIsolated(false).withContext("path_cut");
}

Status PathCut::apply() {
  probing_ = false;
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  return transit(
      true, [&] { return setIsolated(true); }, peer_address_);
}

Status PathCut::step(TimePoint now) {
  if (probing_ && conclusive()) return okStatus();
  if (!probing_) {
    for (Way& way : ways_) RETURN_IF_ERROR(way.probe->restart());
    RETURN_IF_ERROR(noteForwarding(/*begins=*/true));
    reached_.reset();
    probing_ = true;
  }
  RETURN_IF_ERROR(noteForwarding(/*begins=*/false));
  carriers_ = true;
  bool there = true;
  for (Way& way : ways_) {
    RETURN_IF_ERROR(way.probe->step());
    ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                     netlink::readNetDevice(*way.from.socket, way.from.ifindex));
    carriers_ = carriers_ && nic.carrier;
    there = there && way.probe->allSent() && reached(way);
  }
  latest_ = now;
  if (there && !reached_) reached_ = now;
  return okStatus();
}

bool PathCut::conclusive() const {
  return probing_ && reached_ && latest_ - *reached_ >= kStill && carriers_ &&
         std::ranges::all_of(ways_, [](const Way& way) { return way.crossed() == 0; });
}

Evidence PathCut::verdict() const {
  if (!probing_) return {"path_cut", "probes across the path", "nothing was observed", false};
  const Way& there = ways_.front();
  const Way& back = ways_.back();
  return {"path_cut", "probes across the path",
          fmt::format("of {} probes of the NIC {} left the switch towards the peer, {} by another "
                      "port, and {} reached the switch itself; of {} of the peer's {} left it "
                      "towards the NIC, {} by another port, and {} reached it; {} other ports "
                      "forwarded; {} their carrier",
                      there.probe->sent(), there.crossed(), byOthers(there), atSwitch(there),
                      back.probe->sent(), back.crossed(), byOthers(back), atSwitch(back),
                      forwarding_.size(), carriers_ ? "both kept" : "not both kept"),
          conclusive()};
}

Status PathCut::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(
      false, [&] { return setIsolated(false); }, peer_address_));
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
