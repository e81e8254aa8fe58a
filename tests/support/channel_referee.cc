#include "tests/support/channel_referee.h"

#include <algorithm>

#include "resilient_ccl/channel/control_stream.h"

namespace faultline::test {

using channel::Cause;
using channel::DeadDirection;
using channel::Failover;
using channel::Link;
using Phase = channel::Link::Phase;

namespace {

/// Beyond this share, lost rounds look like a dead path now and then.
constexpr double kTolerableLoss = 0.05;
/// An answer may be read that much later than the path carried it.
constexpr Duration kAnswerDelay = 30ms;
/// A rail waits no longer for its transport's timer when an outage took so many datagrams in a row.
constexpr Duration kNoticedWithin = 100ms;
constexpr int kTellingLoss = 3;

}  // namespace

Coverage& Coverage::operator+=(const Coverage& other) {
  for (const auto& [key, count] : other.entered) entered[key] += count;
  for (const auto& [key, count] : other.changes) changes[key] += count;
  for (const auto& [key, count] : other.verdicts) verdicts[key] += count;
  for (const auto& [key, count] : other.directions) directions[key] += count;
  counters += other.counters;
  givenUp += other.givenUp;
  arrivedTwice += other.arrivedTwice;
  explained += other.explained;
  missing += other.missing;
  failedSends += other.failedSends;
  failedReceives += other.failedReceives;
  return *this;
}

Referee::Referee(SimWorld& world, const Script& script)
    : world_(world), script_(script), rails_(script.options.link.rails) {
  const TimePoint begin = world.clock().now();
  for (RailState& rail : rails_) rail.firstUp[1] = begin;
  for (const Action& action : script.actions) {
    if (!action.beforehand) continue;
    rails_[action.rail].firstUp.clear();
    rails_[action.rail].closed = begin;
    ++coverage_.missing;
  }
}

void Referee::changed(const RailChange& change) {
  if (change.from != change.to) ++coverage_.entered[change.to];
  ++coverage_.changes[{change.from, change.to, change.input}];
  if (change.to == Phase::kUp) rails_[change.rail].firstUp.try_emplace(change.epoch, change.when);
  if (change.from == Phase::kUp && change.to == Phase::kFencing) givenUp(change);
  constexpr int kConnecting = 0;
  if (change.end != kConnecting) return;
  RailState& rail = rails_[change.rail];
  if (change.to == Phase::kUp) rail.upAgain = change.when;
  if (change.to == Phase::kOpening) reopened(change);
  if (change.from == Phase::kOpening && change.to == Phase::kDown) rail.closed = change.when;
  if (change.input == Input::kStart) rail.cancelled = change.when;
  if (change.from != Phase::kUp) return;
  rail.closed = change.when;
  const auto& options = script_.options.link;
  const bool flaps = change.epoch > 1 && change.when - rail.upAgain < options.holdOffMemory;
  // The second failure waits at least as long as the rule says of the first repetition.
  rail.holdOff = flaps ? std::min(options.holdOff * options.holdOffGrowth, options.longestHoldOff)
                       : Duration::zero();
}

void Referee::givenUp(const RailChange& change) {
  const auto& options = script_.options;
  const auto& peer = world_.link(1 - change.end);
  const bool told = change.input == Input::kDatagram;
  if (told) {
    if (peer.phase(change.rail) == Phase::kUp && peer.epoch(change.rail) == change.epoch) {
      problems_.push_back(fmt::format("end {} believes that rail {} was given up: it was not",
                                      change.end, change.rail));
    }
    return;
  }
  const TimePoint opened = rails_[change.rail].firstUp[change.epoch] - 2 * options.openTime;
  const bool cancelled = change.input == Input::kReset && rails_[change.rail].cancelled >= opened;
  const bool broken = cancelled || world_.lastBroken(change.rail) >= opened ||
                      (change.input == Input::kStall && world_.lastStuck(change.rail) >= opened);
  if (!broken && options.datagramLoss + options.datagramsHeld <= kTolerableLoss) {
    problems_.push_back(fmt::format("a false verdict: end {} gives up rail {} by {}", change.end,
                                    change.rail, inputName(change.input)));
  }
  if (options.datagramLoss > 0 || options.datagramsHeld > 0) return;
  expectPeerKnows(change, change.when);
}

void Referee::degraded(int end, const channel::RailDegradation& change) {
  const auto& options = script_.options;
  if (!change.degraded || options.datagramLoss + options.datagramsHeld > kTolerableLoss) return;
  // What was under way when the rail got fast again is judged a little later.
  constexpr Duration kUnderWay = 1s;
  const int rail = change.rail;
  if (world_.lastSlow(rail) + kUnderWay >= change.when) return;
  // Whatever the others do now: it is held against what they did.
  if (world_.lastStuck(rail) + kUnderWay >= change.when) return;
  if (world_.lastWhole(rail) + kAnswerDelay < change.when) {
    problems_.push_back(fmt::format("end {} calls the dead rail {} slow", end, rail));
    return;
  }
  // After an outage a transport waits for its timer.
  const std::uint32_t epoch = world_.link(end).epoch(rail);
  if (world_.lastBroken(rail) >= rails_[rail].firstUp[epoch] - 2 * options.openTime) return;
  problems_.push_back(
      fmt::format("end {} calls rail {} slow ({:.2f}): it is not", end, rail, change.share));
}

/// The end that gave it up says so at `told`, or before.
void Referee::expectPeerKnows(const RailChange& change, TimePoint told) {
  const Duration oneWay = 50us + script_.options.datagramJitter + 1ms;
  world_.clock().after(told + oneWay - world_.clock().now(), [this, change, told] {
    const int peer = 1 - change.end;
    const Link& link = world_.link(peer);
    if (link.phase(change.rail) != Phase::kUp || link.epoch(change.rail) != change.epoch) return;
    const TimePoint reachable =
        std::max(world_.managementPathUpSince(),
                 std::max(world_.stoppedUntil(change.end), world_.stoppedUntil(peer)));
    if (reachable < told) {
      problems_.push_back(fmt::format("end {} has given up rail {}, and end {} does not know",
                                      change.end, change.rail, peer));
    } else {  // it did not get through, and is said again
      expectPeerKnows(change, world_.clock().now() + channel::ControlStream::kLongestPause);
    }
  });
}

void Referee::reopened(const RailChange& change) {
  if (!world_.started(change.end)) return;
  const RailState& rail = rails_[change.rail];
  if (world_.lastWhole(change.rail) + kAnswerDelay < rail.closed) {
    problems_.push_back(fmt::format("rail {} is opened over a path that is dead", change.rail));
  }
  bool other = false;
  for (int i = 0; i < script_.options.link.rails; ++i) {
    other = other || world_.link(change.end).phase(i) == Phase::kUp;
  }
  if (other && change.when - rail.closed < rail.holdOff) {
    problems_.push_back(fmt::format("rail {} flaps and is not held off", change.rail));
  }
}

const Action* Referee::only(Action::Kind kind) const {
  const auto& options = script_.options;
  if (options.datagramLoss > 0 || options.datagramsHeld > 0) return nullptr;
  const Action* fault = nullptr;
  for (const Action& action : script_.actions) {
    if (action.kind == Action::Kind::kMessages || action.kind == Action::Kind::kNote) continue;
    constexpr Duration kLongEnough = 100ms;
    if (action.kind != kind || fault != nullptr || action.length < kLongEnough) return nullptr;
    fault = &action;
  }
  return fault;
}

/// It took datagrams along: their numbers say so, also when it was over before anybody could ask.
void Referee::judgeShortOutage() {
  const auto& options = script_.options;
  if (options.datagramLoss + options.datagramsHeld > 0 || !options.backsOff) return;
  const Action* outage = nullptr;
  for (const Action& action : script_.actions) {
    if (action.kind == Action::Kind::kMessages || action.kind == Action::Kind::kNote) continue;
    if (action.kind == Action::Kind::kSlow) continue;
    if (action.kind != Action::Kind::kBlackHole || outage != nullptr) return;
    outage = &action;
  }
  if (outage == nullptr) return;
  const Duration waited = world_.longestBackOff(outage->rail);
  const int lost = world_.mostLostInARow(outage->rail);
  if (waited < kNoticedWithin || lost < kTellingLoss) return;
  problems_.push_back(
      fmt::format("rail {} waits for {} after an outage of {} that took {} datagrams", outage->rail,
                  formatDuration(waited), formatDuration(outage->length), lost));
}

/// In the long run they are a small share of what is sent, whatever the rails do.
void Referee::judgeCopies(const channel::LinkCounters& counters) {
  constexpr Bytes kLeastSentForOneCopied = 64;
  const Bytes most = script_.options.link.tailBudget + counters.bytesSent / kLeastSentForOneCopied;
  if (counters.bytesCopied <= most) return;
  problems_.push_back(fmt::format("{} of {} bytes were copied, {} may be", counters.bytesCopied,
                                  counters.bytesSent, most));
}

void Referee::judgeFailovers() {
  const Action* const blackHole = only(Action::Kind::kBlackHole);
  const Action* const portDown = only(Action::Kind::kPortDown);
  for (int end = 0; end < SimWorld::kEnds; ++end) {
    const auto& counters = world_.link(end).counters();
    if (!script_.fatal() && counters.failovers != world_.failovers(end).size()) {
      problems_.push_back(fmt::format("end {} has reported {} of {} failovers", end,
                                      world_.failovers(end).size(), counters.failovers));
    }
    const Bytes copied = world_.link(1 - end).counters().bytesCopied;
    if (counters.bytesDuplicate > copied && !script_.closesStreams()) {
      problems_.push_back(fmt::format("end {} has got {} bytes twice, and {} were copied", end,
                                      counters.bytesDuplicate, copied));
    }
    judgeCopies(counters);
    coverage_.counters += counters;
    coverage_.explained += world_.explained(end);
    if (portDown != nullptr && !portDown->beforehand && script_.options.portsSeen &&
        world_.explained(end) > 0) {
      problems_.push_back(fmt::format("end {} has not looked at its port at once", end));
    }
    for (const Failover& failover : world_.failovers(end)) {
      ++coverage_.verdicts[{failover.cause, failover.told, failover.stalled}];
      if (failover.cause == Cause::kPath) ++coverage_.directions[failover.deadDirection];
      if (failover.cause == Cause::kProtocol) {
        problems_.push_back(fmt::format("end {} takes an honest peer for a liar", end));
      }
      const Bytes twice = world_.arrivedTwice(end, failover);
      coverage_.arrivedTwice += twice;
      const bool exact = !script_.fatal() && !script_.closesStreams();
      if (exact && failover.duplicateBytes != twice) {
        problems_.push_back(
            fmt::format("end {} says that {} bytes of failed rail {} came twice: {}", end,
                        failover.duplicateBytes, failover.rail, twice));
      }
      const bool local = failover.cause == Cause::kLocalNic;
      const int damaged = local ? end : 1 - end;
      if ((local || failover.cause == Cause::kRemoteNic) &&
          !world_.portWasDown(damaged, failover.rail)) {
        problems_.push_back(fmt::format("end {} blames {} for rail {}, whose port there was up",
                                        end, channel::causeName(failover.cause), failover.rail));
      }
      if (failover.cause != Cause::kPath) continue;
      if (portDown != nullptr && failover.rail == portDown->rail &&
          (script_.options.portsSeen || world_.portDownTold(portDown->end, portDown->rail))) {
        problems_.push_back(fmt::format("end {} blames the path of rail {}, whose port was down",
                                        end, failover.rail));
      }
      if (blackHole == nullptr || failover.rail != blackHole->rail) continue;
      if (blackHole->beforehand) continue;  // no round was sent over it yet
      const bool outgoing = end == 0 ? blackHole->fromEnd0 : blackHole->fromEnd1;
      const bool incoming = end == 0 ? blackHole->fromEnd1 : blackHole->fromEnd0;
      const DeadDirection truth = outgoing && incoming ? DeadDirection::kBoth
                                  : outgoing           ? DeadDirection::kOutgoing
                                                       : DeadDirection::kIncoming;
      if (failover.deadDirection == truth) continue;
      problems_.push_back(fmt::format("end {} says {} of rail {}, and it is {}", end,
                                      channel::directionName(failover.deadDirection), failover.rail,
                                      channel::directionName(truth)));
    }
  }
}

}  // namespace faultline::test
