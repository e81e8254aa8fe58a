#include <algorithm>
#include <utility>

#include "resilient_ccl/channel/link.h"

// A rail that makes no progress is suspected, tried, and given up or acquitted.

namespace faultline::channel {

TimePoint Link::suspectAt(const Rail& rail) const {
  // What is never suspected within the budget would never be tried.
  const Duration most = std::max(options_.suspectAfter, options_.giveUp / kStuckShare);
  return rail.lastProgress + std::min(rail.patience.suspectAfter(options_.suspectAfter), most);
}

void Link::checkSuspicions(TimePoint now) {
  if (!options_.resilient) return;
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    if (state.phase != Phase::kUp || state.inFlight.empty()) continue;
    if (!state.suspected && now >= suspectAt(state)) {
      state.suspected = true;
      ++counters_.suspicions;
      prober_.acquit(rail);  // only probes from now on count
      state.trial.begin(io_.delivery(rail));
      state.frames.begin(now);
      nextRound_ = now;
      if (io_.portLost(rail)) {
        onRailFailed(rail, Cause::kLocalNic, now);
      }
    }
    if (!state.suspected) continue;
    if (prober_.convicted(rail)) {
      beginFence(rail, {.cause = Cause::kPath, .direction = prober_.deadDirection(rail)}, now);
      continue;
    }
    const bool losesLong = losesFrames(rail, now);
    if (losesLong && liveRails() > 1) {
      ++counters_.stalls;
      beginFence(rail, {.cause = Cause::kRail, .stalled = true, .frame = state.frame}, now);
      continue;
    }
    // The last rail is kept, as it takes short messages, and its fault is told all the same.
    if (losesLong) tellLostFrames(rail, state.frame);
    if (stalled(rail, now) || (liveRails() > 1 && stuck(rail, now))) {
      ++counters_.stalls;
      beginFence(rail, {.cause = Cause::kRail, .stalled = true}, now);
    }
  }
}

/// The path lost datagrams and answers probes, but the transport delivers nothing: it waits for a
/// retransmission timer, as long again as the outage at worst. A slow rail loses no datagrams and
/// goes on delivering (how long a step may take: DeliveryTrial); the machine of a stopped peer
/// acknowledges what arrives, so that nothing is outstanding.
bool Link::stalled(int rail, TimePoint now) {
  if (!prober_.lostRounds(rail) && !traffic_[rail].interrupted()) return false;
  watchDelivery(rail, now);
  if (prober_.answeredInARow(rail) < Prober::kAnswersAfterLoss) return false;
  const Rail& state = rails_[rail];
  if (!state.trial.outstanding()) {
    newTrial(rail);
    return false;
  }
  return state.trial.quiet(state.lastProgress, now);
}

/// When the transport has delivered something, only answers from now on count.
void Link::watchDelivery(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  if (!state.trial.look(io_.delivery(rail), now)) return;
  state.frames.begin(now);
  prober_.countAgain(rail);
}

void Link::newTrial(int rail) {
  prober_.acquit(rail);
  traffic_[rail].forgetGaps();
}

/// Short datagrams pass, and all of them; full ones do not, and nothing of what the transport has
/// sent, or offered to this machine's port, arrives. One that is only slow delivers both, full ones
/// before the short ones behind them.
bool Link::losesFrames(int rail, TimePoint now) const {
  const Rail& state = rails_[rail];
  if (!state.frames.convicted() || prober_.lostRounds(rail)) return false;
  return state.trial.offered() &&
         state.trial.quietFor(kRoundTripsToConvict, state.lastProgress, now);
}

/// A full datagram goes with this round, where one is to tell whether payload passes.
void Link::tryFrame(int rail, std::uint32_t round, TimePoint now) {
  Rail& state = rails_[rail];
  if (state.suspected && state.trial.frame() != 0) state.frame = state.trial.frame();
  const bool tried = state.suspected ? state.trial.offered() : state.framesLost;
  const Duration pause = state.suspected ? state.frames.pause() : returnProbeInterval(rail, now);
  if (!tried || state.frame == 0 || !state.frames.due(pause, now)) return;
  state.frames.sent(round, now);
  probes_.push_back(
      {rail, {.round = round, .trial = 0, .frame = static_cast<std::uint32_t>(state.frame)}});
}

/// Or may do so by now: frames that are shorter at the other end alone are tried by none here.
bool Link::carriesFrames(const Rail& state, TimePoint now) const {
  return !state.framesLost || state.frames.answeredInARow() >= options_.answersToReturn ||
         now - state.failedAt >= options_.longestHoldOff;
}

void Link::tellLostFrames(int rail, Bytes frame) {
  if (!std::exchange(rails_[rail].framesTold, true)) io_.framesLost(rail, frame);
}

/// Datagrams pass and payload does not, for a good part of the budget. Pauses between messages are
/// part of it: what is under way on the rail is under way in them, too.
bool Link::stuck(int rail, TimePoint now) const {
  return heardSince(rails_[rail].lastProgress, now) > options_.giveUp / kStuckShare;
}

}  // namespace faultline::channel
