#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/unique_fd.h"
#include "resilient_ccl/transport/framed_rail.h"
#include "resilient_ccl/transport/shm/segment.h"

namespace faultline::transport::shm {

/// Takes the datagrams of a rail through shared memory.
class DatagramSink {
 public:
  virtual ~DatagramSink() = default;
  virtual void datagramArrived(std::span<const std::byte> datagram) = 0;
};

/// A rail between two processes of one node: a ring of bytes in each direction in memory that both
/// have mapped, and a ring for datagrams beside it, so that control never waits behind payload.
/// A connected local socket carries the memory's descriptor and then only wakes: a byte when the
/// other end sleeps. Its end is the end of the other process. docs/shm.md.
class ShmRail final : public FramedRail {
 public:
  /// `connection`: connected and non-blocking; one end of it must `offer`.
  ShmRail(int rail, UniqueFd connection, RailSink& sink, DatagramSink& datagrams)
      : FramedRail(rail, sink), connection_(std::move(connection)), datagrams_(datagrams) {}

  /// Makes the memory and shares it with the other end. To be called first, by one end.
  Status offer();

  bool fenced() const override { return !connection_.valid(); }
  /// To be polled for reading; then `readConnection`.
  int fd() const { return connection_.get(); }
  void readConnection();

  /// Takes what the other end has written, and goes on writing where there was no room; whether
  /// anything moved.
  bool collect();
  /// Writes what has been submitted and there is room for, and wakes the other end where it sleeps.
  void transmit();
  /// In pieces, for the next `transmit`. False when there is no room, or no memory yet: it is lost.
  bool sendDatagram(std::span<const iovec> datagram);

  // The owner is going to sleep, and looks once more (`collect`) before it does; it is awake again.
  void arm();
  void disarm();

 private:
  /// The memory, as this end sees it.
  struct Memory {
    Memory(Segment&& mapped, int end);
    Segment segment;
    RingWriter payloadOut, datagramsOut;
    RingReader payloadIn, datagramsIn;
    Rest& own;
    Rest& other;
  };

  Result<std::size_t> receive(std::span<const iovec> pieces) override;
  Result<std::size_t> send(std::span<const iovec> pieces) override;
  void close() override;

  Result<bool> takeDatagrams();
  void wakeIf(std::atomic<bool>& waits);

  UniqueFd connection_;
  DatagramSink& datagrams_;
  std::optional<Memory> memory_;
  bool unannounced_ = false;  // written, and the other end not woken yet
  bool ended_ = false;        // the other end is gone; what it has written is still there
};

}  // namespace faultline::transport::shm
