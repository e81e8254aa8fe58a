#include "resilient_ccl/transport/shm/shm_rail.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/system_calls.h"
#include "resilient_ccl/transport/shm/local_socket.h"

namespace faultline::transport::shm {
namespace {

// In front of a datagram in its ring.
using DatagramLength = std::uint32_t;
// More than any control datagram has, as over a network.
constexpr std::size_t kLongestDatagram = 2048;
// Of a datagram: header and seal, say.
constexpr std::size_t kMostPieces = 4;

Status endOfRail() { return errorf(Code::kUnavailable, "the other end closed the rail"); }

}  // namespace

ShmRail::Memory::Memory(Segment&& mapped, int end)
    : segment(std::move(mapped)),
      payloadOut(segment.shared().directions[end].payload, segment.payload(end)),
      datagramsOut(segment.shared().directions[end].datagrams, segment.datagrams(end)),
      payloadIn(segment.shared().directions[1 - end].payload, segment.payload(1 - end)),
      datagramsIn(segment.shared().directions[1 - end].datagrams, segment.datagrams(1 - end)),
      own(segment.shared().ends[end]),
      other(segment.shared().ends[1 - end]) {}

Status ShmRail::offer() {
  ASSIGN_OR_RETURN(Segment segment, Segment::create());
  RETURN_IF_ERROR(sendDescriptor(fd(), segment.fd()));
  memory_.emplace(std::move(segment), /*end=*/0);
  return okStatus();
}

void ShmRail::readConnection() {
  if (fenced() || ended_) return;
  if (!memory_) {
    Result<UniqueFd> descriptor = receiveDescriptor(fd());
    if (!descriptor.ok()) return fail(descriptor.status());
    if (!descriptor->valid()) return;
    Result<Segment> segment = Segment::open(std::move(*descriptor));
    if (!segment.ok()) return fail(segment.status());
    memory_.emplace(std::move(*segment), /*end=*/1);
  }
  std::array<char, 64> bells;
  for (;;) {
    countSystemCall();
    const ssize_t got = recv(fd(), bells.data(), bells.size(), 0);
    if (got == static_cast<ssize_t>(bells.size()) || (got < 0 && errno == EINTR)) continue;
    ended_ = got == 0 || (got < 0 && errno != EAGAIN);
    return;
  }
}

bool ShmRail::collect() {
  if (fenced() || failed()) return false;
  if (!memory_) {
    if (ended_) fail(endOfRail());
    return ended_;
  }
  const Result<bool> datagrams = takeDatagrams();
  if (!datagrams.ok()) {
    fail(datagrams.status());
    return true;
  }
  const std::uint64_t before = memory_->payloadIn.taken();
  read();
  const bool taken = memory_->payloadIn.taken() != before;
  if (taken) wakeIf(memory_->other.awaitsRoom);
  const Result<std::size_t> room = wantsWritable() ? memory_->payloadOut.room() : std::size_t{0};
  if (!room.ok()) fail(room.status());
  if (failed() || *room == 0) return taken || *datagrams;
  transmit();
  return true;
}

Result<bool> ShmRail::takeDatagrams() {
  bool any = false;
  for (;;) {
    ASSIGN_OR_RETURN(const std::size_t there, memory_->datagramsIn.available());
    if (there == 0) return any;
    any = true;
    DatagramLength length = 0;
    std::array<std::byte, kLongestDatagram> datagram;
    const iovec first{&length, sizeof(length)};
    RETURN_IF_ERROR(memory_->datagramsIn.read({&first, 1}).status());
    if (length > datagram.size() || sizeof(length) + length > there) {
      return errorf(Code::kInvalidArgument, "a datagram of {} bytes in a ring that has {}", length,
                    there);
    }
    const iovec rest{datagram.data(), length};
    RETURN_IF_ERROR(memory_->datagramsIn.read({&rest, 1}).status());
    datagrams_.datagramArrived(std::span(datagram).first(length));
  }
}

bool ShmRail::sendDatagram(std::span<const iovec> datagram) {
  std::array<iovec, 1 + kMostPieces> pieces;
  if (!memory_ || fenced() || failed() || datagram.size() > kMostPieces) return false;
  DatagramLength length = 0;
  for (const iovec& piece : datagram) length += static_cast<DatagramLength>(piece.iov_len);
  pieces[0] = {&length, sizeof(length)};
  std::ranges::copy(datagram, pieces.begin() + 1);
  const Result<bool> written =
      memory_->datagramsOut.writeWhole(std::span(pieces).first(1 + datagram.size()));
  const bool sent = written.ok() && *written;
  // At once: it may be the last of a round, behind `transmit`.
  if (sent) wakeIf(memory_->other.asleep);
  return sent;
}

void ShmRail::transmit() {
  if (fenced() || failed()) return;
  write(/*streamIsWritable=*/true);
  if (std::exchange(unannounced_, false)) wakeIf(memory_->other.asleep);
}

void ShmRail::wakeIf(std::atomic<bool>& waits) {
  if (!waits.exchange(false, std::memory_order_acq_rel)) return;
  const char bell = 1;
  countSystemCall();
  // Full: the other end has not read the bells before, and will wake.
  (void)::send(fd(), &bell, sizeof(bell), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ShmRail::arm() {
  if (!memory_ || fenced() || failed()) return;
  memory_->own.asleep.exchange(true, std::memory_order_acq_rel);
  if (wantsWritable()) memory_->own.awaitsRoom.exchange(true, std::memory_order_acq_rel);
}

void ShmRail::disarm() {
  if (!memory_ || fenced()) return;
  memory_->own.asleep.store(false, std::memory_order_relaxed);
  memory_->own.awaitsRoom.store(false, std::memory_order_relaxed);
}

Result<std::size_t> ShmRail::receive(std::span<const iovec> pieces) {
  if (memory_) {
    ASSIGN_OR_RETURN(const std::size_t got, memory_->payloadIn.read(pieces));
    if (got > 0 || !ended_) return got;
  }
  return ended_ ? Result<std::size_t>(endOfRail()) : std::size_t{0};
}

Result<std::size_t> ShmRail::send(std::span<const iovec> pieces) {
  if (!memory_) return std::size_t{0};
  ASSIGN_OR_RETURN(const std::size_t sent, memory_->payloadOut.write(pieces));
  unannounced_ = unannounced_ || sent > 0;
  return sent;
}

void ShmRail::close() {
  memory_.reset();
  connection_.reset();
}

}  // namespace faultline::transport::shm
