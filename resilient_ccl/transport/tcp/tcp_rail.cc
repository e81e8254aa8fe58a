#include "resilient_ccl/transport/tcp/tcp_rail.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "base/system_calls.h"

namespace faultline::transport::tcp {
namespace {

// Bytes read in one go before other sockets get their turn.
constexpr std::size_t kFairShare = 1 << 20;
// A rail that gives so much in one go is faster than a round of epoll.
constexpr std::size_t kFastGoing = 128 << 10;
// Largest payload a peer may announce; longer is a lie or garbage.
constexpr std::uint32_t kLargestChunk = 16 << 20;
// Chunks written with one system call.
constexpr std::size_t kWriteBatch = 16;
// Fair shares drained before a close: more than any window and its socket buffers hold. A peer that
// goes on sending cannot hold the process up; what is left counts as not arrived.
constexpr int kMostDrained = 64;

}  // namespace

TcpRail::TcpRail(int rail, UniqueFd socket, RailSink& sink)
    : rail_(rail), socket_(std::move(socket)), sink_(sink) {}

void TcpRail::submit(const ChunkHeader& header, const std::byte* data, const RemoteRegion&) {
  queue_.push_back({.header = header, .data = data, .copy = {}});
}

bool TcpRail::detach(std::uint64_t sequence) {
  const auto found = std::ranges::find(queue_, sequence,
                                       [](const Outgoing& chunk) { return chunk.header.sequence; });
  if (found == queue_.end()) return false;  // the kernel has all of it
  if (found->written == 0) {
    found->header = withdrawn(found->header);
    return true;
  }
  found->copy.assign(found->data, found->data + found->header.length);
  found->data = found->copy.data();
  return false;
}

void TcpRail::divert() {
  if (headerRead_ == sizeof(ChunkHeader)) readIntoScratch();
}

void TcpRail::readIntoScratch() {
  scratch_.resize(std::max<std::size_t>(scratch_.size(), header_.length));
  place_ = scratch_.data();
}

void TcpRail::fail(const Status& why) {
  if (failed_) return;
  failed_ = true;
  if (!fencing_) sink_.railFailed(rail_, why);
}

void TcpRail::write(bool socketIsWritable) {
  if (failed_ || fenced()) return;
  if (socketIsWritable) full_ = false;
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
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    countSystemCall();
    ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        full_ = true;
      } else {
        fail(Status::fromErrno(errno, "send on a rail"));
      }
      return;
    }
    while (sent > 0) {
      Outgoing& first = queue_.front();
      const std::size_t total = sizeof(ChunkHeader) + first.header.length;
      const std::size_t step = std::min<std::size_t>(sent, total - first.written);
      first.written += step;
      sent -= static_cast<ssize_t>(step);
      if (first.written == total) queue_.pop_front();
    }
  }
}

bool TcpRail::headerComplete() {
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

bool TcpRail::read() {
  std::size_t total = 0;
  // A read that gets less than it asked for has emptied the socket, and epoll tells when there is
  // more: asking again would be a call for nothing, unless much comes fast. A fence does ask, as
  // there is no later.
  bool drained = false;
  while (!failed_ && !fenced() && (!drained || fencing_)) {
    if (total >= kFairShare) return true;
    // The payload that is missing and, behind it, the next header: one call for both.
    std::array<iovec, 2> pieces;
    std::size_t count = 0;
    const bool inPayload = headerRead_ == sizeof(ChunkHeader);
    const std::size_t missing = inPayload ? header_.length - payloadRead_ : 0;
    ChunkHeader next;
    if (inPayload) {
      pieces[count++] = {place_ + payloadRead_, missing};
      pieces[count++] = {&next, sizeof(next)};
    } else {
      pieces[count++] = {reinterpret_cast<std::byte*>(&header_) + headerRead_,
                         sizeof(ChunkHeader) - headerRead_};
    }
    countSystemCall();
    const ssize_t got = readv(socket_.get(), pieces.data(), static_cast<int>(count));
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail(Status::fromErrno(errno, "receive on a rail"));
      return false;
    }
    if (got == 0) {
      fail(errorf(Code::kUnavailable, "the other end closed the rail"));
      return false;
    }
    total += static_cast<std::size_t>(got);
    const std::size_t asked =
        inPayload ? missing + sizeof(next) : sizeof(ChunkHeader) - headerRead_;
    drained = static_cast<std::size_t>(got) < asked && total < kFastGoing;
    std::size_t left = static_cast<std::size_t>(got);
    if (inPayload) {
      const std::size_t taken = std::min(left, missing);
      payloadRead_ += taken;
      left -= taken;
      if (payloadRead_ < header_.length) continue;
      const ChunkHeader done = header_;
      header_ = next;
      headerRead_ = left;
      sink_.chunkArrived(rail_, done);
    } else {
      headerRead_ += left;
    }
    while (headerRead_ == sizeof(ChunkHeader)) {
      if (!headerComplete()) return false;
      if (header_.length > 0) break;
      headerRead_ = 0;  // an empty message has no payload to wait for
      sink_.chunkArrived(rail_, header_);
    }
  }
  return false;
}

Delivery TcpRail::delivery() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (fenced()) return {};
  countSystemCall();
  if (getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {.acknowledged = info.tcpi_bytes_acked, .outstanding = info.tcpi_unacked > 0};
}

void TcpRail::fence() {
  if (fenced()) return;
  fencing_ = true;
  failed_ = garbled_;  // what arrived before an error of the network still counts
  for (int share = 0; share < kMostDrained && read(); ++share) {
  }
  failed_ = true;
  queue_.clear();
  socket_.reset();
}

}  // namespace faultline::transport::tcp
