#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/fabric/host_identity.h"
#include "resilient_ccl/nccl/accounts.h"
#include "resilient_ccl/nccl/attempts.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/door.h"
#include "resilient_ccl/nccl/greeting.h"
#include "resilient_ccl/nccl/handle.h"
#include "resilient_ccl/nccl/meeting.h"
#include "resilient_ccl/nccl/options.h"
#include "resilient_ccl/nccl/pair.h"
#include "resilient_ccl/transport/tcp/io_thread.h"

namespace faultline::nccl {

/// Finds, or makes, what this process shares with another one (`Pair`), and lets NCCL's
/// connections meet: one process listens and gives away a handle, the other one calls the
/// rendezvous address in it, both say where their fabric for the pair listens. Two processes that
/// call each other at the same time end up with one pair. A thread of its own answers calls, and
/// polls pairs that NCCL has not polled for a while. Thread-safe.
class Directory {
 public:
  static Result<std::unique_ptr<Directory>> create(const Options& options,
                                                   const std::vector<Device>& devices,
                                                   const Interface& management);
  ~Directory();
  /// Waits until all peers have what was sent to them, within FAULTLINE_GIVE_UP, and says goodbye
  /// to them, within kGoodbye. Once; the destructor does it otherwise.
  void finish();
  /// Of connections that are open still nothing is read or written any more: their calls fail.
  void abandon();

  /// A door for one connection after the other.
  std::uint64_t listen();
  Handle handleOf(std::uint64_t listener) const;
  void closeListener(std::uint64_t listener);
  /// The next connection that has come to this listener, once it can be used. Does not block; null:
  /// not yet.
  Result<std::unique_ptr<Connection>> accept(std::uint64_t listener);

  /// Begins to connect; the number of the attempt, never 0. What the connection sends has this
  /// device's rail as its first choice.
  Result<std::uint64_t> connect(const Handle& to, int device);
  /// Null: not yet. An attempt ends with its connection, or with an error.
  Result<std::unique_ptr<Connection>> finish(std::uint64_t attempt);

  /// Of all peers that there are and have been.
  Accounts accounts() const;
  /// Threads that move the bytes; 0: NCCL's own do.
  int ioThreads() const { return static_cast<int>(ioThreads_.size()); }

  static constexpr Duration kGoodbye = 1s;

 private:
  using PairKey = std::pair<ProcessId, int>;  // the other process, and our side
  using Entry = std::pair<PairKey, std::shared_ptr<Pair>>;

  struct Listener {
    std::deque<std::pair<std::uint32_t, std::shared_ptr<Pair>>> arrived;
    /// Process, its incarnation, its connection: who calls again because it has not heard the
    /// answer is the same one.
    std::set<std::tuple<ProcessId, std::uint64_t, std::uint32_t>> welcomed;
  };

  Directory(const Options& options, const std::vector<Device>& devices,
            const Interface& management);
  Status open();
  Status startIoThreads();
  std::vector<std::shared_ptr<Pair>> allPairs() const;
  Result<std::shared_ptr<Pair>> pairWith(const ProcessId& process, int side,
                                         const std::string& name);
  Greeting greetingFor(const Handle& to, const Pair& pair, std::uint32_t connection) const;
  std::string doubtAbout(const Handle& to) const;
  Answer answerTo(const Greeting& greeting);
  Answer welcome(const Greeting& greeting);
  void run();
  void forget(std::span<const Entry> ended);
  void sleep();

  const Options options_;
  const std::vector<Device> devices_;
  const Interface management_;
  const Terms terms_;
  const std::shared_ptr<const Identity> identity_;
  const ProcessId self_ = identity_->id();
  const auth::JobKey token_ = auth::JobKey::random();
  const std::string name_;
  const std::uint64_t node_ = fabric::fingerprintOf(fabric::hostIdentity());
  const std::shared_ptr<FirstFailure> failure_ = std::make_shared<FirstFailure>();
  std::unique_ptr<Door> door_;  // of the thread, once that runs
  transport::tcp::Endpoint rendezvous_;
  UniqueFd wakeup_;

  std::vector<std::shared_ptr<transport::tcp::IoThread>> ioThreads_;  // of all pairs

  mutable std::mutex mutex_;
  int pairsMade_ = 0;
  std::map<PairKey, std::shared_ptr<Pair>> pairs_;
  Accounts gone_;  // of pairs that have ended
  std::map<std::uint64_t, Listener> listeners_;
  Attempts attempts_;
  std::vector<pollfd> waits_;  // of the thread
  std::uint64_t numbers_ = 0;  // of listeners

  bool finished_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace faultline::nccl
