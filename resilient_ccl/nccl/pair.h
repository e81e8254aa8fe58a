#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/nccl/closed_unused.h"
#include "resilient_ccl/nccl/eager_receives.h"
#include "resilient_ccl/nccl/first_failure.h"
#include "resilient_ccl/nccl/meeting.h"
#include "resilient_ccl/nccl/mover_choice.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/nccl/options.h"
#include "resilient_ccl/nccl/trace.h"

namespace faultline::nccl {

/// Buffers of a grouped receive.
inline constexpr int kMostReceives = 8;
/// Requests that one connection may have open: the sends of as many grouped receives.
inline constexpr int kMostRequests = kNetMaxRequests * kMostReceives;

class Pair;

/// One of NCCL's connections, which have one direction each: this end of it.
struct Connection {
  std::shared_ptr<Pair> pair;
  std::uint32_t number = 0;  ///< the same at both ends
  bool sends = false;
  int device = 0;    ///< of the sending end: the rail that is its first choice
  int requests = 0;  ///< under way

  /// How many messages there have been with each tag: a message is known by its tag and its number
  /// among them. NCCL uses a handful of tags for a connection.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts{};
  std::uint32_t next(std::uint32_t tag);
  std::uint32_t count(std::uint32_t tag) const;
  channel::StreamKey stream(std::uint32_t tag) const { return {number, tag}; }
};

/// One isend or irecv, from its call until `test` has said that it is done.
struct Request {
  Connection* connection = nullptr;
  std::uint32_t number = 0;  ///< among the pair's requests
  std::uint32_t tag = 0;     ///< of its first buffer
  int parts = 0;             ///< buffers: 1, or those of a grouped receive
  int open = 0;              ///< of those, not done yet
  Status failure;  ///< of this message alone: its connection was closed, or it does not fit
  std::array<Bytes, kMostReceives> sizes{};
};

/// What all connections between this process and another one share: the fabric of the two, its
/// rails, and the requests under way. One for each pair of processes, whatever number of
/// communicators they have in common. Thread-safe: NCCL's threads and the plugin's own poll it in
/// turn, whoever comes first.
class Pair final : private fabric::FabricClient {
 public:
  struct Settings {
    Options options;
    std::vector<fabric::Nic> rails;
    std::vector<std::string> firstNames{};  ///< of the rails at the process's start; empty: theirs
    std::vector<int> prefixes{};            ///< of the rails' subnets; empty: not known
    /// For each rail the others in the order in which they take over its load.
    std::vector<std::vector<int>> partners;
    /// Of the process; empty: NCCL's threads move the bytes.
    std::vector<std::shared_ptr<transport::tcp::IoThread>> ioThreads;
    int firstIoThread = 0;  ///< of rail 0
    std::uint32_t management = 0;
    std::shared_ptr<const Identity> identity;  ///< of this process
    int side = 0;                              ///< 0 or 1: whose id is the smaller one
    std::string self;                          ///< this process in messages: "host:pid (address)"
    std::string peer;
    /// Of the process; null: the peer does not hear why calls of this one fail.
    std::shared_ptr<FirstFailure> failure = nullptr;
  };

  static Result<std::shared_ptr<Pair>> create(Settings settings);
  /// How the link of such a pair behaves.
  static channel::LinkOptions linkOptions(const Settings& its);
  ~Pair() override;

  /// Where this end of the two listens, for the other one.
  const fabric::ProcessAddress& address() const { return fabric_->address(); }
  /// This fabric among those that the process has had with the same peer.
  std::uint64_t incarnation() const { return incarnation_; }

  /// Somebody wants to meet the other end over this: it is kept for a while.
  void want();
  /// The other end has proved that it has this public key, and has told where it listens, and which
  /// of its incarnations that is. More than once is the same as once. kAborted: the other end is
  /// another one than before, it began anew.
  Status meet(const auth::PublicKey& key, const fabric::ProcessAddress& other,
              std::uint64_t incarnation);
  /// Whether that has been.
  bool met() const;

  /// Whether connections can be used: rails are up, or some of them and FAULTLINE_RAIL_GRACE has
  /// passed. Polls. An error when the peer cannot be reached at all.
  Result<bool> ready();

  /// A number that no other connection from this end has.
  std::uint32_t newConnection() { return connections_++; }
  /// This end of a connection, to be closed. `device`: of the sending end.
  static std::unique_ptr<Connection> open(const std::shared_ptr<Pair>& pair, std::uint32_t number,
                                          bool sends, int device = 0);

  /// Null: no more now. `data` must stay until `test` says that the request is done.
  Request* send(Connection& connection, std::uint32_t tag, const std::byte* data, Bytes size);
  struct Buffer {
    std::uint32_t tag;
    std::byte* data;
    Bytes capacity;
  };
  /// Null: no more now. Each buffer gets the next message that is sent with its tag.
  Request* receive(Connection& connection, std::span<const Buffer> buffers);

  /// Whether it is done; then it is gone, and `sizes` (null: of no interest) has what came. An
  /// error when the peer is lost: then all requests are. Its message has the peer's own reason,
  /// where the peer has told one, and the reason is told on to other peers.
  Result<bool> test(Request& request, int* sizes);

  /// Withdraws what a connection that is being closed has under way, at both ends: when this
  /// returns nothing reads or writes its memory any more. Other connections go on. Should a rail
  /// with late writes not be fenced within kCloseTime, all of the pair ends. Returns whether it was
  /// the last connection that there is of the pair.
  bool close(Connection& connection);

  /// To be called again and again by a thread of the plugin: polls when nobody else has for a
  /// while. False: there is nothing to do for this pair, as its end has come, or it was never met,
  /// and not wanted for long.
  bool tend(TimePoint now);

