#pragma once

#include <cstddef>
#include <span>

#include "base/own_process.h"
#include "base/unique_fd.h"
#include "resilient_ccl/transport/framed_rail.h"
#include "resilient_ccl/transport/tcp/congestion_control.h"

namespace faultline::transport::tcp {

/// A rail over one connected TCP socket. Its engine polls the socket and calls `read` and `write`
/// when it is ready.
class TcpRail final : public FramedRail {
 public:
  /// `rail` is the index handed to the sink. The socket must be connected and non-blocking.
  TcpRail(int rail, UniqueFd socket, RailSink& sink)
      : FramedRail(rail, sink), socket_(std::move(socket)) {}

  Delivery delivery() const override;
  void tellRate(double bytesPerSecond) override;
  bool fenced() const override { return !socket_.valid(); }
  int fd() const { return socket_.get(); }

  /// Delivery::frame of a stream whose segments carry so many bytes.
  static Bytes frameOf(std::uint32_t segment, bool timestamps);

 private:
  Result<std::size_t> receive(std::span<const iovec> pieces) override;
  Result<std::size_t> send(std::span<const iovec> pieces) override;
  void close() override;
  void pushAgain() const;

  UniqueFd socket_;
  CongestionControl congestionControl_;
  OwnProcess process_;
};

}  // namespace faultline::transport::tcp
