#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/channel/link.h"
#include "resilient_ccl/comm/reduce.h"
#include "resilient_ccl/fabric/fabric.h"

namespace faultline::comm {

/// A collective that is under way. Thread-safe.
class Work {
 public:
  /// Whether it is done, well or not.
  bool test() const;
  /// Returns when it is done: within a bounded time, as the channel gives up by its own budget.
  Status wait();
  /// When it was done; only after `test` or `wait`.
  TimePoint finished() const;

 private:
  friend class Communicator;
  void complete(const Status& status);

  mutable std::mutex mutex_;
  std::condition_variable done_;
  bool isDone_ = false;
  Status status_;
  TimePoint finished_{};
};

struct CommunicatorOptions {
  int rank = 0;
  int size = 1;
  /// Where rank 0 listens on the management network.
  transport::tcp::Endpoint rendezvous;
  /// NICs, addresses and the link's options; `self` is set from `rank`.
  fabric::FabricOptions fabric;
  std::string algorithm = "ring";
  /// Parts that a collective is worked on in at the same time (lanes of the schedule).
  int segments = 2;
  /// For all ranks to join and all rails to be connected; the same again for all to say goodbye.
  Duration setupTimeout = 30s;
};

/// What the network did to this process.
struct CommunicatorEvents {
  struct PeerFailover {
    int peer;
    channel::Failover failover;
  };
  struct PeerFailback {
    int peer;
    int rail;
    TimePoint when;
  };
  std::vector<PeerFailover> failovers;
  std::vector<PeerFailback> failbacks;
  fabric::FabricCounters counters;
};

/// A group of processes that reduce together: the public face of the CCL. Collective calls must be
/// made in the same order on all ranks and from one thread; a progress thread does the work. An
/// error on one rank ends all collectives of all ranks with an error within a bounded time.
class Communicator {
 public:
  /// Joins the job; returns when all ranks are there and every rail is up.
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorOptions& options);
  /// Without `finish` before it, the other ranks see this process as gone.
  ~Communicator();

  int rank() const;
  int size() const;

  /// target[i] = op over all ranks of source[i], for 0 <= i < count. In place when source ==
  /// target, else the two must not overlap. Both belong to the communicator until the work is done.
  std::shared_ptr<Work> allReduce(const void* source, void* target, std::int64_t count,
                                  DataType type, ReduceOp op);
  /// Done when all ranks have called it.
  std::shared_ptr<Work> barrier();

  /// Ends all collectives on all ranks with an error that carries the reason. Any thread.
  void abort(const std::string& reason);

  /// Orderly end: waits until all ranks have called it, at most the set-up timeout; an error at
  /// once when one of them is gone. No work may be open.
  Status finish();

  /// What happened so far. Any thread.
  CommunicatorEvents events() const;

 private:
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::comm
