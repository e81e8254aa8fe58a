#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "resilient_ccl/channel/link.h"

// Hot repair and failback: what happens to a rail that fails, and how it comes back.

namespace faultline::channel {

void Link::start(TimePoint now) {
  if (failed_ || started_ || !options_.resilient) return;
  started_ = true;
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    if (state.epoch > 0) continue;
    if (state.phase == Phase::kOpening) io_.cancelOpen(rail);
    railDown(rail, now);
    state.mayReturn = now;  // nothing has flapped
    reportMissing(rail, now);
  }
}

/// Nothing was outstanding on it: the failover is over when it begins.
void Link::reportMissing(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  const bool toldOfPort = state.lastCause == Cause::kRemoteNic;
  const bool ownPort = !state.portUp || io_.portLost(rail);
  if (!toldOfPort) state.lastCause = ownPort ? Cause::kLocalNic : Cause::kPath;
  ++counters_.failovers;
  state.latestFailover = nextFailover_++;
  if (ownPort) {
    sendRailRecord(RecordType::kRailFailed, rail, state.epoch, {}, {.cause = Cause::kLocalNic});
  }
  Failover record;
  record.rail = rail;
  record.cause = state.lastCause;
  record.where = whereOf(record.cause);
  record.told = toldOfPort;
  record.detected = record.fenced = record.redelivered = now;
  io_.railLost(record);
  io_.failedOver(record);
}

void Link::onRailOpened(int rail, std::uint32_t epoch, TimePoint now) {
  if (failed_) return;
  Rail& state = rails_[rail];
  assert((state.phase == Phase::kDown || state.phase == Phase::kOpening) &&
         epoch == state.epoch + 1);
  state.phase = Phase::kUp;
  state.epoch = epoch;
  state.nextSequence = 0;
  state.acknowledged = {};
  state.received = {};
  state.rate = RateEstimate(guessRate());
  state.full = {};
  state.patience = {};
  state.lateWrites = io_.lateWrites(rail);
  state.suspected = state.struckWhileOpening = state.framesLost = false;
  state.upSince = now;
  beginProofs(rail, now);
  if (noRailSince_ != TimePoint::max()) delivery_.returned(noRailSince_, now);
  noRailSince_ = TimePoint::max();
  if (epoch > 1 || started_) {
    ++counters_.failbacks;
    io_.failedBack(rail, now);
  }
  pinQueues();
  pump(now);
}

void Link::onOpenFailed(int rail, std::uint32_t epoch, TimePoint now) {
  Rail& state = rails_[rail];
  if (failed_ || state.phase != Phase::kOpening || epoch != state.epoch + 1) return;
  railDown(rail, now);
}

void Link::connect(int rail) {
  Rail& state = rails_[rail];
  state.phase = Phase::kOpening;
  io_.openRail(rail, state.epoch + 1, ++state.attempts);
}

bool Link::onHello(int rail, std::uint32_t epoch, std::uint32_t attempt, TimePoint now) {
  Rail& state = rails_[rail];
  if (failed_ || identity_.connects || attempt <= state.attempts) return false;
  const bool lostThere = state.phase == Phase::kUp && epoch == state.epoch;
  if (lostThere) onRailFailed(rail, Cause::kRail, now);
  if (state.phase != Phase::kDown || !state.portUp || epoch != state.epoch + 1) return false;
  state.attempts = attempt;
  return true;
}

void Link::railDown(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  // An attempt to open that has failed is a failure, too; a fence has had its own.
  if (state.phase != Phase::kFencing) {
    state.failedAt = now;
    prober_.acquit(rail);
    state.mayReturn = now + state.holdOff;
  }
  state.phase = Phase::kDown;
}

void Link::onPort(int rail, bool up, TimePoint now) {
  Rail& state = rails_[rail];
  if (failed_ || !options_.resilient || state.portUp == up) return;
  state.portUp = up;
  if (up) {
    prober_.acquit(rail);
    askSoon(rail, now);
  } else {
    blamePort(rail, Cause::kLocalNic, now);
    onRailFailed(rail, Cause::kLocalNic, now);
  }
}