  /// Waits until everything that was sent has been delivered: what was copied is done for NCCL, and
  /// may have to be sent again. Returns false when that is not so at `deadline`. `unused`: only as
  /// long as no connection is open.
  bool drain(TimePoint deadline, bool unused = false);
  /// Tells the other end that this process is done, and waits until it has heard so, at most until
  /// `deadline`.
  void sayGoodbye(TimePoint deadline);

  /// As if the peer were gone, and without a word to anybody: nothing reads or writes what was
  /// posted any more.
  void abandon();

  /// Eager receives that are posted, or have got what nobody has taken.
  std::size_t postedAhead() const;

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  const std::string& peer() const { return settings_.peer; }

  /// For the counters of the process.
  struct Account {
    std::string peer;
    fabric::FabricCounters counters;
    std::vector<Bytes> sentByRail;
    std::vector<std::string> devices;  ///< of the rails, by their latest names
    Bytes sent = 0, received = 0;      ///< by messages that are done
    std::uint64_t failovers = 0, failbacks = 0, degradations = 0;
    std::uint64_t eager = 0;            ///< messages received that waited for no grant of their own
    Duration longestPause{}, paused{};  ///< of one failover, and of all
    History history;                    ///< with FAULTLINE_TRACE
    std::string failure;
  };
  Account account() const;

  static constexpr Duration kCloseTime = 1s;
  /// A rail keeps its rate as long as a chunk's round trip is shorter than this and what two chunks
  /// take: with the link's 2 ms 2.27 at 4 Gbit/s, and rings that fill a rail both ways are there
  /// (docs/gpu.md).
  static constexpr Duration kWindowTime = 4ms;
  static constexpr Duration kDrainPause = 100us;
  /// Who is told why calls fail has so long to hear it before it hears of the end.
  static constexpr Duration kTellTime = 20ms;
  /// The plugin's thread polls a pair that nobody has polled for so long.
  static constexpr Duration kIdle = 500us;
  /// After so many sends in a row, or a chunk of them, or so long, a send looks at what has come:
  /// of those that are done at once nobody asks, and acknowledgements that lie there would fill a
  /// rail's window, and make it look slow.
  static constexpr int kMostSendsUnpolled = 4;
  static constexpr Duration kLongestUnpolled = 200us;

 private:
  explicit Pair(Settings settings);

  // fabric::FabricClient
  void sendDone(int peer, std::uint64_t token) override;
  void receiveDone(int peer, std::uint64_t token, Bytes length) override;
  void sendFailed(int peer, std::uint64_t token, const Status& why) override;
  void receiveFailed(int peer, std::uint64_t token, const Status& why) override;
  void railLost(int peer, const channel::Failover& failover) override;
  void failedOver(int peer, const channel::Failover& failover) override;
  void failedBack(int peer, int rail, TimePoint when) override;
  void degraded(int peer, const channel::RailDegradation& change) override;
  void framesLost(int peer, int rail, Bytes frame) override;
  void pathProved(int peer, const channel::PathProved& proved, const std::string& words) override;
  void explained(int peer, int rail, channel::Cause cause, channel::Where where) override;
  void linkFailed(int peer, const Status& why) override;
  void wordArrived(int peer, std::span<const std::byte> word) override;

  int other() const { return 1 - settings_.side; }
  Request* take(Connection& connection, int parts);
  void giveBack(Request& request);
  void partDone(std::uint64_t token, Bytes length);
  void finish(const EagerReceives::Arrived& arrived);
  void postAhead(const Connection& connection, std::uint32_t tag);
  std::string crossedWith(const fabric::ProcessAddress& other) const;
  Status sharedAddress(const fabric::ProcessAddress& other) const;
  bool givenUp(TimePoint now);
  bool underWay(const Connection* connection) const;
  void push(TimePoint now);
  void poll(TimePoint now, Duration timeout = Duration::zero());
  template <typename Call>
  void serve(TimePoint now, const Call& call);
  void closeStreams(const Connection& connection);
  bool closedUnusedThere(const Connection& connection) const {
    return closedUnused_.has(connection.number, connection.sends);
  }
  void fail(const Status& why);
  Status withReason(const Status& why, FirstFailure::Kind kind);
  bool tellFailure();
  void end();
  void count(Account& account) const;
  bool traces() const { return !settings_.options.trace.empty(); }
  void happened(telemetry::EventKind kind, int rail, TimePoint when,
                const channel::Failover* failover = nullptr);
  std::string railName(int rail) const;

  const Settings settings_;
  const std::uint64_t incarnation_;
  mutable std::mutex mutex_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::optional<std::uint64_t> otherIncarnation_;
  TimePoint met_{}, reached_{}, wanted_{};
  bool started_ = false;
  std::vector<channel::Cause> lost_;   // by rail, as the log has said; kNone: it is not
  std::optional<TimePoint> departed_;  // when the other process has said goodbye
  std::atomic<bool> failed_{false};
  Status failure_;
  ClosedUnused closedUnused_;
  HeardFailure heard_;             // why calls of the other process fail
  std::uint32_t toldFailure_ = 0;  // FirstFailure::number
  bool serving_ = false;           // inside a call of the fabric
  TimePoint polled_{};
  TimePoint served_{};     // polled or pushed
  int sendsUnpolled_ = 0;  // since polled_
  Bytes bytesUnpolled_ = 0;
  MoverChoice mover_;
  EagerReceives eager_;
  std::atomic<std::uint32_t> connections_{0};
  std::atomic<int> open_{0};  // connections
  std::deque<Request> requests_;
  std::vector<std::uint32_t> free_;
  Account account_;
};

}  // namespace faultline::nccl
