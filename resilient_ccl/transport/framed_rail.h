#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "resilient_ccl/transport/rail.h"

namespace faultline::transport {

/// A rail over any stream of bytes: chunk headers and payloads one behind the other, payload
/// received straight into the place that the sink names. What the stream is, a transport says. Its
/// owner calls `read` and `write` when the stream is ready.
class FramedRail : public Rail {
 public:
  bool lateWrites() const override { return false; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  /// Copies what is left of a chunk whose header is on its way; withdraws one that has not begun.
  bool detach(std::uint64_t sequence) override;
  void divert() override;
  /// With bytes, which say how much this end takes as any do. Where others wait these do it, as
  /// soon as the other end lets them.
  void tellRoom() override;
  /// Reads what has arrived, then closes the stream: at once.
  void fence() override;

  /// Whether something waits to be written and the stream was not full the last time.
  bool canWrite() const { return !queue_.empty() && !full_ && !failed_; }
  /// Whether `write` must be called when the stream takes bytes again.
  bool wantsWritable() const { return full_ && !failed_; }

  /// Reads until the stream is empty or a fair share has been read. True when there is more.
  bool read();
  void write(bool streamIsWritable);

 protected:
  /// `rail` is the index handed to the sink.
  FramedRail(int rail, RailSink& sink) : rail_(rail), sink_(sink) {}

  /// Takes bytes from the stream into the pieces, in their order: how many; 0: there are none now.
  /// An error when the stream is broken, or has ended and everything has been taken.
  virtual Result<std::size_t> receive(std::span<const iovec> pieces) = 0;
  /// Gives bytes to the stream: how many; 0: it is full. An error when it is broken.
  virtual Result<std::size_t> send(std::span<const iovec> pieces) = 0;
  /// Ends the stream; `fenced` from now on.
  virtual void close() = 0;

  /// Tells the sink, once, that the rail is of no use any more.
  void fail(const Status& why);
  bool failed() const { return failed_; }

 private:
  struct Outgoing {
    ChunkHeader header;
    const std::byte* data;
    std::size_t written = 0;      // of header and payload together
    std::vector<std::byte> copy;  // what `data` points into, once detached
  };

  bool headerComplete();
  bool payloadBegins();
  bool take(std::span<const std::byte> bytes);
  void readIntoScratch();

  int rail_;
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
  std::vector<std::byte> ahead_;  // what may come behind a header, in the same call
};

}  // namespace faultline::transport
