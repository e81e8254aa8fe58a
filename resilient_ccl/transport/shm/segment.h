#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/transport/shm/byte_ring.h"

namespace faultline::transport::shm {

/// What an end that is going to sleep wants to be woken for, in memory that both ends have mapped.
/// As with a Doorbell, each side exchanges and then looks, or changes and then exchanges: one of
/// the two sees the other.
struct alignas(64) Rest {
  std::atomic<bool> asleep{false};      ///< for whatever is written
  std::atomic<bool> awaitsRoom{false};  ///< for what is taken of what it has written
};
static_assert(std::atomic<bool>::is_always_lock_free);

/// The memory that two processes of a node share: two rings in each direction, for payload and for
/// datagrams, and who sleeps. It has no name: it is gone with the last process that has it mapped,
/// however that ends. Move-only.
class Segment {
 public:
  /// Fits into a second-level cache twice; a chunk of 64 KiB is copied out while the next is copied
  /// in (docs/shm.md has it measured).
  static constexpr std::size_t kPayloadRing = 256 << 10;
  /// Some dozens of datagrams.
  static constexpr std::size_t kDatagramRing = 64 << 10;

  struct Direction {
    RingIndices payload;
    RingIndices datagrams;
  };
  /// What lies at the beginning of the memory. End e writes direction e.
  struct Shared {
    std::array<Direction, 2> directions;
    std::array<Rest, 2> ends;
  };

  static Result<Segment> create();
  /// Maps one that another process has made. kInvalidArgument when it is none, or could be cut
  /// while it is mapped, which would kill this process.
  static Result<Segment> open(UniqueFd memory);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  int fd() const { return memory_.get(); }
  Shared& shared() const { return *reinterpret_cast<Shared*>(base_); }
  std::span<std::byte> payload(int direction) const;
  std::span<std::byte> datagrams(int direction) const;

 private:
  static Result<Segment> map(UniqueFd memory);
  Segment(UniqueFd memory, std::byte* base) : memory_(std::move(memory)), base_(base) {}

  UniqueFd memory_;
  std::byte* base_;
};

}  // namespace faultline::transport::shm
