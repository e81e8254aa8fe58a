#pragma once

#include <span>

#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/transport/driven_rail.h"
#include "resilient_ccl/transport/shm/shm_rail.h"

namespace faultline::fabric {

/// A rail to a process of the same node, through shared memory, that its owner's poller serves. Not
/// thread-safe.
class SharedRail final : public transport::DrivenRail {
 public:
  /// `connection`: a local socket, connected.
  SharedRail(int rail, UniqueFd connection, transport::RailSink& sink,
             transport::shm::DatagramSink& datagrams, Poller& poller)
      : poller_(poller), rail_(rail, std::move(connection), sink, datagrams) {}

  /// To be called once; one of the two ends offers the memory.
  Status start(bool offers);

  bool lateWrites() const override { return rail_.lateWrites(); }
  void submit(const transport::ChunkHeader& header, const std::byte* data,
              const transport::RemoteRegion& region) override {
    rail_.submit(header, data, region);
  }
  bool detach(std::uint64_t sequence) override { return rail_.detach(sequence); }
  void divert() override { rail_.divert(); }
  void fence() override;
  bool fenced() const override { return rail_.fenced(); }
  void transmit() override { rail_.transmit(); }
  bool collect() override { return rail_.collect(); }
  void arm() override { rail_.arm(); }
  void disarm() override { rail_.disarm(); }

  /// As of ShmRail.
  bool sendDatagram(std::span<const iovec> datagram) { return rail_.sendDatagram(datagram); }

 private:
  Poller& poller_;
  transport::shm::ShmRail rail_;
};

}  // namespace faultline::fabric
