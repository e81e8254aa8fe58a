#include "injector/faults/host_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/faults/share_proof.h"
#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr Duration kFindPatience = 300ms;
constexpr Duration kReturnedPatience = 2s;
/// From a question to the next: long against the way to a neighbour and back, and no flood.
constexpr Duration kQuestionInterval = 5ms;
/// So many that about twenty should be lost, and never fewer than tell a half from a third.
constexpr double kLostQuestions = 20;
constexpr int kFewestQuestions = 200;
// What else is lost, to a queue that is full.
constexpr ShareTolerance kFullQueues{.more = kQueueShare};
// Of a direction: questions, and what the counters show of them.
constexpr int kEnoughOneWay = 20;

Result<safety::Neighbours> findNeighbours(netlink::Socket& socket, int ifindex) {
  ASSIGN_OR_RETURN(safety::Neighbours found,
                   safety::Neighbours::find(socket, ifindex, kFindPatience));
  if (!found.empty()) return found;
  return errorf(Code::kUnavailable,
                "interface {}: no neighbour answers (ARP) that could miss its frames, so nothing "
                "could be proven; ping one first",
                ifindex);
}

}  // namespace

HostLoss::HostLoss(double sent, double received) : share_(1 - (1 - sent) * (1 - received)) {}

int HostLoss::enough() const {
  return std::max(kFewestQuestions, static_cast<int>(kLostQuestions / share_));
}

Status HostLoss::prepare(netlink::Socket& socket, int ifindex) {
  socket_ = &socket;
  ifindex_ = ifindex;
  ASSIGN_OR_RETURN(neighbours_, findNeighbours(socket, ifindex));
  return okStatus();
}

Status HostLoss::step(TimePoint now) {
  if (conclusive()) return okStatus();
  const bool asked = roundBegan_ != TimePoint{};
  if (asked && now - roundBegan_ < kQuestionInterval) return okStatus();
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*socket_, ifindex_));
  carrier_ = link.carrier;
  if (asked) {
    asked_ += static_cast<int>(neighbours_.size());
    answered_ += static_cast<int>(neighbours_.answered());
  }
  neighbours_.ask();
  roundBegan_ = now;
  return okStatus();
}

Duration HostLoss::evidenceBudget() const {
  return kFindPatience + 2 * enough() * kQuestionInterval;
}

bool HostLoss::conclusive() const {
  return carrier_ && asked_ >= enough() &&
         fitsShare(share_, asked_, asked_ - answered_, kFullQueues);
}

Evidence HostLoss::verdict() const {
  return {
      "loss", "answers of neighbours of the interface",
      fmt::format("the interface {} its carrier; of {} questions to {} neighbours that answered "
                  "before {} got no answer: {}",
                  carrier_ ? "kept" : "lost", asked_, neighbours_.size(), asked_ - answered_,
                  shareInWords("lost", share_, asked_, asked_ - answered_)),
      conclusive()};
}

Result<std::string> HostLoss::whatIsMissing(netlink::Socket& socket, int ifindex) {
  return neighbours_.silent(socket, ifindex, kReturnedPatience);
}

Status HostOneWay::prepare(netlink::Socket& socket, int ifindex) {
  socket_ = &socket;
  ifindex_ = ifindex;
  ASSIGN_OR_RETURN(neighbours_, findNeighbours(socket, ifindex));
  return okStatus();
}

Status HostOneWay::step(TimePoint now) {
  if (conclusive()) return okStatus();
  const bool asked = roundBegan_ != TimePoint{};
  if (asked && now - roundBegan_ < kQuestionInterval) return okStatus();
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*socket_, ifindex_));
  ASSIGN_OR_RETURN(const netlink::LinkCounters counters, netlink::readCounters(*socket_, ifindex_));
  carrier_ = link.carrier;
  if (asked) {
    // A question that is dropped on its way out is refused.
    rounds_ += neighbours_.sent() || out_ ? 1 : 0;
    answers_ += neighbours_.answered();
    sent_ = counters.tx_packets - sentBefore_;
    received_ = counters.rx_packets - receivedBefore_;
  } else {
    sentBefore_ = counters.tx_packets;
    receivedBefore_ = counters.rx_packets;
  }
  neighbours_.ask();
  roundBegan_ = now;
  return okStatus();
}

bool HostOneWay::conclusive() const {
  if (!carrier_ || answers_ > 0 || rounds_ < kEnoughOneWay) return false;
  if (out_) return sent_ == 0;
  const auto rounds = static_cast<std::uint64_t>(rounds_);
  return sent_ >= rounds && received_ >= rounds;
}

Evidence HostOneWay::verdict() const {
  return {"one_way_loss", "counters and neighbours of the interface",
          fmt::format("the interface {} its carrier; {} neighbours that answered before were asked "
                      "{} times and gave {} answers that were heard; it sent {} frames meanwhile, "
                      "and received {}",
                      carrier_ ? "kept" : "lost", neighbours_.size(), rounds_, answers_, sent_,
                      received_),
          conclusive()};
}

Result<std::string> HostOneWay::whatIsMissing(netlink::Socket& socket, int ifindex) {
  return neighbours_.silent(socket, ifindex, kReturnedPatience);
}

}  // namespace faultline::injector
