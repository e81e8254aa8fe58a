#include "resilient_ccl/channel/link.h"

#include <algorithm>
#include <cassert>

#include "resilient_ccl/channel/partners.h"

// Messages and chunks. Repair is in link_repair.cc, datagrams and probes in link_control.cc.

namespace faultline::channel {

LinkCounters& LinkCounters::operator+=(const LinkCounters& other) {
  chunksSent += other.chunksSent;
  chunksArrived += other.chunksArrived;
  chunksResent += other.chunksResent;
  chunksDuplicate += other.chunksDuplicate;
  bytesSent += other.bytesSent;
  bytesArrived += other.bytesArrived;
  bytesResent += other.bytesResent;
  bytesDuplicate += other.bytesDuplicate;
  chunksCopied += other.chunksCopied;
  bytesCopied += other.bytesCopied;
  failovers += other.failovers;
  failbacks += other.failbacks;
  suspicions += other.suspicions;
  stalls += other.stalls;
  degradations += other.degradations;
  probesSent += other.probesSent;
  datagramsSent += other.datagramsSent;
  longestReceiveStall = std::max(longestReceiveStall, other.longestReceiveStall);
  return *this;
}

Link::Link(Identity identity, const LinkOptions& options, LinkIo& io, TimePoint now)
    : identity_(std::move(identity)),
      options_(options),
      cut_(options.cut()),
      io_(io),
      loadMeter_(2 * options.chunkBytes),
      rails_(options.rails),
      queues_(options.rails),
      acknowledgements_(options.rails),
      tailCredit_(options.tailBudget),
      prober_(options.rails + 1),
      proofs_(options.rails + 1),
      traffic_(options.rails + 1),
      lastHeard_(now),
      heardSince_(now),
      busySince_(now),
      lastTick_(now),
      noRailSince_(now) {
  if (options_.partners.empty()) options_.partners = partnersByNumber(options_.rails);
  for (int rail = 0; rail < options_.rails; ++rail) {
    rails_[rail].holdOff = options_.holdOff;
    if (!identity_.connects) continue;
    connect(rail);
  }
}

Bytes Link::chunkLength(const SendMessage& message, std::uint64_t offset) const {
  return std::min(static_cast<Bytes>(cut_.chunkBytes(message.length)),
                  message.length - static_cast<Bytes>(offset));
}

int Link::homeRail(std::uint64_t message, std::uint64_t chunk) const {
  const int firstChoice = sends_.at(message).firstChoice;
  if (firstChoice != kAnyRail) return firstChoice;
  return static_cast<int>((message + chunk) % rails_.size());
}

int Link::liveRailFrom(int rail) const {
  if (rails_[rail].phase == Phase::kUp) return rail;
  for (const int partner : options_.partners[rail]) {
    if (rails_[partner].phase == Phase::kUp) return partner;
  }
  return -1;
}

int Link::liveRails() const {
  return static_cast<int>(std::ranges::count(rails_, Phase::kUp, &Rail::phase));
}

std::deque<Link::ChunkRef>& Link::queueOf(int rail) {
  return queues_[options_.policy == Policy::kPull ? 0 : rail];
}

void Link::postSend(const MessageKey& key, const std::byte* data, Bytes length, std::uint64_t token,
                    TimePoint now, int firstChoice) {
  if (failed_) return;
  if (const auto ended = sendStreams_.find(streamOf(key)); ended != sendStreams_.end()) {
    io_.sendFailed(token, ended->second.why);
    return;
  }
  if (!busy()) busySince_ = now;
  const std::uint64_t id = nextMessage_++;
  SendMessage& message = sends_[id];
  message = {.key = key,
             .data = data,
             .length = length,
             .token = token,
             .firstChoice = firstChoice,
             .chunksLeft = cut_.chunkCount(length),
             .slot = 0,
             .region = {},
             .ended = {}};
  if (const auto grant = grants_.find(key); grant != grants_.end()) {
    const GrantRecord record = grant->second;
    grants_.erase(grant);
    enqueueMessage(id, message, record, now);
    pump(now);
  } else {
    awaitingGrant_[key] = id;
  }
}

std::uint32_t Link::postReceive(const MessageKey& key, std::byte* region, Bytes capacity,
                                const RemoteRegion& remote, std::uint64_t token, TimePoint now,
                                bool eager) {
  if (failed_) return transport::kNoSlot;
  if (const auto ended = receiveStreams_.find(streamOf(key)); ended != receiveStreams_.end()) {
    io_.receiveFailed(token, ended->second.why);
    return transport::kNoSlot;
  }
  if (!eager && !busy()) busySince_ = now;
  const std::uint32_t id = freeSlot();
  Slot& slot = slots_[id];
  slot.key = key;
  slot.region = region;
  slot.capacity = capacity;
  slot.token = token;
  slot.eager = slot.unexpected = eager;
  if (eager) ++unexpected_;
  const GrantRecord record{.key = key,
                           .capacity = static_cast<std::uint64_t>(capacity),
                           .address = remote.address,
                           .regionKey = remote.key,
                           .slot = id,
                           .eager = eager ? 1U : 0U};
  grant(record, now);
  return id;
}

void Link::expect(std::uint32_t slot, TimePoint now) {
  const auto found = slots_.find(slot);
  if (found == slots_.end() || !found->second.unexpected) return;
  if (!busy()) busySince_ = now;
  found->second.unexpected = false;
  --unexpected_;
}

/// Numbers begin again after so many receives, and an eager one may keep its own for ever.
std::uint32_t Link::freeSlot() {
  std::uint32_t slot = nextSlot_;
  while (slots_.contains(slot)) slot = (slot + 1) % options_.slotNumbers;
  nextSlot_ = (slot + 1) % options_.slotNumbers;
  return slot;
}

void Link::forgetSlot(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found->second.unexpected) --unexpected_;
  slots_.erase(found);
}

