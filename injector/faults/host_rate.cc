#include "injector/faults/host_rate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "injector/netlink/root_queue.h"

namespace faultline::injector {
namespace {

constexpr BitsPerSecond kFastestLink = 800'000'000'000;  // what it was before is not known
constexpr netlink::MacAddress kNearestBridge{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};
constexpr std::uint32_t kHostMark = 0x7409;  // nobody counts these frames
constexpr Bytes kBacklogOfSocket = 64 * 1024;
constexpr Bytes kMostProbes = 16;
constexpr int kFramesOfStep = 32;
constexpr Duration kHostPatience = 500ms;
constexpr int kHostWindows = 4;

}  // namespace

Status HostRate::prepare(netlink::Socket& socket, int ifindex) {
  socket_ = &socket;
  ifindex_ = ifindex;
  ASSIGN_OR_RETURN(plan_, planThrottle(kFastestLink, Rate{rate_}));
  meter_ = plan_.meter();
  return okStatus();
}

Status HostRate::step(TimePoint now) {
  if (conclusive()) return okStatus();
  RETURN_IF_ERROR(look(now));
  return probes_.empty() ? okStatus() : feed();
}

Status HostRate::look(TimePoint now) {
  const auto queue = netlink::readRootQueue(*socket_, ifindex_);
  there_ = queue.ok();
  if (queue.status().code() == Code::kNotFound) {  // somebody has taken it away
    meter_ = plan_.meter();
    return okStatus();
  }
  if (!queue.ok()) return queue.status();
  backlog_ = queue->backlog;
  meter_.observe(now, queue->sent_bytes, queue->backlog);
  return okStatus();
}

Status HostRate::demandEvidence() {
  const Bytes sockets =
      std::clamp(plan_.probe_backlog / kBacklogOfSocket + 1, Bytes{1}, kMostProbes);
  while (static_cast<Bytes>(probes_.size()) < sockets) {
    ASSIGN_OR_RETURN(netlink::FrameSocket socket,
                     netlink::FrameSocket::open(*socket_, ifindex_, kHostMark));
    probes_.push_back(std::move(socket));
  }
  return okStatus();
}

Status HostRate::feed() {
  if (!there_) return okStatus();
  int frames = 0;
  for (const netlink::FrameSocket& probe : probes_) {
    while (backlog_ < plan_.probe_backlog && frames < kFramesOfStep) {
      ASSIGN_OR_RETURN(const bool sent, probe.send(kNearestBridge, plan_.probe_frame));
      if (!sent) break;
      backlog_ += static_cast<Bytes>(plan_.probe_frame);
      ++frames;
    }
  }
  return okStatus();
}

Duration HostRate::evidenceBudget() const { return kHostPatience + kHostWindows * plan_.window; }

bool HostRate::conclusive() const {
  return proofOf(plan_, meter_.measured()) == ThrottleProof::kAsAsked;
}

Evidence HostRate::verdict() const {
  return {"throttle", "rate of leaving our queue under backlog",
          fmt::format("{}{}", inWords(plan_, meter_.measured(), /*before_known=*/false),
                      probes_.empty() ? "" : ", with own probes"),
          conclusive()};
}

Result<std::string> HostRate::whatIsMissing(netlink::Socket& /*socket*/, int /*ifindex*/) {
  return std::string();
}

}  // namespace faultline::injector
