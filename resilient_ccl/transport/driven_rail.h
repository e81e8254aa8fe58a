#pragma once

#include "resilient_ccl/transport/rail.h"

namespace faultline::transport {

/// Who makes the system calls of a rail that has I/O threads. A thread's time is not the owner's,
/// but waking it takes longer than a call.
enum class Mover {
  kThread,        ///< the rail's own I/O thread
  kCommonThread,  ///< one that serves rails of other peers, too: likelier to be awake
  kOwner,         ///< whoever posts and polls
};

/// A rail together with what moves its bytes, for whoever polls. `collect`, `release` and
/// `releaseSlot` are for rails that another thread reads, `collect`, `arm` and `disarm` for those
/// in shared memory.
class DrivenRail : public Rail {
 public:
  /// Sends what has been submitted, as far as it goes without waiting, or has it sent. Once per
  /// poll round.
  virtual void transmit() = 0;
  /// Hands over what has been received since; whether there was something. Once per poll round.
  virtual bool collect() { return false; }
  /// The poller is going to sleep, and collects once more before it does: from now on it must be
  /// woken.
  virtual void arm() {}
  /// It is awake again.
  virtual void disarm() {}
  /// From now on.
  virtual void setMover(Mover /*mover*/) {}
  /// Writes no more into the place of this chunk, in case it is the one that is arriving.
  virtual void release(const ChunkHeader& /*chunk*/) {}
  /// Writes no more into this slot, in case a chunk of it is arriving. Its places are closed.
  virtual void releaseSlot(std::uint32_t /*slot*/) {}
};

}  // namespace faultline::transport