void Link::enqueueMessage(std::uint64_t id, SendMessage& message, const GrantRecord& grant,
                          TimePoint now) {
  if (static_cast<std::uint64_t>(message.length) > grant.capacity) {
    if (grant.eager == 0) return sendTooLong(id, grant);
    tellTooLong(message, grant);
    awaitingGrant_[grant.key] = id;
    return;
  }
  delivery_.begin(now);
  message.slot = grant.slot;
  message.region = {grant.address, grant.regionKey};
  if (isSmall(static_cast<std::uint64_t>(message.length))) {
    message.copy.assign(message.data, message.data + message.length);
    message.data = message.copy.data();
    message.told = true;
    io_.sendDone(message.token);
  }
  const std::uint64_t chunks = message.chunksLeft, length = cut_.chunkBytes(message.length);
  queued_.clear();
  for (const std::deque<ChunkRef>& queue : queues_) queued_.push_back(queue.size());
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const int home = homeRail(id, chunk);
    const int live = liveRailFrom(home);
    queueOf(live < 0 ? home : live).push_back({id, chunk * length, -1});
  }
  // Last, unless its grant was late: the receiver waits for the oldest messages.
  for (std::size_t index = 0; index < queues_.size(); ++index) {
    std::deque<ChunkRef>& queue = queues_[index];
    const auto added = queue.begin() + static_cast<std::ptrdiff_t>(queued_[index]);
    if (added == queue.end()) continue;
    std::rotate(std::upper_bound(queue.begin(), added, *added), added, queue.end());
  }
}

void Link::pump(TimePoint now) {
  fill(now);
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    if (state.phase != Phase::kUp) continue;
    const bool full = 2 * state.inFlightBytes >= windowFor(rail, options_.chunkBytes);
    const std::optional<double> rate =
        state.full.observe(full, state.rate.bytesPerSecond(), state.rate.measured(), now);
    if (rate) io_.tellRate(rail, *rate);
  }
}

void Link::fill(TimePoint now) {
  if (options_.policy == Policy::kPull) {
    pull(now);
    return;
  }
  for (int rail = 0; rail < options_.rails; ++rail) {
    std::deque<ChunkRef>& queue = queues_[rail];
    while (rails_[rail].phase == Phase::kUp && !queue.empty() &&
           hasRoom(rail, chunkBytes(queue.front().message))) {
      const ChunkRef chunk = queue.front();
      queue.pop_front();
      submit(rail, chunk, /*copied=*/false, now);
    }
  }
}

void Link::submit(int rail, const ChunkRef& chunk, bool copied, TimePoint now) {
  Rail& state = rails_[rail];
  const SendMessage& message = sends_.at(chunk.message);
  const Bytes length = chunkLength(message, chunk.offset);
  const ChunkHeader header{.sequence = state.nextSequence++,
                           .offset = chunk.offset,
                           .messageLength = static_cast<std::uint64_t>(message.length),
                           .slot = message.slot,
                           .length = static_cast<std::uint32_t>(length)};
  if (state.inFlight.empty()) {
    state.lastProgress = now;
    traffic_[rail].forgetGaps();
    state.rate.begin(now);
  }
  if (state.inFlightBytes == 0) state.degradation.begin(heardFor_);
  state.inFlight.push_back({header.sequence, header.length, chunk, copied,
                            /*settled=*/false,
                            /*second=*/copied});
  state.inFlightBytes += length;
  loadMeter_.update(outstandingBytes(), 0, now);
  ++counters_.chunksSent;
  counters_.bytesSent += length;
  state.bytesSent += length;
  if (copied) {
    ++counters_.chunksCopied;
    counters_.bytesCopied += length;
  } else if (chunk.failover >= 0) {
    ++counters_.chunksResent;
    counters_.bytesResent += length;
  }
  io_.submit(rail, header, message.data + chunk.offset, message.region);
}