/// A port of this rail is down. If its path died shortly before, that was why, and only the word
/// comes late.
void Link::blamePort(int rail, Cause cause, TimePoint now) {
  Rail& state = rails_[rail];
  const bool since = now - state.failedAt <= kLatestPortEvent && prober_.answeredInARow(rail) == 0;
  const bool gone = state.phase == Phase::kFencing || state.phase == Phase::kDown;
  if (state.lastCause != Cause::kPath || !gone || !since) return;
  state.lastCause = cause;
  if (const auto found = failovers_.find(state.latestFailover); found != failovers_.end()) {
    Failover& record = found->second.record;
    record.cause = cause;
    record.where = whereOf(cause);
    record.deadDirection = DeadDirection::kUnknown;
    record.told = cause == Cause::kRemoteNic;
  } else {
    io_.causeFound(rail, cause);
  }
  if (cause == Cause::kLocalNic) {
    sendRailRecord(RecordType::kRailFailed, rail, state.epoch, {}, {.cause = cause});
  }
}

void Link::onRailFailed(int rail, Cause cause, TimePoint now) {
  if (failed_) return;
  Rail& state = rails_[rail];
  if (state.phase == Phase::kOpening) {
    io_.cancelOpen(rail);
    state.struckWhileOpening = cause != Cause::kRail;
    railDown(rail, now);
  }
  if (state.phase == Phase::kUp) beginFence(rail, {.cause = cause}, now);
}

/// It comes back when full datagrams do, or after the longest hold-off.
void Link::losesFramesUntilProved(int rail, Bytes frame, TimePoint now) {
  Rail& state = rails_[rail];
  tellLostFrames(rail, frame);
  state.framesLost = true;
  state.frame = frame;
  state.frames.begin(now);
}

/// It failed again soon after its return.
void Link::holdOffLonger(Rail& state) const {
  state.holdOff = std::min(state.holdOff * options_.holdOffGrowth, options_.longestHoldOff);
}

void Link::beginFence(int rail, Failure failure, TimePoint now) {
  Rail& state = rails_[rail];
  if (failure.cause == Cause::kPath && io_.portLost(rail)) {
    failure.cause = Cause::kLocalNic;
    failure.direction = DeadDirection::kUnknown;
  }
  state.lastCause = failure.cause;
  if (!options_.resilient) {
    fail(errorf(Code::kUnavailable, "rail {} to {} failed ({}), and resilience is off", rail,
                identity_.name, causeName(failure.cause)));
    return;
  }
  ++counters_.failovers;
  state.phase = Phase::kFencing;
  state.localFenced = state.remoteFenced = false;
  state.suspected = false;
  state.failedAt = now;
  if (failure.frame > 0) losesFramesUntilProved(rail, failure.frame, now);
  // A rail that failed again soon after its return flaps: it is held off longer each time.
  const bool flapping = state.epoch > 1 && now - state.upSince < options_.holdOffMemory;
  if (flapping) {
    holdOffLonger(state);
  } else {
    state.holdOff = options_.holdOff;
  }
  // The path of a stalled transport answers: nothing is to be waited for, the first time.
  const bool atOnce = failure.stalled && !flapping && !state.framesLost;
  state.mayReturn = atOnce ? now : now + state.holdOff;
  if (!failure.stalled) prober_.acquit(rail);
  if (liveRails() == 0) noRailSince_ = now;
  if (liveRails() == 0 && failure.cause == Cause::kRail && !failure.told) doubt(now);

  state.failover = state.latestFailover = nextFailover_++;
  Failover& record = failovers_[state.failover].record;
  record.rail = rail;
  record.cause = failure.cause;
  record.where = whereOf(failure.cause);
  record.deadDirection = failure.direction;
  record.stalled = failure.stalled;
  record.frame = failure.frame;
  record.told = failure.told;
  record.detected = now;
  io_.railLost(record);
  endDegradation(rail, now);

  // What has not been handed to the rail need not wait for the fence.
  pinQueues();
  sendRailRecord(RecordType::kRailFailed, rail, state.epoch, {}, failure);
  io_.fenceRail(rail);
}

void Link::onRailFenced(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  if (failed_ || state.phase != Phase::kFencing || state.localFenced) return;
  state.localFenced = true;
  state.placing.reset();
  const Failover& record = failovers_.at(state.failover).record;
  sendRailRecord(RecordType::kRailFenced, rail, state.epoch, state.received,
                 {.cause = record.cause,
                  .direction = record.deadDirection,
                  .stalled = record.stalled,
                  .frame = record.frame});
  maybeFinishFence(rail, now);
}

