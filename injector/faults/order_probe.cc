#include "injector/faults/order_probe.h"

#include "base/random.h"
#include "injector/faults/still_watch.h"

namespace faultline::injector {
namespace {

// The second of those for experiments in one's own network (IEEE 802); the first counts frames.
constexpr std::uint16_t kOrderEthertype = 0x88b6;
constexpr int kOrderFramesPerLook = 16;

}  // namespace

Result<OrderProbe> OrderProbe::open(const netlink::LinkEnd& sender,
                                    const netlink::LinkEnd& listener, int frames, Duration delay) {
  ASSIGN_OR_RETURN(netlink::PacketSocket sending,
                   netlink::PacketSocket::open(*sender.socket, sender.ifindex, 0));
  // Those that the listener's interface sends itself are not asked for.
  ASSIGN_OR_RETURN(
      netlink::PacketSocket hearing,
      netlink::PacketSocket::open(*listener.socket, listener.ifindex, kOrderEthertype));
  OrderProbe probe(std::move(sending), std::move(hearing), frames, delay);
  probe.restart();
  return probe;
}

void OrderProbe::restart() {
  mark_ = static_cast<std::uint32_t>(
      Random::mix(static_cast<std::uint64_t>(now().time_since_epoch().count())));
  order_ = ProbeOrder(frames_, delay_);
  stepped_ = 0;
}

Status OrderProbe::step(TimePoint now) {
  ++stepped_;
  looked_ = now;
  if (!done()) order_.look(now);
  for (int burst = 0; burst < kOrderFramesPerLook && !allSent(); ++burst) {
    const Frame frame{mark_, static_cast<std::uint32_t>(order_.moments().size())};
    ASSIGN_OR_RETURN(const bool sent, sender_.send(kOrderEthertype, netlink::kBroadcastMac,
                                                   frame.data(), sizeof frame));
    if (!sent) break;
    order_.send(now);
  }
  while (true) {
    Frame frame{};
    ASSIGN_OR_RETURN(const auto size, listener_.receive(frame.data(), sizeof frame));
    if (!size) return okStatus();
    if (*size != sizeof frame || frame[0] != mark_) continue;
    if (frame[1] >= order_.moments().size()) continue;  // damaged
    heard_ = now;
    order_.hear(static_cast<int>(frame[1]), now);
  }
}

bool OrderProbe::done() const { return allSent() && looked_ - heard_ >= kStill + 2 * delay_; }

Duration OrderProbe::between() const {
  const auto& sent = order_.moments();
  return stepped_ < 2 || sent.empty() ? Duration{} : (looked_ - sent.front()) / (stepped_ - 1);
}

/// Behind those that are judged go others, for as long as one of them may need to overtake.
bool OrderProbe::allSent() const {
  const auto judged = static_cast<std::size_t>(frames_);
  const auto& sent = order_.moments();
  return sent.size() > judged && sent.back() - sent[judged - 1] >= 2 * delay_ + kStill;
}

}  // namespace faultline::injector
