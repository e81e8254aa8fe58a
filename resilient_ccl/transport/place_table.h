#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::transport {

/// Where chunks go when I/O threads receive them: the slots that one process has granted to
/// another, and which rail has claimed which chunk's place in them. A claim is never given back, so
/// that each place has one writer. Thread-safe.
class PlaceTable {
 public:
  struct Claim {
    std::byte* place = nullptr;  ///< to be written by the rail that asked; null: not there
    int holder = -1;  ///< the rail that has claimed the place; -1: nobody wants the chunk
  };

  explicit PlaceTable(const Cut& cut) : cut_(cut) {}

  /// A receive is posted; before the peer is told of the slot.
  void open(std::uint32_t slot, std::byte* region, Bytes capacity);
  /// The receive is done, or the slot was never there.
  void close(std::uint32_t slot);

  /// Claims the chunk's place for `rail`, which has it already when it is the first to ask. An
  /// error when the header does not fit its slot.
  Result<Claim> claim(int rail, const ChunkHeader& header);

 private:
  struct Slot {
    std::byte* region;
    Bytes capacity;
    Bytes length = kUnknownLength;        // of the message; known from the first chunk on
    std::vector<std::int16_t> holders{};  // by chunk; kFree: nobody
  };
  static constexpr std::int16_t kFree = -1;

  const Cut cut_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Slot> slots_;
};

}  // namespace faultline::transport
