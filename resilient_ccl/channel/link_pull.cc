#include <algorithm>
#include <limits>

#include "resilient_ccl/channel/link.h"
#include "resilient_ccl/channel/mutant.h"

// How much a rail may have outstanding, which rail takes the next chunk, and which chunks go again
// over a faster one.

namespace faultline::channel {

Bytes Link::windowBytes(int rail) const {
  const double carried = rails_[rail].rate.bytesPerSecond() * toSeconds(options_.windowTime);
  const Bytes most = static_cast<Bytes>(Receipt::kReach + 1) * options_.chunkBytes;
  return std::min(kLeastWindow * options_.chunkBytes + static_cast<Bytes>(carried), most);
}

bool Link::hasRoom(int rail) const {
  const Rail& state = rails_[rail];
  return (state.acknowledged.reaches(state.nextSequence) || mutant(Mutant::kReachIgnored)) &&
         (state.inFlightBytes < windowBytes(rail) || mutant(Mutant::kWindowIgnored));
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

int Link::nextPuller(TimePoint now) const {
  int best = -1;
  double soonest = std::numeric_limits<double>::infinity();
  double fullRate = 0;
  Bytes fullBytes = static_cast<Bytes>(queues_[0].size()) * options_.chunkBytes;
  for (int rail = 0; rail < options_.rails; ++rail) {
    const Rail& state = rails_[rail];
    if (state.phase != Phase::kUp) continue;
    if (!hasRoom(rail)) {
      fullRate += rateOf(rail);
      fullBytes += state.inFlightBytes;
      continue;
    }
    if (state.inFlight.empty() && now - state.rate.measured() > kRateIsOld) return rail;
    const double done = secondsUntil(rail, options_.chunkBytes);
    if (best >= 0 && done >= soonest) continue;
    best = rail;
    soonest = done;
  }
  // When the full rails will have done everything before this one has done a single chunk, it would
  // only be waited for. They have chunks outstanding, so that this is asked again.
  if (fullRate > 0 && static_cast<double>(fullBytes) / fullRate < soonest) return -1;
  return best;
}

Link::InFlight* Link::tailOf(int rail, double& seconds) {
  Rail& state = rails_[rail];
  const bool fixed = state.lateWrites && !mutant(Mutant::kTailFromLateWrites);
  if (state.phase != Phase::kUp || fixed) return nullptr;
  Bytes upToHere = state.inFlightBytes;
  for (auto open = state.inFlight.rbegin(); open != state.inFlight.rend(); ++open) {
    const bool copyable =
        !open->settled && !open->copied &&
        (sends_.at(open->chunk.message).copied + open->length <= options_.tailBudget ||
         mutant(Mutant::kTailBudgetIgnored));
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
      const bool fixed = state.lateWrites && !mutant(Mutant::kTailOverLateWrites);
      if (rail == slow || state.phase != Phase::kUp || fixed || !hasRoom(rail)) continue;
      const double done = secondsUntil(rail, last->length);
      if (done >= soonest) continue;
      fast = rail;
      soonest = done;
    }
    if (fast < 0 || kTailAdvantage * soonest + toSeconds(kTailSlack) > late) return;
    last->copied = true;
    sends_.at(last->chunk.message).copied += last->length;
    submit(fast, last->chunk, /*copied=*/true, now);
  }
}

}  // namespace faultline::channel
