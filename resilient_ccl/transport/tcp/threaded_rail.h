#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/spsc_queue.h"
#include "resilient_ccl/transport/doorbell.h"
#include "resilient_ccl/transport/driven_rail.h"
#include "resilient_ccl/transport/place_table.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"

namespace faultline::transport::tcp {

class IoThread;
class ThreadedRail;

/// A chunk that has been received before the channel was asked for its place.
struct Arrival {
  ChunkHeader header;
  /// The payload, when another rail has claimed its place. Empty: it is there, or nobody wants it.
  std::vector<std::byte> staged{};
  int holder = -1;  ///< of the place: PlaceTable::Claim
  TimePoint began{};
  TimePoint ended{};
};

/// The receiving side of rails that I/O threads serve. Called by the thread that owns the rails.
class ArrivalSink {
 public:
  virtual ~ArrivalSink() = default;
  virtual void arrived(int rail, Arrival&& arrival) = 0;
  /// As of RailSink.
  virtual void railFailed(int rail, const Status& why) = 0;
  /// From now on the owner calls `read` when the rail's socket is readable. On an error it does
  /// not.
  virtual Status watch(ThreadedRail& rail) = 0;
  virtual void unwatch(ThreadedRail& rail) = 0;
};

/// A TcpRail whose system calls an I/O thread makes, one of two, or, as `setMover` says, its owner.
/// Everything is called by the thread that owns the rail, except `serve`. docs/channel.md, "I/O
/// threads".
class ThreadedRail final : public DrivenRail, private RailSink {
 public:
  /// `rail` is the index handed to the sink. `bell` wakes the owner when there is something to
  /// collect. Sink, places, bell and threads are not used after `fence`.
  ThreadedRail(int rail, UniqueFd socket, PlaceTable& places, ArrivalSink& sink, Doorbell& bell,
               IoThread& own, IoThread& common);

  /// Its own thread serves it from now on. Both threads have it (IoThread::add).
  Status start();
  bool lateWrites() const override { return false; }
  void submit(const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override;
  bool detach(std::uint64_t sequence) override;
  void divert() override;
  Delivery delivery() const override { return rail_.delivery(); }
  void tellRate(double bytesPerSecond) override { rail_.tellRate(bytesPerSecond); }
  /// At once: seldom asked for.
  void tellRoom() override;
  void fence() override;
  bool fenced() const override { return rail_.fenced(); }
  bool collect() override;
  void release(const ChunkHeader& chunk) override;
  void releaseSlot(std::uint32_t slot) override;
  void transmit() override;
  /// What the socket does not take at once the I/O thread sends in any case.
  void setMover(Mover mover) override;
  /// Reads what has come, for `collect`. Of a rail that its owner watches.
  void read();

  int fd() const { return rail_.fd(); }

  enum class Served { kIdle, kBusy, kClosed };
  /// An I/O thread, which does nothing unless it is its turn: sends what was submitted, and reads
  /// when `events` (of epoll) say so. Busy when there was something to send.
  Served serve(const IoThread& by, std::uint32_t events);

 private:
  /// Held by whoever touches `rail_`. The I/O thread lets the owner go first.
  class OwnersTurn;

  // RailSink: in the course of `serve`, or of `fence`.
  Result<std::byte*> place(int rail, const ChunkHeader& header) override;
  void chunkArrived(int rail, const ChunkHeader& header) override;
  void railFailed(int rail, const Status& why) override;

  bool takeSubmitted();
  void stopWriting();
  void watchSocket();
  void serveBy(IoThread& thread);
  IoThread& serving() const { return *serving_.load(std::memory_order_relaxed); }
  bool handOver();

  struct Submitted {
    ChunkHeader header;
    const std::byte* data = nullptr;
  };

  const int index_;
  PlaceTable& places_;
  ArrivalSink& sink_;
  Doorbell& bell_;
  IoThread& own_;
  IoThread& common_;

  SpscQueue<Submitted> submitted_;  // to the I/O thread
  SpscQueue<Arrival> arrivals_;     // from the I/O thread
  bool unannounced_ = false;        // the owner's: submitted, and the I/O thread not woken yet
  bool failureTold_ = false;        // the owner's
  Mover mover_ = Mover::kThread;    // the owner's
  std::atomic<bool> failed_{false};
  Status failure_;  // before failed_ is set

  std::atomic<bool> ownerWaits_{false};
  std::atomic<IoThread*> serving_;   // written by the owner, under the lock
  std::atomic<bool> closed_{false};  // ... after its socket was unwatched
  std::mutex mutex_;                 // everything below
  TcpRail rail_;
  bool fencing_ = false;     // the owner plays both sides: arrivals go straight to the sink
  bool threadReads_ = true;  // not the owner
  std::uint32_t watched_;    // what the epoll of the thread that serves has been told to watch for
  Arrival arriving_;
  bool writing_ = false;  // the payload of arriving_ into its place
};

}  // namespace faultline::transport::tcp
