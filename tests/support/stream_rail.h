#pragma once

#include <deque>
#include <vector>

#include "tests/support/sim_rail.h"

namespace faultline::test {

/// One end of a rail in memory with TCP's semantics: chunks stand one behind the other in a stream;
/// each is read from the sender's buffer in pieces, at the latest moment, when the wire takes them.
/// The receiver's process reads what has come when it runs, asks its sink where each payload goes,
/// and writes it piece by piece. What a broken stream has not delivered never lands. The sender
/// knows of what has come in once the other direction carries an acknowledgement.
class StreamRail : public SimRail {
 public:
  using SimRail::SimRail;

  bool lateWrites() const override { return false; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  bool detach(std::uint64_t sequence) override;
  void divert() override { place_ = nullptr; }
  void begin() override;
  void read() override;
  void close() override;

 private:
  struct Outgoing {
    ChunkHeader header;
    const std::byte* data;
    std::size_t sent = 0;
    std::vector<std::byte> copy;  // what `data` points into, once detached
  };
  struct Piece {
    ChunkHeader header;
    std::size_t begin;
    std::vector<std::byte> bytes;
    bool last() const { return begin + bytes.size() == header.length; }
  };

  void sendNext();
  void putOnTheWire(std::size_t count, int attempt);
  void acknowledge(std::size_t count, Duration wireTime);
  void deliver(Piece piece);
  StreamRail& peer() { return static_cast<StreamRail&>(*peer_); }

  std::deque<Outgoing> outgoing_;
  bool sending_ = false;  // the first of them is being sent
  std::deque<Piece> inbox_;
  std::byte* place_ = nullptr;
};

}  // namespace faultline::test
