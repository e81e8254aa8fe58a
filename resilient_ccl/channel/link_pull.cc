#include <algorithm>
#include <limits>
#include <utility>

#include "resilient_ccl/channel/link.h"

// How much a rail may have outstanding, which rail takes the next chunk, which chunks go again
// over a faster one, and whether a rail is far slower than the others.

namespace faultline::channel {

Bytes Link::windowFor(int rail, Bytes chunk) const {
  const double carried = rails_[rail].rate.bytesPerSecond() * toSeconds(options_.windowTime);
  const Bytes most = static_cast<Bytes>(Receipt::kReach + 1) * chunk;
  return std::min(kLeastWindow * chunk + static_cast<Bytes>(carried), most);
}

bool Link::hasRoom(int rail, Bytes chunk) const {
  const Rail& state = rails_[rail];
  return state.acknowledged.reaches(state.nextSequence) &&
         state.inFlightBytes < windowFor(rail, chunk);
}

double Link::guessRate() const {
  double fastest = 0;
  for (const Rail& state : rails_) {
    const bool known = state.phase == Phase::kUp && state.rate.measured() != TimePoint{};
    if (known) fastest = std::max(fastest, state.rate.bytesPerSecond());
  }
  return fastest > 0 ? fastest : kFirstRate;
}

double Link::rateOf(int rail) const {
  const Rail& state = rails_[rail];
  if (state.inFlight.empty()) return state.rate.bytesPerSecond();
  // Silence is evidence only as far as the peer has been heard since.
  return state.rate.withSilenceUntil(lastHeard_);
}

double Link::secondsUntil(int rail, Bytes more) const {
  return static_cast<double>(rails_[rail].inFlightBytes + more) / rateOf(rail);
}

void Link::pull(TimePoint now) {
  std::deque<ChunkRef>& queue = queues_[0];
  while (!queue.empty()) {
    const int rail = nextPuller(now);
    if (rail < 0) return;
    const ChunkRef chunk = queue.front();
    queue.pop_front();
    submit(rail, chunk, /*copied=*/false, now);
  }
  if (options_.resilient) copyTail(now);
}

/// With late acknowledgements, whether a rail has little outstanding, not for long, and has not
/// been found slow. Rates are no use for that then: what a rail delivers of messages that come one
/// by one is the time of an acknowledgement, so that whichever rail is given more of them seems to
/// be the faster one, and gets all of them.
bool Link::keepsUp(int rail, Bytes chunk, TimePoint now) const {
  const Rail& state = rails_[rail];
  const bool fresh = state.inFlight.empty() || now - state.lastProgress <= kStillFresh;
  return options_.smallMessage > 0 && state.phase == Phase::kUp && !state.suspected &&
         !state.degradation.degraded() && fresh &&
         state.inFlightBytes + chunk <= kLeastWindow * options_.chunkBytes && hasRoom(rail, chunk);
}

int Link::nextPuller(TimePoint now) const {
  int best = -1;
  double soonest = std::numeric_limits<double>::infinity();
  double fullRate = 0;
  const std::uint64_t message = queues_[0].front().message;
  const int firstChoice = sends_.at(message).firstChoice;
  const int home = firstChoice == kAnyRail ? kAnyRail : liveRailFrom(firstChoice);
  const Bytes chunk = chunkBytes(message);
  if (home != kAnyRail && keepsUp(home, chunk, now)) return home;
  Bytes fullBytes = static_cast<Bytes>(queues_[0].size()) * chunk;
  const int nearest = std::max(home, 0);
  const std::vector<int>& others = options_.partners[nearest];
  for (int turn = 0; turn <= std::ssize(others); ++turn) {
    const int rail = turn == 0 ? nearest : others[turn - 1];
    const Rail& state = rails_[rail];
    if (state.phase != Phase::kUp) continue;
    if (!hasRoom(rail, chunk)) {
      fullRate += rateOf(rail);
      fullBytes += state.inFlightBytes;
      continue;
    }
    if (state.inFlight.empty() && now - state.rate.measured() > kRateIsOld) return rail;
    const double done = secondsUntil(rail, chunk);
    const double margin = best >= 0 && best == home ? kAsGood : 1;
    if (best >= 0 && done * margin >= soonest) continue;
    best = rail;
    soonest = done;
  }
  // When the full rails will have done everything before this one has done a single chunk, it would
  // only be waited for. They have chunks outstanding, so that this is asked again.
  if (fullRate > 0 && static_cast<double>(fullBytes) / fullRate < soonest) return -1;
  return best;
}

bool Link::mayCopy(const InFlight& open) const {
  const Bytes length = open.length;
  const Bytes copied = sends_.at(open.chunk.message).copied;
  return copied + length <= options_.tailBudget && length <= tailCredit_;
}

/// The debt has a bound, so that there are copies again some time after a rail has got slow.
void Link::payForUselessCopy(Bytes length) {
  tailCredit_ = std::max(tailCredit_ - (kUselessCopy - 1) * length, -options_.tailBudget);
}

Link::InFlight* Link::tailOf(int rail, double& seconds) {
  Rail& state = rails_[rail];
  if (state.phase != Phase::kUp || state.lateWrites) return nullptr;
  Bytes upToHere = state.inFlightBytes;
  for (auto open = state.inFlight.rbegin(); open != state.inFlight.rend(); ++open) {
    const bool copyable = !open->settled && !open->copied && mayCopy(*open);
    if (copyable) {
      seconds = static_cast<double>(upToHere) / rateOf(rail);
      return &*open;
    }
    upToHere -= open->length;
  }
  return nullptr;
}

void Link::copyTail(TimePoint now) {
  for (;;) {
    InFlight* last = nullptr;
    int slow = -1;
    double late = 0;
    for (int rail = 0; rail < options_.rails; ++rail) {
      double seconds = 0;
      InFlight* const tail = tailOf(rail, seconds);
      if (tail == nullptr || seconds <= late) continue;
      last = tail;
      slow = rail;
      late = seconds;
    }
    if (last == nullptr) return;
    int fast = -1;
    double soonest = std::numeric_limits<double>::infinity();
    for (int rail = 0; rail < options_.rails; ++rail) {
      const Rail& state = rails_[rail];
      if (rail == slow || state.phase != Phase::kUp || state.lateWrites) continue;
      if (!hasRoom(rail, chunkBytes(last->chunk.message))) continue;
      const double done = secondsUntil(rail, last->length);
      if (done >= soonest) continue;
      fast = rail;
      soonest = done;
    }
    if (fast < 0 || kTailAdvantage * soonest + toSeconds(kTailSlack) > late) return;
    last->copied = true;
    sends_.at(last->chunk.message).copied += last->length;
    tailCredit_ -= last->length;
    submit(fast, last->chunk, /*copied=*/true, now);
  }
}

/// After a datagram: what it has acknowledged on all rails is known, so that none is judged by what
/// the others did before.
void Link::compareRates(TimePoint now) {
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    if (state.phase != Phase::kUp || !state.degradation.watched()) continue;
    double fastest = 0;
    for (int other = 0; other < options_.rails; ++other) {
      const Rail& beside = rails_[other];
      const bool known = other != rail && beside.phase == Phase::kUp &&
                         beside.rate.measured() != TimePoint{} &&
                         now - beside.rate.measured() < kRateIsRemembered;
      if (!known) continue;
      fastest =
          std::max(fastest, beside.degradation.unmeasured() ? beside.rate.bytesPerSecond()
                                                            : beside.degradation.rate(heardFor_));
    }
    const bool whole = state.suspected && prober_.answeredInARow(rail) > 0 &&
                       prober_.answeredNewest(rail) && !prober_.lostRounds(rail) &&
                       !traffic_[rail].interrupted();
    const Degradation::Moment moment{
        .heard = heardFor_,
        .reference = fastest,
        .granule = AcknowledgementPacing::kChunksTogether * options_.chunkBytes,
        .idle = state.inFlightBytes == 0,
        .silenceProves = whole};
    if (state.degradation.observe(moment)) tellDegradation(rail, now);
  }
}

void Link::tellDegradation(int rail, TimePoint now) {
  const Degradation& degradation = rails_[rail].degradation;
  counters_.degradations += degradation.degraded() ? 1 : 0;
  io_.railDegraded({.rail = rail,
                    .degraded = degradation.degraded(),
                    .share = degradation.share(),
                    .when = now});
}

/// Fenced: what comes up again is another connection.
void Link::endDegradation(int rail, TimePoint now) {
  const bool told = std::exchange(rails_[rail].degradation, {}).degraded();
  if (told) tellDegradation(rail, now);
}

}  // namespace faultline::channel
