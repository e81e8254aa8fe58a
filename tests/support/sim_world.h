#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "resilient_ccl/channel/link.h"
#include "tests/support/sim_clock.h"
#include "tests/support/sim_trace.h"

namespace faultline::test {

class SimRail;

/// A rail of one end goes from one state to another.
struct RailChange {
  TimePoint when;
  int end;
  int rail;
  channel::Link::Phase from, to;
  std::uint32_t epoch;  ///< afterwards
  Input input;          ///< what made it
};

/// Which messages of a stream an end closes.
enum class Side : std::uint8_t { kSends, kReceives };

/// How a message is posted.
struct Posting {
  Duration sendDelay{};
  Duration receiveDelay{};
  int stream = 0;
  Bytes room = -1;  ///< of the receive; -1: as long as the message
  bool sent = true, received = true;
  int firstChoice = channel::kAnyRail;
};

/// A rail that is broken before the links are made: the port of an end, or its wires.
struct DeadRail {
  int rail = 0;
  bool port = false;
  int end = 0;
  bool fromEnd0 = true, fromEnd1 = true;
};

struct SimOptions {
  channel::LinkOptions link;
  std::uint64_t seed = 1;
  bool lateWrites = true;  ///< rails with RDMA's semantics, otherwise with TCP's
  bool mixed = false;      ///< those with odd numbers are of the other kind
  double datagramLoss = 0;
  double datagramDuplication = 0;
  Duration datagramJitter = 200us;
  /// Ends can look at their ports; otherwise only events tell, `portEventDelay` later.
  bool portsSeen = true;
  Duration portEventDelay{};
  /// Share of the datagrams that are held up for so long, and then overtaken by many.
  double datagramsHeld = 0;
  Duration heldFor = 200ms;
  Duration wireLatency = 50us;  ///< of rails, one way
  Duration openTime = 300us;
  Duration fenceTime = 100us;
  /// transport::Delivery::frame of all rails; 0: not known.
  Bytes frame = 0;
  /// SimWorld::lateDelivery from the beginning.
  Duration lateDelivery{};
  /// Rails wait 200, 400, ... ms before they send again what was lost, as TCP does; else 5 ms.
  bool backsOff = false;
  std::vector<DeadRail> deadRails;
  /// Ends and paths: what these ends send over these paths is dropped, while rails are connected.
  std::set<std::pair<int, int>> silentPaths{};
  /// With dead rails the work begins so long after the others are up; at one end, `lateEnd`, later.
  Duration grace = 10ms;
  int lateEnd = 0;
  Duration lateStart{};
  /// Messages of even numbers have a rail as their first choice, one after the other.
  bool firstChoices = false;
  /// Before each receive an eager one is posted, for messages of up to `link.smallMessage`.
  bool eager = false;
  bool trace = false;  ///< keep what SimWorld::trace returns
};

/// Two processes and the network between them: the channel's state machine at both ends, rails
/// with RDMA's or TCP's semantics, lossy datagram paths, ports that go down, processes that pause.
/// Everything from one seed, under a simulated clock.
class SimWorld {
 public:
  static constexpr int kEnds = 2;

  /// Begins with all rails connected, but those that are dead.
  explicit SimWorld(const SimOptions& options);
  ~SimWorld();

  SimClock& clock() { return clock_; }
  channel::Link& link(int end);

  /// Posts a message of `length` bytes from `from` to the other end, at both ends now.
  void message(int from, Bytes length, const Posting& posting = {});
  /// `end` closes its sends, or its receives, of a stream; judges what that gives back at once.
  void close(int end, Side side, int stream);

  /// Breaks rail `rail`: nothing comes through in the given directions (from end 0, from end 1).
  void blackHole(int rail, bool fromEnd0 = true, bool fromEnd1 = true);
  /// Frames of rail `rail` that are longer are lost, in the given directions, and nobody says so.
  void longestFrame(int rail, Bytes longest, bool fromEnd0 = true, bool fromEnd1 = true);
  /// They do not even leave: the transport keeps them (Delivery::refused).
  void refusesLongFrames(int rail, bool refuses = true);
  /// The port of `end` goes down, and its process learns of it.
  void portDown(int end, int rail);
  /// Both ends see a reset connection.
  void reset(int rail);
  void heal(int rail);
  void managementPath(bool up);
  void slow(int rail, double bytesPerSecond);
  /// Chunks under way on a wire that dies are written so much later all the same.
  void lateDelivery(Duration delay);
  /// The process does nothing for so long; what comes in meanwhile waits.
  void pause(int end, Duration length);
  /// With its machine: nothing comes from there any more.
  void kill(int end);
  /// The process alone: its machine ends its connections and refuses what is sent to it.
  void exit(int end);
  /// Some other connection of `end` with the other end has ended.
  void doubt(int end);
  void note(int from, std::span<const std::byte> note);

  /// Called after each change of a rail since the construction.
  std::function<void(const RailChange&)> onRailChange;
  /// Called when `end` finds that a rail has become slow, or is so no more.
  std::function<void(int end, const channel::RailDegradation&)> onDegraded;

  // --- what is really the case ---

