#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/units.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/comm/program.h"
#include "resilient_ccl/comm/reducer.h"
#include "resilient_ccl/comm/staging.h"
#include "resilient_ccl/reduction/data_type.h"

namespace faultline::comm {

using reduction::DataType;
using reduction::ReduceOp;

/// Where the executor's messages go. Completions come back through Executor::messageDone.
class MessagePort {
 public:
  virtual ~MessagePort() = default;
  virtual void postSend(int peer, const channel::MessageKey& key, const std::byte* data,
                        Bytes length, std::uint64_t token) = 0;
  virtual void postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                           Bytes capacity, std::uint64_t token) = 0;
};

/// Runs one rank's part of a schedule over messages: issues the operations of each lane in order
/// as their waits come true, reduces what arrives, and counts what is done. Driven by its calls;
/// no thread, no clock. The order of reductions is the schedule's, whatever the network does.
///
/// An operation travels in slices of the staging pool's block size, each a message of its own, so
/// that the next operation can follow while it is still running (`Program` says when). A lane has
/// at most `window` slices under way for each peer that it sends to, in the order of the schedule,
/// and as many for each that it receives from: posting a receive grants it, and the grant comes
/// back when the slice has been received, or reduced. Staging memory is bounded so. 16-bit floats
/// that are reduced into one piece several times in a row are added up in 32 bits and rounded once.
class Executor {
 public:
  /// Enough to hide the way of a grant and of its data, few enough that peers do not collide.
  static constexpr int kWindow = 4;
  static constexpr Bytes kSliceBytes = 256 << 10;

  /// A message's stream is its collective's number, and in so many low bits its lane.
  static constexpr int kLaneBits = 16;

  static constexpr schedule::Piece kEverything{0, std::numeric_limits<std::int64_t>::max()};

  struct Job {
    std::shared_ptr<const Program> program;
    const void* source = nullptr;  ///< equal to `target` when in place
    void* target = nullptr;
    /// Which elements of the schedule's buffer `source` and `target` hold; no piece has some
    /// inside `written` and some outside. What is written elsewhere goes to `scratch`.
    schedule::Piece given = kEverything;
    schedule::Piece written = kEverything;
    std::shared_ptr<std::byte> scratch = nullptr;  ///< as large as the buffer, where needed
    DataType type = DataType::kF32;
    ReduceOp op = ReduceOp::kSum;
    std::uint32_t communicator = 0;
    std::uint64_t number = 0;  ///< of the collective in its communicator; equal on all ranks
    int window = kWindow;      ///< at least 1
  };

  /// All three must outlive it. Its tokens, of messages and reductions alike, have `tag` in their
  /// upper 32 bits.
  Executor(Job job, MessagePort& port, Reducer& reducer, StagingPool& staging, std::uint32_t tag);

  static std::uint32_t tagOf(std::uint64_t token) {
    return static_cast<std::uint32_t>(token >> 32);
  }

  /// Copies what an out-of-place job does not write from its source to its target. Must be done
  /// before the start unless the program reads its source, else before the caller goes on. A
  /// program that does not finds all of the source in the target, or in the scratch.
  static void copySource(const Job& job);
  /// For a job whose program is not known yet: copies what the source and the target both hold,
  /// which harms no program. Those that do not read the source need `copySource` besides.
  static void copyShared(const Job& job);

  /// Issues what can be issued. To be called once; later steps follow from completions.
  void start();
  /// A message is done; its reduction is done.
  void messageDone(std::uint64_t token);
  void reduced(std::uint64_t token);
  bool finished() const { return open_ == 0; }

 private:
  struct StepState {
    std::int64_t firstSlice = 0;  // of the lane's
    std::int64_t slices = 0;
    std::int64_t contiguous = 0;  // slices done without a gap, from the first
    std::int64_t doneSlices = 0;  // all that are done
  };
  /// What of a lane's sends, or receives, has been posted.
  struct Queue {
    std::size_t step = 0;    // position in Lane::sends or receives
    std::int64_t slice = 0;  // of that step
    int open = 0;            // posted and not done
  };
  struct Lane {
    std::int64_t next = 0;  // first step not begun
    Queue sends, receives;
    std::vector<StepState> steps;
    std::vector<bool> done;           // by slice
    std::vector<bool> submitted;      // by slice: to the reducer
    std::vector<std::uint32_t> held;  // messages that wait for the reductions before them
  };
  /// One slice under way; the lower half of its token is its index.
  struct Pending {
    int lane = 0;
    std::int64_t step = 0;
    std::int64_t slice = 0;
    StagingPool::Block staging;
  };

  void advance(int lane);
  void advanceAll();
  bool advanceOne(int lane);
  bool waitsHold(const Program::Step& step) const;
  /// Whether all that a slice must not overtake is done; `submittedCounts`: reductions, when they
  /// are in the reducer's queue.
  bool mayGo(int lane, std::int64_t step, std::int64_t slice, bool submittedCounts) const;
  bool wholeDone(int lane, std::int64_t step) const;
  void copy(int lane, std::int64_t step);
  static std::int64_t nextToPost(const Lane& lane, const std::vector<std::int64_t>& order,
                                 int window, Queue& queue);
  void postSends(int lane);
  void postReceives(int lane);
  bool submitHeld(int lane);
  void submit(std::uint32_t index);
  void sliceDone(std::uint32_t index);
  void stepDone(int lane, std::int64_t step);
  /// A record for the next slice of the queue, which is open now.
  std::uint32_t newPending(int lane, std::int64_t step, Queue& queue);
  schedule::Piece sliceOf(const schedule::Piece& piece, std::int64_t slice) const;
  channel::MessageKey nextKey(int lane, int peer, bool send);
  std::byte* target(std::int64_t element) const {
    const std::int64_t place = element - job_.written.offset;
    if (place < 0 || place >= job_.written.count) {
      return job_.scratch.get() + element * elementSize_;
    }
    return static_cast<std::byte*>(job_.target) + place * elementSize_;
  }
  const std::byte* source(std::int64_t element) const {
    return static_cast<const std::byte*>(job_.source) +
           (element - job_.given.offset) * elementSize_;
  }
  const Program::Step& stepOf(int lane, std::int64_t index) const {
    return job_.program->lanes()[lane].steps[index];
  }
  /// Where a step finds its elements.
  const std::byte* input(const Program::Step& step, std::int64_t element) const {
    return step.readsSource && job_.program->readsSource() ? source(element) : target(element);
  }

  Job job_;
  MessagePort& port_;
  Reducer& reducer_;
  StagingPool& staging_;
  const std::uint64_t tag_;
  const Bytes elementSize_;
  const std::int64_t sliceElements_;
  const bool wide_;  // sums of 16-bit floats are kept in 32 bits along a chain
  std::vector<Lane> lanes_;
  std::int64_t open_ = 0;  // steps not done
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> sequences_;            // of the messages by lane, peer, direction
  std::vector<std::unique_ptr<float[]>> wideSums_;  // by chain, while it runs
};

}  // namespace faultline::comm
