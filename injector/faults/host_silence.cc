#include "injector/faults/host_silence.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr Duration kAskPatience = 300ms;
constexpr Duration kBackPatience = 2s;
/// Long against the way to a neighbour and back.
constexpr Duration kRound = 20ms;
constexpr int kEnoughRounds = 3;

}  // namespace

Status HostSilence::prepare(netlink::Socket& socket, int ifindex) {
  socket_ = &socket;
  ifindex_ = ifindex;
  ASSIGN_OR_RETURN(neighbours_, safety::Neighbours::find(socket, ifindex, kAskPatience));
  if (!neighbours_.empty()) return okStatus();
  return errorf(Code::kUnavailable,
                "interface {}: no neighbour answers (ARP) that could miss its frames, so nothing "
                "could be proven; ping one first",
                ifindex);
}

Status HostSilence::step(TimePoint now) {
  if (asked_ != TimePoint{} && now - asked_ < kRound) return okStatus();
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*socket_, ifindex_));
  carrier_ = link.carrier;
  if (asked_ != TimePoint{} && neighbours_.sent()) {
    most_ = std::max(most_, neighbours_.answered());
    ++rounds_;
  }
  neighbours_.ask();
  asked_ = now;
  return okStatus();
}

bool HostSilence::conclusive() const { return carrier_ && most_ == 0 && rounds_ >= kEnoughRounds; }

Evidence HostSilence::verdict() const {
  return {"blackhole", "carrier and neighbours of the interface",
          fmt::format("the interface {} its carrier; of {} neighbours that answered before {} did, "
                      "asked {} times",
                      carrier_ ? "kept" : "lost", neighbours_.size(), most_, rounds_),
          conclusive()};
}

Result<std::string> HostSilence::whatIsMissing(netlink::Socket& socket, int ifindex) {
  return neighbours_.silent(socket, ifindex, kBackPatience);
}

}  // namespace faultline::injector