  /// Whether `end` has begun; until then it connects what is missing again and again.
  bool started(int end) const { return started_[end]; }
  /// Whether the ports of a rail are up and its wires carry in both directions.
  bool carries(int rail) const;
  bool carriesFrom(int end, int rail) const;
  /// The latest moment at which the rail was, or was not, whole; the epoch of the clock: never.
  TimePoint lastBroken(int rail) const;
  /// How often this end's transport was asked to say that it takes bytes.
  int roomTold(int end, int rail) const {
    const auto found = roomTold_.find({end, rail});
    return found == roomTold_.end() ? 0 : found->second;
  }
  /// When the rail last carried datagrams and, as good as, no payload.
  TimePoint lastStuck(int rail) const;
  static constexpr double kStuckRate = 1;  ///< bytes per second
  TimePoint lastWhole(int rail) const;
  /// The longest time that a rail has waited for its timer although it was whole again, and how
  /// many datagrams in a row an outage took that were sent over its path in one direction: the most
  /// of all outages.
  Duration longestBackOff(int rail) const { return health_[rail].longestBackOff; }
  int mostLostInARow(int rail) const { return health_[rail].mostLost; }
  /// When its wires were last slower than kEqual of another rail's.
  TimePoint lastSlow(int rail) const;
  static constexpr double kEqual = 0.8;
  /// Until when the process of `end` has been stopped: possibly later than now; for ever if killed.
  TimePoint stoppedUntil(int end) const;
  bool managementPathUp() const { return managementUpSince_ != TimePoint::max(); }
  /// TimePoint::max() while it is not.
  TimePoint managementPathUpSince() const { return managementUpSince_; }
  /// Of the chunks that `end` had outstanding on the rail of its failover: bytes that came to the
  /// other end over that rail and over another one.
  Bytes arrivedTwice(int end, const channel::Failover& failover) const;
  bool portWasDown(int end, int rail) const;
  /// Whether the process of `end` was told so while it was down.
  bool portDownTold(int end, int rail) const;
  const SimOptions& options() const { return options_; }

  /// Runs until every message has been delivered and acknowledged, or the time is over.
  bool runUntilIdle(Duration limit);
  void run(Duration time);

  /// Problems found: wrong bytes, writes into memory that had been given back, double completions,
  /// more sent again than the window of the failed rail, more received twice than the tail budget.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<channel::Failover>& failovers(int end) const;
  /// The same as they began (LinkIo::railLost).
  const std::vector<channel::Failover>& losses(int end) const;
  int failbacks(int end) const;
  /// Times that `end` asked whether others hear its peer.
  int missed(int end) const;
  /// Failovers of which `end` was told the cause after they had been reported.
  int explained(int end) const;
  /// Rails that `end` holds to be far slower than the others.
  const std::set<int>& degradedRails(int end) const;
  /// Payload that has come to `end` over one rail, wanted or not.
  Bytes arrivedBytes(int end, int rail) const;
  /// What the link of `end` told the rail last, bytes/s (LinkIo::tellRate); 0: nothing.
  double rateTold(int end, int rail) const;
  /// Control datagrams that the end has sent over a path (the last one: the management network).
  std::int64_t datagramsSent(int end, int path) const;
  /// What `end` was told of paths that carry no datagrams.
  const std::vector<channel::PathProved>& proved(int end) const;
  /// What LinkIo::framesLost was called with.
  const std::vector<std::pair<int, Bytes>>& lostFrames(int end) const;
  /// From now on they all carry some.
  void healPaths() { options_.silentPaths.clear(); }
  /// What Link::sendNote of the other end has brought.
  const std::vector<std::vector<std::byte>>& notes(int end) const;
  /// Runs `event` in the process of `end`, as its engine would. What comes in by one `socket` is
  /// read in order.
  void runEvent(int end, Input input, std::function<void()> event, int socket = kNoSocket);
  /// The latest changes of rails, records of control and actions, one line each.
  const std::deque<std::string>& trace() const { return trace_.lines(); }
  void addTrace(const std::string& line) { trace_.add(clock_.now(), line); }
  const Status& error(int end) const;
  int completed() const { return completed_; }
  /// Messages that have failed at the sending, and at the receiving end.
  int failedSends() const;
  int doneSends() const;
  int failedReceives() const;
  bool lateWrites(int rail) const {
    return options_.lateWrites != (options_.mixed && rail % 2 == 1);
  }
  int posted() const { return static_cast<int>(messages_.size()); }
  /// Compares all memory that was given back with what it must hold; call at the end.
  void checkMemory();

 private:
  static constexpr int kNoSocket = -1;
  struct End;
  struct Message;
  struct Event {
    Input input;
    int socket;
    std::function<void()> run;
  };

  int socketOf(int rail) const { return options_.link.rails + 1 + rail; }
  void settle(int end);
  void send(int from, int path, const std::vector<std::byte>& datagram, Bytes frame);
  std::unique_ptr<SimRail> makeRail(int end, int rail);
  void open(int end, int rail, std::uint32_t epoch, std::uint32_t attempt);
  void abandon(int end, int rail);
  /// Those that can be.
  bool allRailsUp() const;
  void awaitRails();
  void breakBeforehand(const DeadRail& dead);
  void observe(int end, Input input);
  void noteHealth(int rail, bool wholeBefore);
  void tellOfPort(int end, int rail);

  struct Health {
    TimePoint lastBroken{};
    TimePoint lastStuck{};
    TimePoint lastWhole{};
    TimePoint lastSlow{};
    Duration longestBackOff{};
    std::array<int, kEnds> lost{};  // in a row, by sender
    int mostLost = 0;
  };

  SimOptions options_;
  SimClock clock_;
  Random random_;
  std::array<std::unique_ptr<End>, kEnds> ends_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<std::string> problems_;
  int completed_ = 0;
  std::set<std::tuple<int, Side, int>> closed_;  // ends, what, and streams
  std::map<std::pair<int, int>, int> roomTold_;  // by end and rail
  TimePoint managementUpSince_{};                // max: it is down
  std::array<bool, kEnds> started_{};
  std::vector<Health> health_;  // of each rail, when it last changed
  SimTrace trace_;
};

}  // namespace faultline::test
