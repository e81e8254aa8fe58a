#include "resilient_ccl/transport/framed_rail.h"

#include <algorithm>
#include <array>

namespace faultline::transport {
namespace {

// Bytes read in one go before other rails get their turn.
constexpr std::size_t kFairShare = 1 << 20;
// A rail that gives so much in one go is faster than a round of epoll.
constexpr std::size_t kFastGoing = 128 << 10;
// Bytes read behind a header that is awaited, and copied from there: a short message, or the first
// part of a long one.
constexpr std::size_t kAhead = (8 << 10) + sizeof(ChunkHeader);
// Largest payload a peer may announce; longer is a lie or garbage.
constexpr std::uint32_t kLargestChunk = 16 << 20;
// Chunks written in one go.
constexpr std::size_t kWriteBatch = 16;
// Fair shares drained before a close: more than any window and its socket buffers hold. A peer that
// goes on sending cannot hold the process up; what is left counts as not arrived.
constexpr int kMostDrained = 64;

}  // namespace

void FramedRail::submit(const ChunkHeader& header, const std::byte* data, const RemoteRegion&) {
  queue_.push_back({.header = header, .data = data, .copy = {}});
}

bool FramedRail::detach(std::uint64_t sequence) {
  const auto found = std::ranges::find(queue_, sequence,
                                       [](const Outgoing& chunk) { return chunk.header.sequence; });
  if (found == queue_.end()) return false;  // the stream has all of it
  if (found->written == 0) {
    found->header = withdrawn(found->header);
    return true;
  }
  found->copy.assign(found->data, found->data + found->header.length);
  found->data = found->copy.data();
  return false;
}

void FramedRail::tellRoom() {
  if (queue_.empty() && !failed_ && !fenced()) submit(kRoomWord, nullptr, {});
}

void FramedRail::divert() {
  if (headerRead_ == sizeof(ChunkHeader)) readIntoScratch();
}

void FramedRail::readIntoScratch() {
  scratch_.resize(std::max<std::size_t>(scratch_.size(), header_.length));
  place_ = scratch_.data();
}

void FramedRail::fail(const Status& why) {
  if (failed_) return;
  failed_ = true;
  if (!fencing_) sink_.railFailed(rail_, why);
}

void FramedRail::write(bool streamIsWritable) {
  if (failed_ || fenced()) return;
  if (streamIsWritable) full_ = false;
  while (!queue_.empty() && !full_) {
    std::array<iovec, 2 * kWriteBatch> pieces;
    std::size_t count = 0;
    for (auto next = queue_.begin(); next != queue_.end() && count + 2 <= pieces.size(); ++next) {
      auto* header = reinterpret_cast<std::byte*>(&next->header);
      std::size_t skip = next->written;
      if (skip < sizeof(ChunkHeader)) {
        pieces[count++] = {header + skip, sizeof(ChunkHeader) - skip};
        skip = 0;
      } else {
        skip -= sizeof(ChunkHeader);
      }
      if (skip < next->header.length) {
        pieces[count++] = {const_cast<std::byte*>(next->data) + skip, next->header.length - skip};
      }
    }
    const Result<std::size_t> taken = send(std::span(pieces).first(count));
    if (!taken.ok()) {
      fail(taken.status());
      return;
    }
    std::size_t sent = *taken;
    full_ = sent == 0;
    while (sent > 0) {
      Outgoing& first = queue_.front();
      const std::size_t total = sizeof(ChunkHeader) + first.header.length;
      const std::size_t step = std::min<std::size_t>(sent, total - first.written);
      first.written += step;
      sent -= step;
      if (first.written == total) queue_.pop_front();
    }
  }
}

bool FramedRail::headerComplete() {
  const Result<std::byte*> place =
      header_.length > kLargestChunk
          ? errorf(Code::kInvalidArgument, "a chunk header announces {} bytes", header_.length)
          : sink_.place(rail_, header_);
  if (!place.ok()) {
    garbled_ = true;
    fail(place.status());
    return false;
  }
  payloadRead_ = 0;
  place_ = *place;
  if (place_ == nullptr) readIntoScratch();
  return true;
}

/// The header is complete: whether the rail is still of use.
bool FramedRail::payloadBegins() {
  if (header_ == kRoomWord) {
    headerRead_ = 0;
    return true;
  }
  if (!headerComplete()) return false;
  if (header_.length > 0) return true;
  headerRead_ = 0;  // an empty message has no payload to wait for
  sink_.chunkArrived(rail_, header_);
  return true;
}

/// Takes apart what has been read ahead, from the middle of a header or a payload on.
bool FramedRail::take(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (failed_ || fenced()) return false;
    const bool inPayload = headerRead_ == sizeof(ChunkHeader);
    const std::size_t missing =
        inPayload ? header_.length - payloadRead_ : sizeof(ChunkHeader) - headerRead_;
    const std::size_t step = std::min(missing, bytes.size());
    std::byte* const to =
        inPayload ? place_ + payloadRead_ : reinterpret_cast<std::byte*>(&header_) + headerRead_;
    std::copy_n(bytes.begin(), step, to);
    bytes = bytes.subspan(step);
    (inPayload ? payloadRead_ : headerRead_) += step;
    if (step < missing) return true;
    if (inPayload) {
      headerRead_ = 0;
      sink_.chunkArrived(rail_, header_);
    } else if (!payloadBegins()) {
      return false;
    }
  }
  return true;
}

bool FramedRail::read() {
  std::size_t total = 0;
  // A read that gets less than it asked for has emptied the stream, and its owner hears of more:
  // asking again would be a call for nothing, unless much comes fast. A fence does ask, as there is
  // no later.
  bool drained = false;
  ahead_.resize(kAhead);
  while (!failed_ && !fenced() && (!drained || fencing_)) {
    if (total >= kFairShare) return true;
    // The payload that is missing and, behind it, the next header: one call for both. Where a
    // header is missing, what is behind it: a short message comes in one call.
    std::array<iovec, 2> pieces;
    const bool inPayload = headerRead_ == sizeof(ChunkHeader);
    const std::size_t missing =
        inPayload ? header_.length - payloadRead_ : sizeof(ChunkHeader) - headerRead_;
    ChunkHeader next;
    if (inPayload) {
      pieces = {{{place_ + payloadRead_, missing}, {&next, sizeof(next)}}};
    } else {
      pieces = {{{reinterpret_cast<std::byte*>(&header_) + headerRead_, missing},
                 {ahead_.data(), ahead_.size()}}};
    }
    const Result<std::size_t> received = receive(pieces);
    if (!received.ok()) {
      fail(received.status());
      return false;
    }
    if (*received == 0) return false;
    total += *received;
    drained = *received < missing + pieces[1].iov_len && total < kFastGoing;
    const std::size_t taken = std::min(*received, missing);
    const std::size_t behind = *received - taken;
    (inPayload ? payloadRead_ : headerRead_) += taken;
    if (taken < missing) continue;
    if (inPayload) {
      const ChunkHeader done = header_;
      header_ = next;
      headerRead_ = behind;
      sink_.chunkArrived(rail_, done);
      if (behind == sizeof(ChunkHeader) && !payloadBegins()) return false;
    } else if (!payloadBegins() || !take(std::span(ahead_).first(behind))) {
      return false;
    }
  }
  return false;
}

void FramedRail::fence() {
  if (fenced()) return;
  fencing_ = true;
  failed_ = garbled_;  // what arrived before an error of the network still counts
  for (int share = 0; share < kMostDrained && read(); ++share) {
  }
  failed_ = true;
  queue_.clear();
  close();
}

}  // namespace faultline::transport
