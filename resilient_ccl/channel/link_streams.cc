#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "resilient_ccl/channel/link.h"

// Messages that end without being delivered: withdrawn with their stream, at either end, or longer
// than the receive that they meet. docs/channel.md, "Ends of streams".

namespace faultline::channel {
namespace {

StreamRecord recordOf(const StreamKey& stream) {
  return {.stream = stream.stream, .communicator = stream.communicator};
}

StreamKey streamOf(const StreamRecord& record) { return {record.communicator, record.stream}; }

/// The numbers of those whose key is of this stream, in their order.
template <typename Messages>
auto numbersIn(const Messages& messages, const StreamKey& stream) {
  std::vector<typename Messages::key_type> numbers;
  for (const auto& [number, message] : messages) {
    if (streamOf(message.key) == stream) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace

// --- the sending end ---

bool Link::closeSends(const StreamKey& stream, TimePoint now) {
  if (failed_) return true;
  if (!std::exchange(sendStreams_[stream].closedHere, true)) {
    endSends(stream, errorf(Code::kAborted, "the stream to {} was closed", identity_.name),
             /*atOnce=*/true, now);
    forgetStreams();
    pump(now);  // the windows have room again
  }
  const auto left = numbersIn(sends_, stream);
  return std::ranges::all_of(left, [this](std::uint64_t id) { return sends_.at(id).told; });
}

void Link::receivesClosedThere(const StreamRecord& record, std::uint64_t sequence, TimePoint now) {
  SendStream& state = sendStreams_[streamOf(record)];
  state.closedThere = true;
  state.lastRecord = sequence;
  endSends(streamOf(record),
           errorf(Code::kAborted, "{} receives nothing in this stream any more", identity_.name),
           /*atOnce=*/false, now);
}

/// `atOnce`: as far as no rail has late writes. Otherwise what is on a rail that is being fenced
/// is waited for: the peer may have all of it, and would be told of a message that failed.
void Link::endSends(const StreamKey& stream, const Status& why, bool atOnce, TimePoint now) {
  if (SendStream& state = sendStreams_[stream]; state.why.ok()) state.why = why;
  std::erase_if(grants_, [&](const auto& grant) { return streamOf(grant.first) == stream; });
  for (const std::uint64_t id : numbersIn(sends_, stream)) {
    // A small one is said to be done: it goes on, as long as the other end receives.
    const bool goesOn = sends_.at(id).told && !sendStreams_[stream].closedThere;
    if (!goesOn) withdrawSend(id, why, atOnce, now);
  }
  sendsFinished(stream);
}

void Link::withdrawSend(std::uint64_t id, const Status& why, bool atOnce, TimePoint now) {
  SendMessage& message = sends_.at(id);
  if (message.ended.ok()) message.ended = why;
  if (awaitingGrant_.erase(message.key) > 0) {
    message.cut = true;
    finishSend(id);
    return;
  }
  std::map<std::uint64_t, int> gone;  // chunks, by offset: the failovers they are resent for
  for (std::deque<ChunkRef>& queue : queues_) {
    std::erase_if(queue, [&](const ChunkRef& chunk) {
      if (chunk.message != id) return false;
      gone[chunk.offset] = chunk.failover;
      return true;
    });
  }
  std::vector<std::uint64_t> kept;
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    const bool waits = state.lateWrites || (!atOnce && state.phase == Phase::kFencing);
    for (InFlight& open : state.inFlight) {
      if (open.settled || open.chunk.message != id) continue;
      if (waits) {
        kept.push_back(open.chunk.offset);
        continue;
      }
      gone[open.chunk.offset] = open.chunk.failover;
      open.settled = open.withdrawn = true;
      if (io_.detach(rail, open.sequence)) {
        state.inFlightBytes -= open.length;
        open.length = 0;
      }
    }
  }
  for (const std::uint64_t offset : kept) gone.erase(offset);  // of a chunk and its copy
  message.cut = message.cut || !gone.empty();
  for (const auto& [offset, failover] : gone) chunkDone({id, offset, failover}, now);
}

void Link::finishSend(std::uint64_t id) {
  const auto found = sends_.find(id);
  const SendMessage message = std::move(found->second);
  sends_.erase(found);
  if (!message.told && !message.cut) io_.sendDone(message.token);
  if (!message.told && message.cut) io_.sendFailed(message.token, message.ended);
  sendsFinished(streamOf(message.key));
}

/// Says so when the last send of a stream that has ended is over.
void Link::sendsFinished(const StreamKey& stream) {
  const auto ended = sendStreams_.find(stream);
  if (ended == sendStreams_.end() || ended->second.told) return;
  if (!numbersIn(sends_, stream).empty()) return;
  ended->second.told = true;
  const StreamRecord record = recordOf(stream);
  control_.send(RecordType::kSendsEnded, bytesOf(record), /*urgent=*/false);
}

void Link::tellTooLong(const SendMessage& message, const GrantRecord& grant) {
  const TooLongRecord record{
      .key = grant.key, .length = static_cast<std::uint64_t>(message.length), .slot = grant.slot};
  control_.send(RecordType::kTooLong, bytesOf(record), /*urgent=*/false);
}

void Link::sendTooLong(std::uint64_t id, const GrantRecord& grant) {
  const SendMessage message = std::move(sends_.at(id));
  sends_.erase(id);
  tellTooLong(message, grant);
  sendsFinished(streamOf(message.key));
  io_.sendFailed(message.token, errorf(Code::kInvalidArgument,
                                       "a message of {} bytes to {} meets a receive of {} bytes",
                                       message.length, identity_.name, grant.capacity));
}

// --- the receiving end ---

bool Link::closeReceives(const StreamKey& stream, TimePoint now) {
  if (failed_) return true;
  if (!std::exchange(receiveStreams_[stream].closedHere, true)) {
    endReceives(stream, errorf(Code::kAborted, "the stream from {} was closed", identity_.name),
                now);
    forgetStreams();
  }
  return numbersIn(slots_, stream).empty();
}

void Link::sendsEndedThere(const StreamRecord& record, TimePoint now) {
  receiveStreams_[streamOf(record)].ended = true;
  endReceives(streamOf(record),
              errorf(Code::kAborted, "{} sends nothing in this stream any more", identity_.name),
              now);
}

void Link::endReceives(const StreamKey& stream, const Status& why, TimePoint now) {
  ReceiveStream& state = receiveStreams_[stream];
  if (state.why.ok()) state.why = why;
  if (!std::exchange(state.told, true)) {
    const StreamRecord record = recordOf(stream);
    control_.send(RecordType::kReceivesClosed, bytesOf(record), /*urgent=*/false);
  }
  pacing_.forget(stream);
  const bool waits = !state.ended && mayWriteLate();
  for (const std::uint32_t id : numbersIn(slots_, stream)) {
    Slot& slot = slots_.at(id);
    if (slot.ended.ok()) {
      stopReceiving(id, now);
      slot.ended = why;
    }
    if (waits) continue;
    const std::uint64_t token = slot.token;
    const Status ended = std::move(slot.ended);
    forgetSlot(id);
    io_.receiveFailed(token, ended);
  }
}

/// Whether bytes may land in a slot that no rail was given a place of: sent before the other end
/// hears that the slot is closed, and over whatever rail comes up meanwhile.
bool Link::mayWriteLate() const {
  for (int rail = 0; rail < options_.rails; ++rail) {
    if (io_.lateWrites(rail)) return true;
  }
  return false;
}

/// What comes for this slot goes into scratch memory from now on.
void Link::stopReceiving(std::uint32_t slot, TimePoint now) {
  for (int rail = 0; rail < options_.rails; ++rail) {
    std::optional<Placing>& placing = rails_[rail].placing;
    if (!placing || placing->place.first != slot) continue;
    if (!placing->staged) io_.divert(rail);
    placing.reset();
  }
  io_.closeSlot(slot);
  if (slots_.at(slot).length < 0) grantTaken(slots_.at(slot), std::nullopt);
  const bool first = !begun_.empty() && *begun_.begin() == slot;
  begun_.erase(slot);
  if (first) firstReceiveMoved(now - std::exchange(firstWaitsSince_, now), now);
}

void Link::receiveTooLong(const TooLongRecord& record, TimePoint now) {
  const auto found = slots_.find(record.slot);
  if (found == slots_.end() || found->second.key != record.key || !found->second.ended.ok()) return;
  const std::uint64_t token = found->second.token;
  const Bytes capacity = found->second.capacity;
  if (found->second.eager && options_.smallMessage > 0) pacing_.refused(record.key);
  stopReceiving(record.slot, now);
  forgetSlot(record.slot);
  io_.receiveFailed(token, errorf(Code::kInvalidArgument,
                                  "a message of {} bytes from {} meets a receive of {} bytes",
                                  record.length, identity_.name, capacity));
}

// --- both ---

/// A stream that both ends have closed: nothing of it can come any more.
void Link::forgetStreams() {
  std::erase_if(sendStreams_, [this](const auto& stream) {
    const SendStream& state = stream.second;
    return state.told && state.closedHere && state.closedThere &&
           control_.received().base >= state.lastRecord;
  });
  std::erase_if(receiveStreams_,
                [](const auto& stream) { return stream.second.closedHere && stream.second.ended; });
}

}  // namespace faultline::channel
