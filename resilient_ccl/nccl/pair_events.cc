#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "resilient_ccl/nccl/pair.h"

// What happens to the rails of a pair and to its link: for the log, the counters and the trace, and
// for other peers, who hear why calls of this process fail.

namespace faultline::nccl {

/// What NCCL is told: with the reason that the peer has lately told, if it has.
Status Pair::withReason(const Status& why, FirstFailure::Kind kind) {
  const TimePoint time = now();
  const std::string_view heard =
      why.code() == Code::kInvalidArgument ? std::string_view() : heard_.why(time);
  if (settings_.failure && heard.empty()) {
    settings_.failure->note(fmt::format("{}: {}", settings_.self, why.message()), kind, time);
  } else if (settings_.failure) {
    settings_.failure->note(std::string(heard), FirstFailure::Kind::kCause, time);
  }
  if (heard.empty()) return why;
  return errorf(why.code(), "{}; its reason, told {} before: {}", why.message(),
                formatDuration(std::chrono::round<std::chrono::milliseconds>(time - heard_.when())),
                heard);
}

bool Pair::tellFailure() {
  if (failed_ || !started_ || departed_ || !settings_.failure) return false;
  if (settings_.failure->number() == toldFailure_) return false;
  const FirstFailure::Kept kept = settings_.failure->kept();
  toldFailure_ = kept.number;
  for (const std::vector<std::byte>& word : wordsOf(kept)) fabric_->tell(other(), word);
  return true;
}

std::string Pair::railName(int rail) const {
  // A rename that came meanwhile is known to the fabric.
  const std::string& device = fabric_->nics()[rail].device;
  const std::string& first =
      settings_.firstNames.empty() ? settings_.rails[rail].device : settings_.firstNames[rail];
  return device == first ? fmt::format("rail {} ({})", rail, device)
                         : fmt::format("rail {} ({}, {} at the start)", rail, device, first);
}

void Pair::happened(telemetry::EventKind kind, int rail, TimePoint when,
                    const channel::Failover* failover) {
  if (!traces()) return;
  History::Happening it{
      .event = {.at = when, .rail = static_cast<std::int16_t>(rail), .kind = kind}};
  if (failover != nullptr) {
    it.event.length = std::max(Duration{}, failover->redelivered - when);
    it.event.bytes = failover->resentBytes;
    it.cause = failover->cause;
    it.pause = failover->receiveStall;
  }
  account_.history.add(it);
}

// What happens to rails of a process that has said goodbye is its end: its connections are closed.

// What a rail's end leads to comes later, and so in the log: a failover is over when all that was
// outstanding has been delivered elsewhere.

void Pair::railLost(int /*peer*/, const channel::Failover& failover) {
  if (departed_ && failover.detected >= *departed_) return;
  spdlog::info("{} to {} is down: {}", railName(failover.rail), settings_.peer,
               channel::causeName(failover.cause));
  lost_[failover.rail] = failover.cause;
}

void Pair::framesLost(int /*peer*/, int rail, Bytes frame) {
  if (departed_) return;
  spdlog::warn(
      "{} to {}: datagrams of {} bytes are lost, and short ones are not; look at the MTU of every "
      "port along the path",
      railName(rail), settings_.peer, frame);
}

void Pair::failedOver(int /*peer*/, const channel::Failover& failover) {
  if (departed_ && failover.detected >= *departed_) return;
  ++account_.failovers;
  account_.longestPause = std::max(account_.longestPause, failover.receiveStall);
  account_.paused += failover.receiveStall;
  happened(telemetry::EventKind::kFailedOver, failover.rail, failover.detected, &failover);
  const channel::Cause lost = lost_[failover.rail];
  if (lost != channel::Cause::kNone && lost != failover.cause) {
    explained(other(), failover.rail, failover.cause, failover.where);
  }
  if (!failover.sending && !failover.receiving) return;
  const Duration took = std::max(Duration{}, failover.redelivered - failover.detected);
  spdlog::info("{} to {}: the others carry its load, {} after it was down; {} bytes sent again",
               railName(failover.rail), settings_.peer,
               formatDuration(std::chrono::round<std::chrono::milliseconds>(took)),
               failover.resentBytes);
}

void Pair::failedBack(int /*peer*/, int rail, TimePoint when) {
  if (departed_) return;
  ++account_.failbacks;
  lost_[rail] = channel::Cause::kNone;
  happened(telemetry::EventKind::kRailUp, rail, when);
  spdlog::info("{} to {} is back", railName(rail), settings_.peer);
}

void Pair::degraded(int /*peer*/, const channel::RailDegradation& change) {
  if (departed_) return;
  if (change.degraded) ++account_.degradations;
  happened(change.degraded ? telemetry::EventKind::kRailSlow : telemetry::EventKind::kRailFast,
           change.rail, now());
  // Its end is told already.
  if (!change.degraded && lost_[change.rail] != channel::Cause::kNone) return;
  spdlog::info("{} to {} is {}", railName(change.rail), settings_.peer,
               change.degraded ? fmt::format("slow: {:.2f} of the fastest", change.share)
                               : "as fast as the others again");
}

void Pair::pathProved(int /*peer*/, const channel::PathProved& proved, const std::string& words) {
  if (departed_) return;
  spdlog::log(proved.passes ? spdlog::level::info : spdlog::level::warn, "{}", words);
}

void Pair::explained(int /*peer*/, int rail, channel::Cause cause, channel::Where /*where*/) {
  if (departed_) return;
  if (lost_[rail] != channel::Cause::kNone) lost_[rail] = cause;
  spdlog::info("{} to {}: the cause was {}", railName(rail), settings_.peer,
               channel::causeName(cause));
}

void Pair::linkFailed(int /*peer*/, const Status& why) {
  // The link knows its rails by their numbers.
  std::vector<std::string> rails;
  for (std::size_t rail = 0; rail < settings_.rails.size(); ++rail) {
    rails.push_back(railName(static_cast<int>(rail)));
  }
  const Status named = errorf(why.code(), "{} [{}]", why.message(), fmt::join(rails, ", "));
  fail(named);
  // Other peers hear it now, before NCCL does, and whether or not it ends its connections then.
  if (!departed_) (void)withReason(named, FirstFailure::Kind::kCause);
}

}  // namespace faultline::nccl
