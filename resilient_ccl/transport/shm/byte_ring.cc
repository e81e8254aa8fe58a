#include "resilient_ccl/transport/shm/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace faultline::transport::shm {

Result<std::size_t> RingWriter::room() {
  const std::uint64_t waiting = written_ - indices_.taken.load(std::memory_order_acquire);
  if (waiting <= bytes_.size()) return bytes_.size() - waiting;
  return errorf(Code::kInvalidArgument, "the reader of a ring has taken what was never written");
}

void RingWriter::copyIn(const std::byte* from, std::size_t count) {
  while (count > 0) {
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t step = std::min(count, bytes_.size() - at);
    std::memcpy(bytes_.data() + at, from, step);
    from += step;
    count -= step;
    written_ += step;
  }
}

Result<std::size_t> RingWriter::write(std::span<const iovec> pieces) {
  ASSIGN_OR_RETURN(std::size_t room, this->room());
  const std::uint64_t before = written_;
  for (const iovec& piece : pieces) {
    const std::size_t count = std::min(piece.iov_len, room);
    copyIn(static_cast<const std::byte*>(piece.iov_base), count);
    publish();  // the reader may begin with this piece while the next one is copied
    room -= count;
    if (room == 0) break;
  }
  return static_cast<std::size_t>(written_ - before);
}

Result<bool> RingWriter::writeWhole(std::span<const iovec> pieces) {
  ASSIGN_OR_RETURN(const std::size_t room, this->room());
  std::size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  if (total > room) return false;
  for (const iovec& piece : pieces) {
    copyIn(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
  }
  publish();
  return true;
}

Result<std::size_t> RingReader::available() {
  const std::uint64_t there = indices_.written.load(std::memory_order_acquire) - taken_;
  if (there <= bytes_.size()) return there;
  return errorf(Code::kInvalidArgument, "the writer of a ring has written more than it holds");
}

Result<std::size_t> RingReader::read(std::span<const iovec> pieces) {
  ASSIGN_OR_RETURN(std::size_t there, available());
  const std::uint64_t before = taken_;
  for (const iovec& piece : pieces) {
    auto* to = static_cast<std::byte*>(piece.iov_base);
    for (std::size_t left = std::min(piece.iov_len, there); left > 0;) {
      const std::size_t at = taken_ & (bytes_.size() - 1);
      const std::size_t step = std::min(left, bytes_.size() - at);
      std::memcpy(to, bytes_.data() + at, step);
      to += step;
      left -= step;
      there -= step;
      taken_ += step;
    }
    indices_.taken.store(taken_, std::memory_order_release);
    if (there == 0) break;
  }
  return static_cast<std::size_t>(taken_ - before);
}

}  // namespace faultline::transport::shm
