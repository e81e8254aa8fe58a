#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/comm/event_log.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/plan/health_feed.h"
#include "resilient_ccl/schedule/port_bandwidths.h"
#include "resilient_ccl/schedule/schedule_source.h"
#include "resilient_ccl/telemetry/collector.h"

namespace faultline::comm {

class Engine;
struct PlanSettings;

/// A collective that is under way. Thread-safe.
class Work {
 public:
  /// Whether it is done, well or not.
  bool test() const;
  /// Returns when it is done: at the latest, with an error, a little after
  /// CommunicatorOptions::collectiveTimeout, and sooner when a rank or all paths to it are lost.
  Status wait();
  /// When it was done; only after `test` or `wait`.
  TimePoint finished() const;
  /// Whether a planner was trying how long the plan takes that it used: others may be faster. The
  /// same on all ranks; only after `test` or `wait`.
  bool tried() const { return tried_; }

 private:
  friend class Communicator;
  friend class Engine;
  void complete(const Status& status);

  mutable std::mutex mutex_;
  std::condition_variable done_;
  bool isDone_ = false;
  Status status_;
  TimePoint finished_{};
  bool tried_ = false;  // written before it is done
};

struct CommunicatorOptions {
  int rank = 0;
  int size = 1;
  /// Where rank 0 listens on the management network.
  transport::tcp::Endpoint rendezvous;
  /// NICs, addresses and the link's options; `self` is set from `rank`.
  fabric::FabricOptions fabric;
  std::string algorithm = "ring";  ///< of AllReduce; each other collective has its usual one
  /// Collectives are planned: alpha, cost per message and bandwidth are measured at the start, the
  /// health of all ports all the time, all ranks agree on them, and each call uses the schedule
  /// that is made for its size and that health. `algorithm` is then one algorithm of AllReduce, of
  /// which segments and shares are planned (of "optcc" the ring, where all ports are equally fast
  /// and it is cheaper), or kAnyAlgorithm, and `segments` is not used for it. ReduceScatter and
  /// AllGather go through relays where ports lost bandwidth in one direction, the chains of
  /// Broadcast and Reduce have such ports at their end; AllToAll and the shift (sendRecv) have
  /// nothing to choose. `bandwidths` are not used.
  bool planned = false;
  static constexpr std::string_view kAnyAlgorithm = "auto";
  /// The health of the ports, by process, where it is known and not to be measured; only rank 0's
  /// counts. Null: measured.
  std::shared_ptr<plan::HealthFeed> health;
  /// A schedule that somebody wrote down, for calls of its collective (and root) by all of its
  /// ranks, of at least as many elements as it has chunks; others have the usual ones. Right
  /// (schedule/verifier.h), and equal on all ranks: a job whose ranks have different ones does not
  /// begin. Null: none. Not with `planned`.
  std::shared_ptr<const schedule::ScheduleSource> written;
  /// What is left of the ranks' ports, for algorithms that treat unequal ones differently; equal on
  /// all ranks. Empty: all healthy.
  schedule::PortBandwidths bandwidths;
  /// Parts that a collective is worked on in at the same time (lanes of the schedule).
  int segments = 2;
  /// A collective travels in slices of so many bytes, a multiple of 8, and each of its lanes has at
  /// most `window` of them under way in each direction. Equal on all ranks.
  Bytes sliceBytes = Executor::kSliceBytes;
  int window = Executor::kWindow;
  /// Whether events are made and kept; see `trace`.
  telemetry::Mode telemetry = telemetry::Mode::kOff;
  /// For all ranks to join and their rails to be connected; the same again for all to say goodbye.
  Duration setupTimeout = 30s;
  /// All ranks being there, rails that do not come up are waited for so long. Then the job begins
  /// without them, if every pair of ranks has one; a pair that has none has the give-up budget
  /// besides. Without resilience all rails are needed.
  Duration railGrace = 2s;
  /// A collective that is not done so long after its call ends the job with an error that says who
  /// takes no part in it. A rank that lives and never calls it is noticed by nothing else. More
  /// than 0; for waits that are longer on purpose, as long as they take.
  Duration collectiveTimeout = 10min;
};

/// A group of processes that reduce together: the public face of the CCL. Collective calls must be
/// made in the same order on all ranks, all calls from one thread; a progress thread does the work.
/// An error on one rank ends all collectives of all ranks with an error within a bounded time.
///
/// Counts, and what is in place, are NCCL's. p = size(). A source is only read, also where others'
/// data pass through the rank; it may lie in the target only in the place that is named. Both
/// belong to the communicator until the work is done. Counts, types, operations and roots must be
/// equal on all ranks; of 0 elements nothing is moved. A call with impossible arguments, an
/// operation that is none of ReduceOp's among them, returns work that ends with kInvalidArgument at
/// once, and counts as not made.
///
/// The first communicator of a process joins it to the job; others are made from it by `split`. All
/// of them share the process's rails and progress thread: what is known of a NIC is known to all, a
/// failed rail is fenced once for all, and an error or abort ends all. Each may be used from a
/// thread of its own. The process leaves the job when the first communicator has been finished, or,
/// without that, when the last one is destroyed.
class Communicator {
 public:
  /// Joins the job; returns when all ranks are there and their rails are up, or those that are not
  /// have been given up (CommunicatorOptions::railGrace): they are probed, and used when they come.
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorOptions& options);
  /// Work that is under way goes on, and its buffers still belong to it. Destroyed as the last one
  /// of its process and without `finish` before it, the other ranks see this process as gone.
  ~Communicator();

