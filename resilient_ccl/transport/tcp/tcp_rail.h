#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "base/unique_fd.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::transport::tcp {

/// A rail over one connected TCP socket: chunk headers and payloads as a stream, payload received
/// straight into the place that the sink names. Its engine polls the socket and calls `read` and
/// `write` when it is ready.
class TcpRail : public Rail {
 public:
  /// `rail` is the index handed to the sink. The socket must be connected and non-blocking.
  TcpRail(int rail, UniqueFd socket, RailSink& sink);

  bool lateWrites() const override { return false; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  /// Copies what is left of a chunk whose header is on its way; withdraws one that has not begun.
  bool detach(std::uint64_t sequence) override;
  void divert() override;
  Delivery delivery() const override;
  /// Reads what the kernel has received, then closes the socket: at once.
  void fence() override;
  bool fenced() const override { return !socket_.valid(); }

  int fd() const { return socket_.get(); }
  /// Whether something waits to be written and the socket was not full the last time.
  bool canWrite() const { return !queue_.empty() && !full_ && !failed_; }
  /// Whether `write` must be called when the socket becomes writable.
  bool wantsWritable() const { return full_ && !failed_; }

  /// Reads until the socket is empty or a fair share has been read. True when there is more.
  bool read();
  void write(bool socketIsWritable);

 private:
  struct Outgoing {
    ChunkHeader header;
    const std::byte* data;
    std::size_t written = 0;      // of header and payload together
    std::vector<std::byte> copy;  // what `data` points into, once detached
  };

  void fail(const Status& why);
  bool headerComplete();
  void readIntoScratch();

  int rail_;
  UniqueFd socket_;
  RailSink& sink_;
  bool failed_ = false;
  bool garbled_ = false;  // the peer sent nonsense: nothing behind it can be believed
  bool fencing_ = false;

  std::deque<Outgoing> queue_;
  bool full_ = false;

  ChunkHeader header_;
  std::size_t headerRead_ = 0;
  std::byte* place_ = nullptr;
  std::size_t payloadRead_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace faultline::transport::tcp