void Link::peerGaveUp(const RailRecord& record, bool fenced, TimePoint now) {
  if (record.rail >= rails_.size()) return;
  const int rail = static_cast<int>(record.rail);
  Rail& state = rails_[rail];
  const auto cause = static_cast<Cause>(record.cause);
  const Failure told{.cause = mirrored(cause),
                     .direction = mirrored(static_cast<DeadDirection>(record.deadDirection)),
                     .told = true,
                     .stalled = record.stalled != 0,
                     .frame = std::min<Bytes>(record.frame, kLongestFrame)};
  if (record.epoch == state.epoch + 1 &&
      (state.phase == Phase::kDown || state.phase == Phase::kOpening)) {
    // The peer had the connection of the next epoch and lost it before this end had it: nothing
    // was sent or received on it here.
    if (state.phase == Phase::kOpening) io_.cancelOpen(rail);
    state.epoch = record.epoch;
    // Not after an attempt to connect that took too long: nothing has flapped.
    const bool struck = std::exchange(state.struckWhileOpening, false) || cause != Cause::kRail;
    if (record.epoch > 1 && struck) holdOffLonger(state);
    railDown(rail, now);
    sendRailRecord(RecordType::kRailFenced, rail, record.epoch, {}, told);
    return;
  }
  // Late word about an earlier epoch.
  if (record.epoch != state.epoch) return;
  if (awaited(state)) {  // for `start` to say
    if (told.cause == Cause::kRemoteNic) state.lastCause = told.cause;
    return;
  }
  if (state.phase == Phase::kUp) beginFence(rail, told, now);
  if (failed_) return;
  if (told.cause == Cause::kRemoteNic) blamePort(rail, told.cause, now);
  if (state.phase != Phase::kFencing) return;
  Failover& own = failovers_.at(state.failover).record;
  if (own.cause == Cause::kRail && told.cause != Cause::kRail) {
    // The reset was the other end's fence, and has overtaken its word.
    own.cause = state.lastCause = told.cause;
    own.where = whereOf(told.cause);
    own.told = true;
    own.stalled = told.stalled;
  }
  if (own.cause == Cause::kRail && own.frame == 0 && told.frame > 0) {
    own.frame = told.frame;
    losesFramesUntilProved(rail, told.frame, now);
  }
  if (own.cause == Cause::kPath && own.deadDirection == DeadDirection::kUnknown) {
    own.deadDirection = told.direction;
  }
  if (!fenced) return;
  state.remoteFenced = true;
  state.remoteHeld = record.held;
  maybeFinishFence(rail, now);
}

void Link::maybeFinishFence(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  if (!state.localFenced || !state.remoteFenced) return;
  railDown(rail, now);
  const int index = std::exchange(state.failover, -1);
  OpenFailover& failover = failovers_.at(index);
  failover.repairing = false;
  failover.record.fenced = now;
  failover.watching = !begun_.empty();

  std::deque<InFlight> outstanding = std::exchange(state.inFlight, {});
  for (const InFlight& open : outstanding) {
    const Bytes arrived = state.remoteHeld.has(open.sequence) ? open.length : 0;
    if (open.settled && !open.withdrawn) failover.record.duplicateBytes += arrived;
    if (open.secondOf >= 0) secondEnded(open.secondOf, arrived, now);
  }
  std::erase_if(outstanding, [](const InFlight& open) { return open.settled; });
  state.inFlightBytes = 0;
  loadMeter_.update(outstandingBytes(), 0, now);
  failover.record.sending = !outstanding.empty();
  failover.record.receiving = failover.watching;
  const int partner = liveRailFrom(rail);
  std::deque<ChunkRef>& queue = queueOf(partner < 0 ? rail : partner);
  std::vector<ChunkRef> dropped;  // their messages are withdrawn
  // Newest first to the front of the queue, so that the oldest is resent first.
  for (auto open = outstanding.rbegin(); open != outstanding.rend(); ++open) {
    if (state.remoteHeld.has(open->sequence)) continue;
    ChunkRef chunk = open->chunk;
    if (chunk.failover >= 0) failover.inherited.push_back(chunk.failover);
    chunk.failover = index;
    ++failover.chunksLeft;
    if (InFlight* const twin = open->copied ? twinOf(rail, open->chunk).second : nullptr) {
      twin->chunk.failover = index;  // on its way over another rail already
      twin->copied = false;
      continue;
    }
    if (SendMessage& message = sends_.at(chunk.message); !message.ended.ok()) {
      message.cut = true;
      dropped.push_back(chunk);
      continue;
    }
    failover.record.resentBytes += open->length;
    queue.push_front(chunk);
  }
  for (const InFlight& open : outstanding) {
    if (!state.remoteHeld.has(open.sequence)) continue;
    InFlight* const twin = open.copied ? twinOf(rail, open.chunk).second : nullptr;
    settle(rail, open, now);
    if (twin == nullptr || twin->length == 0) continue;
    twin->secondOf = index;
    ++failover.secondsLeft;
  }
  for (const ChunkRef& chunk : dropped) chunkDone(chunk, now);
  maybeFinishFailover(index, now);
  pump(now);
}