  /// Makes communicators of parts of this one: the ranks that give the same `color` (0 or more),
  /// ordered by `key`, and by their rank here where keys are equal. Null for who gives kNoColor. A
  /// collective call: all ranks make it. A process makes its splits one after the other, also those
  /// of different communicators.
  Result<std::unique_ptr<Communicator>> split(int color, int key);
  static constexpr int kNoColor = -1;

  /// What is left of a job after a failure, as one communicator.
  struct Shrunk {
    std::unique_ptr<Communicator> communicator;
    /// Its ranks in this one, in order: rank i was survivors[i].
    std::vector<int> survivors;
  };
  /// Goes on without the processes that are gone: ends all work of all communicators (with an
  /// error, unless they have failed already), finds out who is still there, and makes a first
  /// communicator of those, with the options of this one. Every process that goes on calls it, on
  /// its first communicator; after that, this one and those split from it only wait to be
  /// destroyed.
  ///
  /// Who does not call it within `patience` and still exists, or cannot be asked, is left out, if
  /// the others are more than half of all; else it is an error on all of them. At most three times
  /// `patience`, and the set-up timeout. After an error it may be called again, by all.
  /// Needs the management network.
  Result<Shrunk> shrink(Duration patience = 10s);

  int rank() const;
  int size() const;
  /// Ranks that share a node: 0..n-1 are on one, the next n on another, and so on. 1 when they are
  /// spread otherwise, or `FabricOptions::host` is not given.
  int ranksPerNode() const;

  /// target[i] = op over all ranks of source[i], for 0 <= i < count. In place: source == target.
  /// All ranks get the same bits. 16-bit floats are added in 32 bits and rounded when they are sent
  /// on. An average is divided once, where the last contribution is added, and then passed on.
  std::shared_ptr<Work> allReduce(const void* source, void* target, std::int64_t count,
                                  DataType type, ReduceOp op);
  /// source: p blocks of `count`; target: on rank r, op over all ranks of their block r. In place:
  /// target == source + r * count; the other blocks keep their values.
  std::shared_ptr<Work> reduceScatter(const void* source, void* target, std::int64_t count,
                                      DataType type, ReduceOp op);
  /// source: `count` elements; target: p blocks, block r from rank r. In place: source == target +
  /// rank() * count.
  std::shared_ptr<Work> allGather(const void* source, void* target, std::int64_t count,
                                  DataType type);
  /// target = the source of `root`; that of others is ignored. In place: source == target.
  std::shared_ptr<Work> broadcast(const void* source, void* target, std::int64_t count,
                                  DataType type, int root);
  /// On `root`, target = op over all ranks of source; the target of others is ignored. In place, on
  /// the root: source == target.
  std::shared_ptr<Work> reduce(const void* source, void* target, std::int64_t count, DataType type,
                               ReduceOp op, int root);
  /// Both p blocks of `count`: block r of the source goes to block rank() of rank r's target. Not
  /// in place.
  std::shared_ptr<Work> allToAll(const void* source, void* target, std::int64_t count,
                                 DataType type);
  /// target = the source of the rank before this one, along the ring of all ranks. Not in place.
  std::shared_ptr<Work> sendRecv(const void* source, void* target, std::int64_t count,
                                 DataType type);

  /// Between two ranks: the n-th send of one to the other goes to the n-th receive there, and both
  /// must have the same size. No other order is asked for, with collectives or other messages, and
  /// no grouping: all that have been called move at the same time. A send is done when the receiver
  /// has it all. Not to oneself.
  std::shared_ptr<Work> send(const void* source, std::int64_t count, DataType type, int peer);
  std::shared_ptr<Work> receive(void* target, std::int64_t count, DataType type, int peer);

  /// Done when all ranks have called it.
  std::shared_ptr<Work> barrier();

  /// Ends all collectives on all ranks with an error that carries the reason. Any thread.
  void abort(const std::string& reason);

  /// Orderly end: waits until all ranks have called it, at most the set-up timeout (the first
  /// communicator) or the collective timeout; an error soon when one of them is gone. No work may
  /// be open; for the first communicator, on no other either.
  Status finish();

  /// What happened in this process from `cursor` on, as far as it is remembered (EventLog). Any
  /// thread. Who reads often keeps a cursor: only what is new is copied then.
  CommunicatorEvents events(const EventCursor& cursor = {}) const;

  /// What was recorded so far in this process; only counted unless telemetry is on. Any thread.
  telemetry::Trace trace() const;

 private:
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  /// Of all processes of the job.
  static Result<std::unique_ptr<Communicator>> firstOf(std::shared_ptr<Engine> engine,
                                                       const CommunicatorOptions& options);
  static Result<PlanSettings> planSettings(const std::shared_ptr<Engine>& engine,
                                           const std::vector<int>& everybody,
                                           const CommunicatorOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::comm
