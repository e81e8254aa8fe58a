#pragma once

#include <cstdint>

#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/transport/driven_rail.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"

namespace faultline::fabric {

/// A TCP rail that its owner's poller serves. Not thread-safe.
class PolledRail final : public transport::DrivenRail {
 public:
  PolledRail(int rail, UniqueFd socket, transport::RailSink& sink, Poller& poller)
      : poller_(poller), rail_(rail, std::move(socket), sink) {}

  /// To be called once.
  Status start();

  bool lateWrites() const override { return rail_.lateWrites(); }
  void submit(const transport::ChunkHeader& header, const std::byte* data,
              const transport::RemoteRegion& region) override {
    rail_.submit(header, data, region);
  }
  bool detach(std::uint64_t sequence) override { return rail_.detach(sequence); }
  void divert() override { rail_.divert(); }
  transport::Delivery delivery() const override { return rail_.delivery(); }
  void tellRate(double bytesPerSecond) override { rail_.tellRate(bytesPerSecond); }
  void tellRoom() override { rail_.tellRoom(); }
  void fence() override;
  bool fenced() const override { return rail_.fenced(); }
  void transmit() override;

 private:
  Poller& poller_;
  transport::tcp::TcpRail rail_;
  bool waitsWritable_ = false;
};

}  // namespace faultline::fabric
