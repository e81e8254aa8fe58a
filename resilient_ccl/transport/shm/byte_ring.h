#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace faultline::transport::shm {

/// How far the two ends of a ring have come, in bytes since its beginning; in memory that both have
/// mapped. Each end writes a cache line of its own.
struct RingIndices {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> taken{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The writing end of a ring of bytes between two processes. Never waits. What the other end says
/// of itself is not believed further than the ring's bounds.
class RingWriter {
 public:
  /// Both ends begin with the same indices, zero, and the same `bytes`, a power of two of them.
  RingWriter(RingIndices& indices, std::span<std::byte> bytes) : indices_(indices), bytes_(bytes) {}

  /// Bytes that can be written now. kInvalidArgument: the reader claims what was never written.
  Result<std::size_t> room();
  /// Copies from the pieces, in their order, what there is room for: how many bytes.
  Result<std::size_t> write(std::span<const iovec> pieces);
  /// All of the pieces, which the reader sees at once, or, without room for all, nothing: false.
  Result<bool> writeWhole(std::span<const iovec> pieces);

 private:
  void copyIn(const std::byte* from, std::size_t count);
  void publish() { indices_.written.store(written_, std::memory_order_release); }

  RingIndices& indices_;
  const std::span<std::byte> bytes_;
  std::uint64_t written_ = 0;
};

/// The reading end.
class RingReader {
 public:
  RingReader(RingIndices& indices, std::span<const std::byte> bytes)
      : indices_(indices), bytes_(bytes) {}

  /// Bytes that can be read now. kInvalidArgument: more than the ring has.
  Result<std::size_t> available();
  /// Copies into the pieces, in their order, what is there: how many bytes.
  Result<std::size_t> read(std::span<const iovec> pieces);
  /// Bytes read so far.
  std::uint64_t taken() const { return taken_; }

 private:
  RingIndices& indices_;
  const std::span<const std::byte> bytes_;
  std::uint64_t taken_ = 0;
};

}  // namespace faultline::transport::shm
