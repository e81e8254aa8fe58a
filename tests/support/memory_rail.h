#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::test {

using transport::ChunkHeader;
using transport::RemoteRegion;

/// Runs `action` at a time of the simulated clock.
using Schedule = std::function<void(Duration delay, std::function<void()> action)>;

/// One end of a rail in memory with RDMA's semantics: the payload is read from the sender's buffer
/// and written into the receiver's region at the moment of delivery, without asking anybody, and
/// on request long after the rail is dead. The sender's fence stops the reading,
/// the receiver's the writing: what is in the network when the sender closes still lands.
class MemoryRail : public transport::Rail {
 public:
  struct Wire {
    Duration latency = 50us;
    double bytesPerSecond = 100e6;
    bool carries = true;      ///< false: a black hole
    bool lateWrites = true;   ///< false: the receiver's sink places the payload, as TCP does
    Duration lateDelivery{};  ///< of chunks that were under way when the wire died
    Duration fenceTime = 100us;
  };

  /// `wire` is the direction from this end to `peer`; shared with the test that breaks it.
  MemoryRail(int rail, Wire& wire, transport::RailSink& sink, Schedule schedule)
      : rail_(rail), wire_(wire), sink_(sink), schedule_(std::move(schedule)) {}

  void connect(MemoryRail* peer) { peer_ = peer; }

  bool lateWrites() const override { return wire_.lateWrites; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  void fence() override;
  bool fenced() const override { return fenced_; }

  /// This end's process knows of the connection: what came in before waits for it.
  void begin() { begun_ = true; }
  /// This end's process never got the connection.
  void abandon() { fenced_ = abandoned_ = true; }

  /// Called when the fence has taken effect.
  std::function<void()> onFenced;
  /// Called with every piece of the sender's memory that the rail reads.
  std::function<void(std::span<const std::byte>)> onRead;

 private:
  void transmit(const ChunkHeader& header, const std::byte* data, const RemoteRegion& region,
                const std::shared_ptr<bool>& acknowledged);
  void deliver(const ChunkHeader& header, const std::byte* data, const RemoteRegion& region,
               bool visible);

  int rail_;
  Wire& wire_;
  transport::RailSink& sink_;
  Schedule schedule_;
  MemoryRail* peer_ = nullptr;
  Duration busyFor_{};
  bool begun_ = false;
  bool fencing_ = false;
  bool fenced_ = false;
  bool abandoned_ = false;
};

}  // namespace faultline::test