bool Link::delivered() const {
  return failed_ || std::ranges::none_of(sends_, [](const auto& send) { return send.second.told; });
}

void Link::acknowledge(int rail, const Receipt& receipt, TimePoint now) {
  Rail& state = rails_[rail];
  if (receipt == state.acknowledged || !receipt.covers(state.acknowledged)) return;
  if (receipt.base > state.nextSequence) return;  // a lie: nothing of that was sent
  state.acknowledged = receipt;
  state.patience.heardAfter(now - state.lastProgress, options_.suspectAfter);
  state.lastProgress = now;
  if (state.suspected) {
    state.suspected = false;
    if (prober_.lostRounds(rail) || traffic_[rail].interrupted())
      state.degradation.forgive(heardFor_);
    prober_.acquit(rail);
  }
  traffic_[rail].forgetGaps();
  const Bytes before = state.inFlightBytes;
  std::erase_if(state.inFlight, [&](const InFlight& open) {
    if (!receipt.has(open.sequence)) return false;
    state.inFlightBytes -= open.length;
    settle(rail, open, now);
    if (open.secondOf >= 0) secondEnded(open.secondOf, open.length, now);
    return true;
  });
  state.rate.acknowledged(before - state.inFlightBytes, now);
  state.degradation.delivered(before - state.inFlightBytes);
  tailCredit_ =
      std::min(tailCredit_ + (before - state.inFlightBytes) / kTailShare, options_.tailBudget);
  loadMeter_.update(outstandingBytes(), before - state.inFlightBytes, now);
}

Bytes Link::outstandingBytes() const {
  Bytes sum = 0;
  for (const Rail& rail : rails_) sum += rail.inFlightBytes;
  return sum;
}

LinkLoad Link::load(TimePoint now) const {
  LinkLoad load = loadMeter_.at(now);
  load.arrived = counters_.bytesArrived;
  load.receiving = !begun_.empty();
  for (int rail = 0; rail < options_.rails; ++rail) {
    if (railUp(rail)) load.railsUp |= std::uint64_t{1} << rail;
  }
  load.heard = lastHeard_;
  return load;
}

std::pair<int, Link::InFlight*> Link::twinOf(int rail, const ChunkRef& chunk) {
  for (int other = 0; other < options_.rails; ++other) {
    if (other == rail) continue;
    for (InFlight& open : rails_[other].inFlight) {
      if (!open.settled && open.chunk.message == chunk.message &&
          open.chunk.offset == chunk.offset) {
        return {other, &open};
      }
    }
  }
  return {-1, nullptr};
}

void Link::settle(int rail, const InFlight& open, TimePoint now) {
  if (open.settled) return;
  if (open.copied) {
    // The user may get the message back now: the other rail must not read it any more.
    if (const auto [other, twin] = twinOf(rail, open.chunk); twin != nullptr) {
      if (!open.second) payForUselessCopy(open.length);
      twin->settled = true;
      if (io_.detach(other, twin->sequence)) {
        rails_[other].inFlightBytes -= twin->length;
        twin->length = 0;
      }
    }
  }
  chunkDelivered(open.chunk, now);
}

void Link::chunkDelivered(const ChunkRef& chunk, TimePoint now) {
  delivery_.delivered(now);
  chunkDone(chunk, now);
}

void Link::chunkDone(const ChunkRef& chunk, TimePoint now) {
  if (chunk.failover >= 0) chunkRedelivered(chunk.failover, now);
  const auto found = sends_.find(chunk.message);
  assert(found != sends_.end());
  if (--found->second.chunksLeft > 0) return;
  delivery_.end();
  finishSend(chunk.message);
}

bool Link::fits(const Slot& slot, const ChunkHeader& header) const {
  return transport::fits(header, slot.capacity, slot.length, cut_);
}

AcknowledgementPacing::Chunk Link::pace(std::uint64_t messageLength) const {
  if (isSmall(messageLength)) return AcknowledgementPacing::Chunk::kSmall;
  const bool late = options_.smallMessage > 0 && isShort(messageLength);
  return late ? AcknowledgementPacing::Chunk::kLate : AcknowledgementPacing::Chunk::kUsual;
}

void Link::begin(Slot& slot, const ChunkHeader& header, TimePoint now) {
  if (slot.length >= 0) return;
  // An older one is the first from now on; what has been waited for the former first goes on.
  if (begun_.empty()) firstWaitsSince_ = now;
  begun_.insert(header.slot);
  grantTaken(slot, isShort(header.messageLength));
  slot.length = static_cast<Bytes>(header.messageLength);
  slot.chunksLeft = cut_.chunkCount(header.messageLength);
  slot.arrived.assign(slot.chunksLeft, false);
}