/// After a rail has come or gone: everything that waits goes to the rail that it belongs to now.
/// What is sent again first, then the oldest messages: the receiver waits for those.
void Link::pinQueues() {
  if (options_.policy == Policy::kPull) return;
  std::vector<ChunkRef> waiting;
  for (std::deque<ChunkRef>& queue : queues_) {
    waiting.insert(waiting.end(), queue.begin(), queue.end());
    queue.clear();
  }
  std::stable_sort(waiting.begin(), waiting.end());
  for (const ChunkRef& chunk : waiting) {
    const int home = homeRail(chunk.message, chunk.offset / chunkBytes(chunk.message));
    const int live = liveRailFrom(home);
    queues_[live < 0 ? home : live].push_back(chunk);
  }
}

void Link::chunkRedelivered(int failover, TimePoint now) {
  const auto found = failovers_.find(failover);
  if (found == failovers_.end()) return;
  --found->second.chunksLeft;
  maybeFinishFailover(failover, now);
}

/// A copy of what a failed rail had delivered has arrived over another one, too, or never will.
void Link::secondEnded(int failover, Bytes arrived, TimePoint now) {
  const auto found = failovers_.find(failover);
  if (found == failovers_.end()) return;
  found->second.record.duplicateBytes += arrived;
  --found->second.secondsLeft;
  maybeFinishFailover(failover, now);
}

void Link::maybeFinishFailover(int index, TimePoint now) {
  const auto found = failovers_.find(index);
  if (found == failovers_.end()) return;
  OpenFailover& failover = found->second;
  if (failover.chunksLeft > 0 || failover.repairing) return;
  if (failover.record.redelivered == TimePoint{}) failover.record.redelivered = now;
  if (failover.watching) return;
  if (failover.secondsLeft > 0) return;
  if (failover.record.cause == Cause::kPath &&
      failover.record.deadDirection == DeadDirection::kUnknown) {
    failover.record.deadDirection = prober_.deadDirection(failover.record.rail);
  }
  const OpenFailover done = std::move(failover);
  failovers_.erase(found);
  io_.failedOver(done.record);
  for (const int older : done.inherited) chunkRedelivered(older, now);
}

void Link::considerReturn(int rail, TimePoint now) {
  Rail& state = rails_[rail];
  if (state.phase != Phase::kDown || !identity_.connects || !state.portUp) return;
  const bool healed =
      answering(rail, now) && prober_.answeredInARow(rail) >= options_.answersToReturn;
  if (options_.resilient && !awaited(state) && !healed) return;
  // A rail that flaps, or takes short messages only, is better than none.
  const bool needed = healed && liveRails() == 0;
  if ((now < state.mayReturn || !carriesFrames(state, now)) && !needed) return;
  connect(rail);
}

void Link::heard(TimePoint now) {
  if (now - lastHeard_ > silence()) heardSince_ = now;
  heardFor_ += std::min(now - lastHeard_, kHeardBefore);
  lastHeard_ = now;
}

/// How long ago that was, as far as the peer was heard all the time. One that is silent is named by
/// its silence, and the time in which it was says nothing of its rails.
Duration Link::heardSince(TimePoint since, TimePoint now) const {
  if (now - lastHeard_ > silence()) return Duration::zero();
  return now - std::max(since, heardSince_);
}

/// The same, as far as there was something to do without a pause.
Duration Link::waited(TimePoint since, TimePoint now) const {
  return heardSince(std::max(since, busySince_), now);
}

}  // namespace faultline::channel
