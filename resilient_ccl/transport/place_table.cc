#include "resilient_ccl/transport/place_table.h"

namespace faultline::transport {

void PlaceTable::open(std::uint32_t slot, std::byte* region, Bytes capacity) {
  const std::lock_guard lock(mutex_);
  slots_[slot] = {.region = region, .capacity = capacity};
}

void PlaceTable::close(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  slots_.erase(slot);
}

Result<PlaceTable::Claim> PlaceTable::claim(int rail, const ChunkHeader& header) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(header.slot);
  if (found == slots_.end()) return Claim{};
  Slot& slot = found->second;
  if (!fits(header, slot.capacity, slot.length, cut_)) {
    return errorf(Code::kInvalidArgument,
                  "a chunk of {} bytes at {} of {} does not fit slot {} ({} bytes)", header.length,
                  header.offset, header.messageLength, header.slot, slot.capacity);
  }
  if (slot.length == kUnknownLength) {
    slot.length = static_cast<Bytes>(header.messageLength);
    slot.holders.assign(cut_.chunkCount(header.messageLength), kFree);
  }
  std::int16_t& holder = slot.holders[cut_.number(header.messageLength, header.offset)];
  if (holder != kFree) return Claim{.holder = holder};
  holder = static_cast<std::int16_t>(rail);
  return Claim{.place = slot.region + header.offset, .holder = rail};
}

}  // namespace faultline::transport