/// Something of a begun receive has come. Only the first one waits: the others get theirs when it
/// has got all there is.
void Link::received(std::uint32_t slot, TimePoint now) {
  if (*begun_.begin() != slot) return;
  const Duration waited = now - std::exchange(firstWaitsSince_, now);
  counters_.longestReceiveStall = std::max(counters_.longestReceiveStall, waited);
  firstReceiveMoved(waited, now);
}

void Link::firstReceiveMoved(Duration waited, TimePoint now) {
  for (auto next = failovers_.begin(); next != failovers_.end();) {
    auto& [index, failover] = *next;
    const int seen = index;
    if (std::exchange(failover.watching, false)) {
      failover.record.receiveStall = waited;
      maybeFinishFailover(seen, now);  // and with it those that it has inherited chunks from
    }
    next = failovers_.upper_bound(seen);
  }
}

int Link::writerOf(const Place& place) const {
  for (int rail = 0; rail < options_.rails; ++rail) {
    const std::optional<Placing>& placing = rails_[rail].placing;
    if (placing && placing->place == place && !placing->staged) return rail;
  }
  return -1;
}

Result<std::byte*> Link::place(int rail, const ChunkHeader& header, TimePoint now) {
  Rail& state = rails_[rail];
  if (!state.received.reaches(header.sequence) || state.received.has(header.sequence)) {
    return errorf(Code::kInvalidArgument, "chunk {} out of sequence on rail {} of {}",
                  header.sequence, rail, identity_.name);
  }
  const auto found = slots_.find(header.slot);
  if (found == slots_.end()) return nullptr;  // done already: a repetition
  Slot& slot = found->second;
  if (!slot.ended.ok()) return nullptr;
  if (!fits(slot, header)) {
    return errorf(Code::kInvalidArgument,
                  "chunk of {} bytes at {} of {} does not fit slot {} ({} bytes) from {}",
                  header.length, header.offset, header.messageLength, header.slot, slot.capacity,
                  identity_.name);
  }
  begin(slot, header, now);
  const std::uint64_t chunk = cut_.number(header.messageLength, header.offset);
  if (slot.arrived[chunk]) return nullptr;
  // One writer for each place: the message could complete while another one still writes.
  const Place target(header.slot, chunk);
  const bool staged = writerOf(target) >= 0;
  state.placing = Placing{target, staged};
  if (!staged) return slot.region + header.offset;
  state.staging.resize(options_.chunkBytes);
  return state.staging.data();
}

void Link::onChunkArrived(int rail, const ChunkHeader& header, TimePoint now) {
  Rail& state = rails_[rail];
  const bool open =
      state.phase == Phase::kUp || (state.phase == Phase::kFencing && !state.localFenced);
  if (failed_ || !open) return;
  const bool staged = state.placing && state.placing->staged;
  state.placing.reset();
  heard(now);
  const AcknowledgementPacing::Chunk pace = this->pace(header.messageLength);
  acknowledgements_.chunk(rail, pace, now);
  auto found = slots_.find(header.slot);
  if (found != slots_.end() && !found->second.ended.ok()) found = slots_.end();
  // Rails with late writes have not asked for a place.
  const bool sane = state.received.reaches(header.sequence) &&
                    (found == slots_.end() || fits(found->second, header));
  if (!sane) {
    onRailFailed(rail, Cause::kProtocol, now);
    return;
  }
  const bool isNew = state.received.add(header.sequence);
  if (header.slot == transport::kNoSlot) return;  // withdrawn
  if (found != slots_.end()) begin(found->second, header, now);
  const std::uint64_t chunk = cut_.number(header.messageLength, header.offset);
  if (!isNew || found == slots_.end() || found->second.arrived[chunk]) {
    ++counters_.chunksDuplicate;
    counters_.bytesDuplicate += header.length;
    return;
  }
  Slot& slot = found->second;
  if (const int writer = writerOf({header.slot, chunk}); writer >= 0) {
    io_.divert(writer);  // or it would still write when the message has been handed over
    rails_[writer].placing.reset();
  }
  if (staged) std::copy_n(state.staging.data(), header.length, slot.region + header.offset);
  slot.arrived[chunk] = true;
  ++counters_.chunksArrived;
  counters_.bytesArrived += header.length;
  received(header.slot, now);
  if (--slot.chunksLeft > 0) return;
  const std::uint64_t token = slot.token;
  const Bytes length = slot.length;
  begun_.erase(header.slot);
  forgetSlot(header.slot);
  if (pace == AcknowledgementPacing::Chunk::kUsual) acknowledgements_.atOnce();
  io_.receiveDone(token, length);
}

}  // namespace faultline::channel
