#pragma once

#include <deque>
#include <memory>

#include "tests/support/sim_rail.h"

namespace faultline::test {

/// One end of a rail in memory with RDMA's semantics: the payload is read from the sender's buffer
/// and written into the receiver's region at the moment of delivery, without asking anybody, and
/// on request long after the rail is dead. The sender's fence stops the reading,
/// the receiver's the writing: what is in the network when the sender closes still lands.
class MemoryRail : public SimRail {
 public:
  using SimRail::SimRail;

  bool lateWrites() const override { return true; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  /// Never asked of rails with late writes: they throw.
  bool detach(std::uint64_t sequence) override;
  void divert() override;

 private:
  void transmit(const ChunkHeader& header, const std::byte* data, const RemoteRegion& region,
                const std::shared_ptr<std::uint32_t>& acknowledged, int attempt);
  void carryNext();
  void acknowledge(std::uint32_t bytes, std::uint32_t& ofChunk);
  void deliver(const ChunkHeader& header, const std::byte* data, const RemoteRegion& region,
               bool visible);
  MemoryRail& peer() { return static_cast<MemoryRail&>(*peer_); }

  struct Outgoing {
    ChunkHeader header;
    const std::byte* data;
    RemoteRegion region;
  };
  std::deque<Outgoing> waiting_;
  bool busy_ = false;  // a chunk is on the wire
};

}  // namespace faultline::test
