#include "injector/faults/probe_round.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"

namespace faultline::injector {
namespace {

// What the listeners' sockets hold until they are looked at again, also when several faults probe
// one switch at a time.
constexpr int kFramesPerStep = 16;

/// Different in each round: late frames of an earlier one are not counted.
std::uint32_t newMark() {
  return static_cast<std::uint32_t>(
      Random::mix(static_cast<std::uint64_t>(now().time_since_epoch().count())));
}

}  // namespace

Result<ProbeRound> ProbeRound::open(const netlink::LinkEnd& sender,
                                    netlink::Socket& listener_socket,
                                    const std::vector<int>& listeners, int frames,
                                    std::size_t payload) {
  const std::uint32_t mark = newMark();
  ASSIGN_OR_RETURN(netlink::FrameSocket sending,
                   netlink::FrameSocket::open(*sender.socket, sender.ifindex, mark,
                                              netlink::FrameClass::kControl));
  std::vector<netlink::FrameSocket> listening;
  for (const int ifindex : listeners) {
    ASSIGN_OR_RETURN(netlink::FrameSocket socket,
                     netlink::FrameSocket::open(listener_socket, ifindex, mark));
    listening.push_back(std::move(socket));
  }
  return ProbeRound(std::move(sending), std::move(listening), frames, payload);
}

Status ProbeRound::restart() {
  // What has come since the last look is read with the old mark, and with it forgotten.
  for (const netlink::FrameSocket& listener : listeners_) {
    RETURN_IF_ERROR(listener.countPassed().status());
  }
  const std::uint32_t mark = newMark();
  sender_.setMark(mark);
  for (netlink::FrameSocket& listener : listeners_) listener.setMark(mark);
  std::fill(passed_.begin(), passed_.end(), 0);
  sent_ = 0;
  return okStatus();
}

Status ProbeRound::step() {
  for (int burst = 0; burst < kFramesPerStep && !allSent(); ++burst) {
    ASSIGN_OR_RETURN(const bool sent, sender_.send(netlink::kBroadcastMac, payload_));
    if (!sent) break;
    ++sent_;
  }
  for (std::size_t index = 0; index < listeners_.size(); ++index) {
    ASSIGN_OR_RETURN(const int passed, listeners_[index].countPassed());
    passed_[index] += passed;
  }
  return okStatus();
}

int ProbeRound::passedAnywhere() const {
  return std::accumulate(passed_.begin(), passed_.end(), 0);
}

int ProbeRound::passedMost(std::size_t first) const {
  return *std::max_element(passed_.begin() + static_cast<std::ptrdiff_t>(first), passed_.end());
}

bool ProbeRound::passesEverywhere() const {
  return allSent() &&
         std::all_of(passed_.begin(), passed_.end(), [](int passed) { return passed > 0; });
}

}  // namespace faultline::injector
