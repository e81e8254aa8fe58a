#include "resilient_ccl/transport/tcp/threaded_rail.h"

#include <sys/epoll.h>

#include <thread>
#include <utility>

#include "resilient_ccl/transport/tcp/io_thread.h"

namespace faultline::transport::tcp {
namespace {

// Of each ring. More than a channel has outstanding on a rail (a receipt reaches 65), so that only
// a peer out of its mind can fill one.
constexpr std::size_t kRing = 128;

}  // namespace

class ThreadedRail::OwnersTurn {
 public:
  explicit OwnersTurn(ThreadedRail& rail)
      : waits_(rail.ownerWaits_), lock_(rail.mutex_, std::defer_lock) {
    waits_.store(true, std::memory_order_relaxed);
    lock_.lock();
    waits_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool>& waits_;
  std::unique_lock<std::mutex> lock_;
};

ThreadedRail::ThreadedRail(int rail, UniqueFd socket, PlaceTable& places, ArrivalSink& sink,
                           Doorbell& bell, IoThread& own, IoThread& common)
    : index_(rail),
      places_(places),
      sink_(sink),
      bell_(bell),
      own_(own),
      common_(common),
      submitted_(kRing),
      arrivals_(kRing),
      serving_(&own),
      rail_(rail, std::move(socket), static_cast<RailSink&>(*this)),
      watched_(EPOLLIN) {}

// --- the owner ---

Status ThreadedRail::start() {
  const OwnersTurn turn(*this);
  return own_.watch(*this, watched_);
}

void ThreadedRail::submit(const ChunkHeader& header, const std::byte* data, const RemoteRegion&) {
  unannounced_ = true;
  if (submitted_.push({header, data})) return;
  const OwnersTurn turn(*this);
  takeSubmitted();
  submitted_.push({header, data});
}

void ThreadedRail::transmit() {
  if (!std::exchange(unannounced_, false)) return;
  if (mover_ != Mover::kOwner) {
    serving().wake();
    return;
  }
  const OwnersTurn turn(*this);
  if (fenced()) return;
  takeSubmitted();
  if (rail_.canWrite()) rail_.write(/*streamIsWritable=*/false);
  watchSocket();
}

void ThreadedRail::setMover(Mover mover) {
  if (mover_ == mover || fenced()) return;
  if (mover == Mover::kOwner && !sink_.watch(*this).ok()) return;
  if (mover_ == Mover::kOwner) sink_.unwatch(*this);
  mover_ = mover;
  const OwnersTurn turn(*this);
  threadReads_ = mover != Mover::kOwner;
  if (threadReads_) serveBy(mover == Mover::kCommonThread ? common_ : own_);
  watchSocket();
}

/// Where the thread cannot watch it, the other one goes on.
void ThreadedRail::serveBy(IoThread& thread) {
  IoThread& before = serving();
  if (&before == &thread) return;
  if (!thread.watch(*this, watched_).ok()) return;
  before.unwatch(rail_.fd());
  serving_.store(&thread, std::memory_order_release);
  thread.wake();  // what the other one has not taken
}

void ThreadedRail::read() {
  const OwnersTurn turn(*this);
  rail_.read();
  watchSocket();
}

bool ThreadedRail::detach(std::uint64_t sequence) {
  const OwnersTurn turn(*this);
  takeSubmitted();
  return rail_.detach(sequence);
}

void ThreadedRail::divert() {
  const OwnersTurn turn(*this);
  stopWriting();
}

void ThreadedRail::tellRoom() {
  const OwnersTurn turn(*this);
  if (fenced()) return;
  takeSubmitted();
  rail_.tellRoom();
  if (rail_.canWrite()) rail_.write(/*streamIsWritable=*/false);
  watchSocket();
}

void ThreadedRail::release(const ChunkHeader& chunk) {
  const OwnersTurn turn(*this);
  const bool same = arriving_.header.slot == chunk.slot && arriving_.header.offset == chunk.offset;
  if (same) stopWriting();
}

void ThreadedRail::releaseSlot(std::uint32_t slot) {
  const OwnersTurn turn(*this);
  if (arriving_.header.slot == slot) stopWriting();
}

void ThreadedRail::stopWriting() {
  if (std::exchange(writing_, false)) rail_.divert();
}

bool ThreadedRail::handOver() {
  bool any = false;
  while (auto arrival = arrivals_.pop()) {
    sink_.arrived(index_, std::move(*arrival));
    any = true;
  }
  return any;
}

bool ThreadedRail::collect() {
  if (fenced()) return false;
  const bool failed = failed_.load(std::memory_order_acquire);  // before what arrived ahead of it
  const bool any = handOver();
  if (!failed || std::exchange(failureTold_, true)) return any;
  sink_.railFailed(index_, failure_);
  return true;
}

void ThreadedRail::fence() {
  const OwnersTurn turn(*this);
  if (fenced()) return;
  if (mover_ == Mover::kOwner) sink_.unwatch(*this);
  serving().unwatch(rail_.fd());
  handOver();
  fencing_ = true;
  rail_.fence();
  closed_.store(true, std::memory_order_release);
  own_.wake();  // both forget this rail
  common_.wake();
}

// --- the I/O thread ---

bool ThreadedRail::takeSubmitted() {
  bool any = false;
  while (const auto next = submitted_.pop()) {
    rail_.submit(next->header, next->data, {});
    any = true;
  }
  return any;
}

ThreadedRail::Served ThreadedRail::serve(const IoThread& by, std::uint32_t events) {
  if (closed_.load(std::memory_order_acquire)) return Served::kClosed;
  if (serving_.load(std::memory_order_acquire) != &by) return Served::kIdle;
  while (ownerWaits_.load(std::memory_order_relaxed)) std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  if (fenced() || &serving() != &by) return Served::kIdle;
  const bool any = takeSubmitted();
  const bool writable = (events & EPOLLOUT) != 0;
  if (writable || rail_.canWrite()) rail_.write(writable);
  if (events & ~std::uint32_t{EPOLLOUT}) rail_.read();
  watchSocket();
  return any ? Served::kBusy : Served::kIdle;
}

void ThreadedRail::watchSocket() {
  if (failed_.load(std::memory_order_relaxed)) {
    serving().unwatch(rail_.fd());  // or epoll would go on reporting the error until the fence
    return;
  }
  const std::uint32_t events =
      (threadReads_ ? EPOLLIN : 0U) | (rail_.wantsWritable() ? EPOLLOUT : 0U);
  if (std::exchange(watched_, events) != events) serving().watchFor(*this, events);
}

Result<std::byte*> ThreadedRail::place(int, const ChunkHeader& header) {
  ASSIGN_OR_RETURN(const PlaceTable::Claim claim, places_.claim(index_, header));
  arriving_ = {.header = header, .holder = claim.holder, .began = now()};
  writing_ = claim.place != nullptr;
  if (writing_ || claim.holder < 0) return claim.place;
  arriving_.staged.resize(header.length);
  return arriving_.staged.data();
}

void ThreadedRail::chunkArrived(int, const ChunkHeader& header) {
  writing_ = false;
  arriving_.ended = now();
  if (fencing_) {
    sink_.arrived(index_, std::move(arriving_));
  } else if (arrivals_.push(std::move(arriving_))) {
    bell_.ring();
  } else {
    railFailed(index_,
               errorf(Code::kInvalidArgument, "chunk {} came before {} others were acknowledged",
                      header.sequence, kRing));
  }
}

void ThreadedRail::railFailed(int, const Status& why) {
  if (failed_.load(std::memory_order_relaxed)) return;
  failure_ = why;
  failed_.store(true, std::memory_order_release);
  bell_.ring();
}

}  // namespace faultline::transport::tcp
