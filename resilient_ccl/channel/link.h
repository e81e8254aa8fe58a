#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/channel/acknowledgement_pacing.h"
#include "resilient_ccl/channel/control_stream.h"
#include "resilient_ccl/channel/degradation.h"
#include "resilient_ccl/channel/delivery_clock.h"
#include "resilient_ccl/channel/delivery_trial.h"
#include "resilient_ccl/channel/frame_trial.h"
#include "resilient_ccl/channel/full_rail.h"
#include "resilient_ccl/channel/grant_pacing.h"
#include "resilient_ccl/channel/link_io.h"
#include "resilient_ccl/channel/load_meter.h"
#include "resilient_ccl/channel/path_proof.h"
#include "resilient_ccl/channel/path_traffic.h"
#include "resilient_ccl/channel/patience.h"
#include "resilient_ccl/channel/prober.h"
#include "resilient_ccl/channel/rate_estimate.h"
#include "resilient_ccl/channel/receipt.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::channel {

/// One end of the conversation with one peer process: messages over slots and grants, chunks over
/// rails, and hot repair. A pure state machine: events in, LinkIo calls out; it never reads a clock
/// and has no socket. docs/channel.md shows its states. Not thread-safe.
class Link {
 public:
  /// Chunks of a window whatever the rate: a chunk arrives when its last byte does, so that one is
  /// on each of two wires (to the switch and from it). Without them a rail whose window is shorter
  /// than its round trip is measured slower, gets a shorter window, and so on.
  static constexpr Bytes kLeastWindow = 2;
  /// Rate of a rail that nothing is known about: 400 Mbit/s. Outweighed by its first chunks.
  static constexpr double kFirstRate = 50e6;
  /// A rate that was measured longer ago says nothing: the rail gets one chunk to measure it again.
  static constexpr Duration kRateIsOld = 100ms;
  /// kPull: another rail must be so much sooner to be taken instead of the first choice; rates that
  /// are as good as equal differ by less.
  static constexpr double kAsGood = 1.25;
  /// A chunk goes again over a faster rail when it needs half the time there, and an
  /// acknowledgement that is still on its way is not what makes the difference.
  static constexpr double kTailAdvantage = 2;
  static constexpr Duration kTailSlack = 2ms;
  /// Copies may be so small a share of what is delivered, beyond the first `tailBudget` of them: a
  /// rail that gets slow is rare, but among many short messages one of several rails is always the
  /// last, and copies that help none would take a third of the ports.
  static constexpr Bytes kTailShare = 64;
  /// A copy that comes second after all counts as so many: where each of them is late, as among
  /// short messages over equal rails, hardly any are made.
  static constexpr Bytes kUselessCopy = 16;
  /// With small messages: what has been outstanding on a rail for so long is not only waiting for
  /// its acknowledgement.
  static constexpr Duration kStillFresh = 2 * AcknowledgementPacing::kDelay;
  /// A rail on which short datagrams pass, and neither full ones (FrameTrial) nor the transport's
  /// bytes for so many round trips, is given up if there are others: an MTU black hole.
  static constexpr int kRoundTripsToConvict = 4;
  /// The same where full datagrams say nothing: after this share of the budget without progress,
  /// while the peer is heard.
  static constexpr int kStuckShare = 4;
  /// A port that was down when its path died may be told of so much later: Linux holds such events
  /// back for up to a second.
  static constexpr Duration kLatestPortEvent = 1s;
  /// The path of a rail that is down has fallen silent again when its last answer is older than
  /// this, and than four pauses between rounds: twenty rounds at the usual pace, and far more than
  /// an answer takes on a path that is loaded.
  static constexpr Duration kAnswersAreOld = 200ms;
  /// How long an end that is asked for rounds goes on after the last probe that asked.
  static constexpr int kAssistRounds = 4;
  /// How long an examination probes: rounds enough to tell a silent path from a lossy one.
  static constexpr Duration kExamination = 40ms;
  /// A rail is compared with what others carried within this time: they may wait for it meanwhile.
  static constexpr Duration kRateIsRemembered = 10s;
  /// A sign of the peer proves that it, and this process, worked for so long before it: longer gaps
  /// may be its absence, and make no rail slow.
  static constexpr Duration kHeardBefore = 10ms;
  /// Grants for sends that are not posted yet, at most; beyond it the peer is out of its mind.
  static constexpr std::size_t kMostEarlyGrants = 1 << 18;

  /// States of a rail at one end; docs/channel.md draws them.
  enum class Phase : std::uint8_t { kDown, kOpening, kUp, kFencing };

  struct Identity {
    std::uint32_t self = 0;
    std::uint32_t peer = 0;
    std::string name;       ///< of the peer, for messages: "rank 3"
    bool connects = false;  ///< this end opens rails, the other accepts
  };

  Link(Identity identity, const LinkOptions& options, LinkIo& io, TimePoint now);

  // --- messages ---

  /// `data` must stay valid until sendDone(token). `firstChoice`: the rail that takes it while it
  /// is up (kPinned), or while it is about as good as any other (kPull). kAnyRail: in turn
  /// (kPinned), the best (kPull).
  void postSend(const MessageKey& key, const std::byte* data, Bytes length, std::uint64_t token,
                TimePoint now, int firstChoice = kAnyRail);
  /// `region` belongs to the link until receiveDone(token). The message may be shorter. Its slot,
  /// which the next flush grants; kNoSlot when the link has failed.
  std::uint32_t postReceive(const MessageKey& key, std::byte* region, Bytes capacity,
                            const RemoteRegion& remote, std::uint64_t token, TimePoint now,
                            bool eager = false);
  /// A receive that was posted as `eager` is waited for from now on. Eager: for a short message
  /// that nobody waits for yet, into memory of whoever posts; the link is not busy for it. When a
  /// message comes that does not fit it ends by receiveFailed (kInvalidArgument), and the message
  /// waits for another receive with the same key.
  void expect(std::uint32_t slot, TimePoint now);
  /// Withdraws the sends of this stream (docs/channel.md, "Ends of streams"), forgets its grants,
  /// and refuses what is posted in it later. The other end's receives in it fail. Each of them ends
  /// by sendFailed, or sendDone, as soon as nothing reads its memory: whether all have, which they
  /// have where no rail has late writes. A stream that has ended is not used again.
  bool closeSends(const StreamKey& stream, TimePoint now);
  /// The same of its receives; the other end's sends in it fail.
  bool closeReceives(const StreamKey& stream, TimePoint now);
  /// Streams that have ended and not been forgotten: until both ends have closed them.
  std::size_t endedStreams() const { return sendStreams_.size() + receiveStreams_.size(); }
  /// Grants for sends that are not posted yet.
  std::size_t earlyGrants() const { return grants_.size(); }
  /// Whether the receive of this slot is not done yet.
  bool receives(std::uint32_t slot) const { return slots_.contains(slot); }

  // --- rails ---

  /// The work begins: a rail that has never been up counts as failed from now on, is reported as
  /// such, probed and taken back. Until then it is only connected again and again.
  void start(TimePoint now);
  void onRailOpened(int rail, std::uint32_t epoch, TimePoint now);
  void onOpenFailed(int rail, std::uint32_t epoch, TimePoint now);
  /// A hello has come to the accepting end: whether it takes the connection now. A later attempt
  /// for the epoch that is up here says that the other end never got, or has lost, the connection
  /// this end has: the rail is given up, because nothing else might ever tell.
  bool onHello(int rail, std::uint32_t epoch, std::uint32_t attempt, TimePoint now);
  /// Epoch of the rail's last connection, 0 before the first.
  std::uint32_t epoch(int rail) const { return rails_[rail].epoch; }
  bool railUp(int rail) const { return phase(rail) == Phase::kUp; }
  Phase phase(int rail) const { return rails_[rail].phase; }

  /// Promises the place to this rail until the chunk has arrived or the rail is fenced.
  Result<std::byte*> place(int rail, const ChunkHeader& header, TimePoint now);
  void onChunkArrived(int rail, const ChunkHeader& header, TimePoint now);
  void onRailFailed(int rail, Cause cause, TimePoint now);
  void onRailFenced(int rail, TimePoint now);
  /// This end's port of the rail lost or regained its carrier.
  void onPort(int rail, bool up, TimePoint now);

  // --- control ---

  void onDatagram(int path, const Datagram& datagram, TimePoint now);
  void onTick(TimePoint now);
  TimePoint nextDeadline() const;
  /// Sends what the calls since the last flush have queued; to be called after them.
  void flush(TimePoint now);
  /// Carries up to Record::kMaxPayload bytes to whoever owns the other end, over every path, once
  /// and in no order.
  void sendNote(std::span<const std::byte> note);
  /// Probes all paths for a while, whatever else is under way: the latest round before.
  std::uint32_t examine(TimePoint now);
  /// What the rounds after `after` tell of `path`; nothing when this end's port is down.
  Reach reach(int path, std::uint32_t after) const;
  /// A hint that the peer's process is gone: some connection with it has ended. It is probed, and
  /// the hint forgotten when it answers; `onRefused` may prove it true.
  void doubt(TimePoint now);
  /// The peer's host says that nobody has the socket any more that a datagram was sent to. A
  /// process closes it only when it ends, and a host does not refuse for one that is stopped.
  void onRefused(TimePoint now);
  /// Whether the other end has every note that was sent it. Words about rails are not waited for:
  /// who closes its rails and goes does not acknowledge what this end says of them.
  bool told() const { return failed_ || !control_.awaits(RecordType::kNote); }
  /// Whether the peer answers others (kSilent: none of those who were asked), after peerMissing.
  void heardElsewhere(Reach reach) { elsewhere_ = reach; }
  /// Tells the peer, over every path, that the job is given up.
  void sendAbort(const std::string& reason);

  /// Ends the conversation from this end: nothing is done and nothing called back any more, except
  /// that `flush` still repeats what was sent by sendAbort, and linkFailed says what comes from the
  /// other end's.
  void shutDown() { failed_ = true; }
  bool failed() const { return failed_; }
  /// Sends or receives posted and not done, but for eager ones that nobody waits for.
  bool busy() const { return !sends_.empty() || slots_.size() > unexpected_; }
  /// Whether every send that is done has been delivered, or has failed: small ones are done before.
  bool delivered() const;
  const LinkCounters& counters() const { return counters_; }
  const LinkOptions& options() const { return options_; }
  /// Payload that was handed to the rail since the beginning, also what was sent again.
  Bytes bytesSent(int rail) const { return rails_[rail].bytesSent; }
  /// Bytes that the rail may have unacknowledged now, before it takes another chunk.
  Bytes windowBytes(int rail) const { return windowFor(rail, options_.chunkBytes); }
  LinkLoad load(TimePoint now) const;

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // slot and chunk
  struct Placing {
    Place place;
    bool staged;  // into the rail's staging buffer: another rail writes the place
  };
  struct ChunkRef {
    std::uint64_t message = 0;
    std::uint64_t offset = 0;
    int failover = -1;  // index of the failover that it is resent for, or -1
    /// What is sent again goes first, then the oldest message.
    bool operator<(const ChunkRef& other) const {
      return std::tuple(failover < 0, message, offset) <
             std::tuple(other.failover < 0, other.message, other.offset);
    }
  };
  struct InFlight {
    std::uint64_t sequence;
    std::uint32_t length;
    ChunkRef chunk;
    bool copied = false;     // another rail has the same chunk
    bool settled = false;    // delivered by the other one; the message may be gone
    bool second = false;     // it is the copy
    int secondOf = -1;       // index of the failover of the rail that has delivered it, or -1
    bool withdrawn = false;  // settled because its message was withdrawn
  };
  struct SendMessage {
    MessageKey key;
    const std::byte* data;
    Bytes length;
    std::uint64_t token;
    int firstChoice;
    std::uint64_t chunksLeft;  // not yet acknowledged
    std::uint32_t slot = 0;
    RemoteRegion region;
    Bytes copied = 0;               // of the tail budget
    Status ended;                   // why it is withdrawn; chunks of it are still under way
    std::vector<std::byte> copy{};  // small: of the data
    bool told = false;              // small: sendDone
    bool cut = false;               // some of it is not
  };
  struct Slot {
    MessageKey key;
    std::byte* region;
    Bytes capacity;
    std::uint64_t token;
    Bytes length = transport::kUnknownLength;  // of the message; known from the first chunk on
    std::uint64_t chunksLeft = 0;
    std::vector<bool> arrived;
    Status ended;  // why it is withdrawn; rails with late writes may still write
    bool eager = false;
    bool unexpected = false;  // eager, and nobody waits for it
  };
  /// Of a stream that has ended: the sending end's, and the receiving end's.
  struct SendStream {
    Status why;
    bool closedHere = false;
    bool told = false;             // kSendsEnded is said
    bool closedThere = false;      // kReceivesClosed has come, ...
    std::uint64_t lastRecord = 0;  // ... as this control record: the grants are before it
  };
  struct ReceiveStream {
    Status why;
    bool closedHere = false;
    bool told = false;   // kReceivesClosed is said
    bool ended = false;  // kSendsEnded has come
  };
  struct Rail {
    Phase phase = Phase::kDown;
    std::uint32_t epoch = 0;
    bool portUp = true;
    // sending
    std::uint64_t nextSequence = 0;
    Receipt acknowledged;
    std::deque<InFlight> inFlight;
    Bytes bytesSent = 0;
    Bytes inFlightBytes = 0;
    RateEstimate rate{kFirstRate};
    FullRail full;
    Degradation degradation;
    bool lateWrites = false;
    TimePoint lastProgress{};
    Patience patience;
    bool suspected = false;
    DeliveryTrial trial;      // while it is
    FrameTrial frames;        // then, and while framesLost
    Bytes frame = 0;          // the latest Delivery::frame that was known
    bool framesLost = false;  // why it was given up; until it opens again
    bool framesTold = false;  // LinkIo::framesLost; until a frame passes
    // receiving
    Receipt received;
    std::optional<Placing> placing;  // being read
    std::vector<std::byte> staging;  // one chunk, once it has been needed
    // repair
    bool localFenced = false, remoteFenced = false;
    Receipt remoteHeld;
    int failover = -1;        // while it is fenced
    int latestFailover = -1;  // of this epoch
    Cause lastCause = Cause::kNone;
    TimePoint failedAt{};
    // failback
    bool struckWhileOpening = false;  // the last attempt ended because a port failed
    Duration holdOff{};
    TimePoint mayReturn{};
    TimePoint upSince{};
    TimePoint probed{};          // by the peer, over this path
    std::uint32_t attempts = 0;  // connecting end: made; accepting end: the latest taken
  };
  struct OpenFailover {
    Failover record;
    std::uint64_t chunksLeft = 0;   // to be delivered elsewhere
    bool watching = false;          // until the first begun receive gets something
    bool repairing = true;          // not fenced at both ends yet
    std::vector<int> inherited;     // failovers whose chunks went down with this rail too
    std::uint64_t secondsLeft = 0;  // under way elsewhere, and delivered here
  };

  int paths() const { return options_.rails + 1; }
  Bytes chunkLength(const SendMessage& message, std::uint64_t offset) const;
  /// Of all chunks of the message but the last.
  Bytes chunkBytes(std::uint64_t message) const {
    return static_cast<Bytes>(cut_.chunkBytes(sends_.at(message).length));
  }
  int homeRail(std::uint64_t message, std::uint64_t chunk) const;
  int liveRailFrom(int rail) const;  // `rail`, or else the next live one, its partner; -1: none
  int liveRails() const;
  /// A rail that may still come up before the work begins: its path need not be proved.
  bool awaited(const Rail& state) const { return state.epoch == 0 && !started_; }
  void heard(TimePoint now);
  Duration heardSince(TimePoint since, TimePoint now) const;
  Duration waited(TimePoint since, TimePoint now) const;
  bool stuck(int rail, TimePoint now) const;
  bool losesFrames(int rail, TimePoint now) const;
  void losesFramesUntilProved(int rail, Bytes frame, TimePoint now);
  void tellLostFrames(int rail, Bytes frame);
  void tryFrame(int rail, std::uint32_t round, TimePoint now);
  bool carriesFrames(const Rail& state, TimePoint now) const;
  /// A peer that has not been heard for so long was stopped, or cut off.
  Duration silence() const { return 2 * options_.idleProbeInterval; }
  std::deque<ChunkRef>& queueOf(int rail);
  Bytes outstandingBytes() const;

  int writerOf(const Place& place) const;  // the rail that is writing there; -1: none
  bool fits(const Slot& slot, const ChunkHeader& header) const;
  void begin(Slot& slot, const ChunkHeader& header, TimePoint now);
  void received(std::uint32_t slot, TimePoint now);  // something of it
  bool isSmall(std::uint64_t length) const {
    return options_.smallMessage > 0 && length <= static_cast<std::uint64_t>(options_.smallMessage);
  }
  bool isShort(std::uint64_t length) const { return cut_.chunkCount(length) == 1; }
  AcknowledgementPacing::Chunk pace(std::uint64_t messageLength) const;
  void grant(const GrantRecord& record, TimePoint now);
  void grantTaken(const Slot& slot, std::optional<bool> byShort);
  void releaseGrants();
  void firstReceiveMoved(Duration waited, TimePoint now);
  std::uint32_t freeSlot();
  void forgetSlot(std::uint32_t slot);
  void tellTooLong(const SendMessage& message, const GrantRecord& grant);
  void sendTooLong(std::uint64_t id, const GrantRecord& grant);
  void receiveTooLong(const TooLongRecord& record, TimePoint now);
  void endSends(const StreamKey& stream, const Status& why, bool atOnce, TimePoint now);
  void withdrawSend(std::uint64_t id, const Status& why, bool atOnce, TimePoint now);
  void finishSend(std::uint64_t id);
  void sendsFinished(const StreamKey& stream);
  void endReceives(const StreamKey& stream, const Status& why, TimePoint now);
  void stopReceiving(std::uint32_t slot, TimePoint now);
  bool mayWriteLate() const;
  void receivesClosedThere(const StreamRecord& record, std::uint64_t sequence, TimePoint now);
  void sendsEndedThere(const StreamRecord& record, TimePoint now);
  void forgetStreams();
  void connect(int rail);
  void grantArrived(const GrantRecord& grant, TimePoint now);
  void probeAnswered(int path, const ProbeReplyRecord& reply, TimePoint now);
  void answerTrial(int path);
  void enqueueMessage(std::uint64_t id, SendMessage& message, const GrantRecord& grant,
                      TimePoint now);
  void pump(TimePoint now);
  void fill(TimePoint now);
  void pull(TimePoint now);
  bool keepsUp(int rail, Bytes chunk, TimePoint now) const;
  int nextPuller(TimePoint now) const;  // the rail that takes the next chunk; -1: none now
  void copyTail(TimePoint now);
  void payForUselessCopy(Bytes length);
  bool mayCopy(const InFlight& open) const;     // within the budgets
  InFlight* tailOf(int rail, double& seconds);  // last chunk worth copying, and when it arrives
  bool hasRoom(int rail, Bytes chunk) const;    // for one that is so long
  Bytes windowFor(int rail, Bytes chunk) const;
  double guessRate() const;                         // of a rail that is new
  double rateOf(int rail) const;                    // bytes per second
  double secondsUntil(int rail, Bytes more) const;  // until it has delivered so much more
  void submit(int rail, const ChunkRef& chunk, bool copied, TimePoint now);
  void acknowledge(int rail, const Receipt& receipt, TimePoint now);
  std::pair<int, InFlight*> twinOf(int rail, const ChunkRef& chunk);  // on another rail; or null
  void settle(int rail, const InFlight& open, TimePoint now);         // delivered over this rail
  void chunkDelivered(const ChunkRef& chunk, TimePoint now);
  void chunkDone(const ChunkRef& chunk, TimePoint now);  // delivered, or withdrawn
  void compareRates(TimePoint now);
  void tellDegradation(int rail, TimePoint now);
  void endDegradation(int rail, TimePoint now);

  struct Failure {
    Cause cause = Cause::kNone;
    DeadDirection direction = DeadDirection::kUnknown;
    bool told = false;
    bool stalled = false;
    Bytes frame = 0;  // Failover::frame
  };
  void beginFence(int rail, Failure failure, TimePoint now);
  void holdOffLonger(Rail& state) const;
  void maybeFinishFence(int rail, TimePoint now);
  void pinQueues();
  void blamePort(int rail, Cause cause, TimePoint now);
  void reportMissing(int rail, TimePoint now);
  void peerGaveUp(const RailRecord& record, bool fenced, TimePoint now);
  void chunkRedelivered(int failover, TimePoint now);
  void secondEnded(int failover, Bytes arrived, TimePoint now);
  void maybeFinishFailover(int failover, TimePoint now);
  void sendRailRecord(RecordType type, int rail, std::uint32_t epoch, const Receipt& held,
                      const Failure& failure);

  Duration probeInterval(TimePoint now) const;  // Duration::max(): no rounds needed
  Duration returnProbeInterval(int rail, TimePoint now) const;
  bool answering(int rail, TimePoint now) const;
  Duration answeringInterval() const;  // between rounds to a path that answers and is not up
  void checkSuspicions(TimePoint now);
  TimePoint suspectAt(const Rail& rail) const;
  bool stalled(int rail, TimePoint now);
  void watchDelivery(int rail, TimePoint now);
  void newTrial(int rail);
  void probeUntil(TimePoint end, TimePoint now);
  void noteLife(int path, TimePoint now);
  void askSoon(int rail, TimePoint now);
  void acknowledgeRecord(bool mayWait, TimePoint now);
  void probe(TimePoint now);
  void beginProofs(int rail, TimePoint now);
  bool asksForProof(int path, TimePoint now) const;
  void tellProof(int path, bool passes, TimePoint now);
  void pathAnswered(int path, TimePoint now);
  void checkProofs(TimePoint now);
  void considerReturn(int rail, TimePoint now);
  void checkBudget(TimePoint now);
  void checkDoubt();
  std::string railHistory() const;  // "rail 0: local_nic, rail 1: up", for messages
  void fail(const Status& why);
  int controlPath() const;
  void railDown(int rail, TimePoint now);

  Identity identity_;
  LinkOptions options_;
  transport::Cut cut_;
  LinkIo& io_;
  bool failed_ = false;
  bool started_ = false;
  LinkCounters counters_;
  LoadMeter loadMeter_;

  std::vector<Rail> rails_;
  std::unordered_map<std::uint64_t, SendMessage> sends_;
  std::unordered_map<MessageKey, std::uint64_t> awaitingGrant_;
  std::unordered_map<MessageKey, GrantRecord> grants_;  // for sends not posted yet
  std::unordered_map<std::uint32_t, Slot> slots_;
  std::size_t unexpected_ = 0;                         // of those
  std::map<StreamKey, SendStream> sendStreams_;        // that have ended
  std::map<StreamKey, ReceiveStream> receiveStreams_;  // that have ended
  std::set<std::uint32_t> begun_;  // of slots_, those of which something has arrived
  TimePoint firstWaitsSince_{};    // since then the first of them has got nothing
  std::uint64_t nextMessage_ = 0;
  std::uint32_t nextSlot_ = 0;
  // Chunks granted and not yet on a rail: one queue per rail when pinned, queue 0 for all when
  // pull.
  std::vector<std::deque<ChunkRef>> queues_;
  std::vector<std::size_t> queued_;        // scratch of enqueueMessage
  std::map<int, OpenFailover> failovers_;  // those not reported yet
  int nextFailover_ = 0;
  AcknowledgementPacing acknowledgements_;
  GrantPacing pacing_;  // with small messages
  Bytes tailCredit_;    // bytes that may be copied now; below 0: not yet

  ControlStream control_;
  Prober prober_;
  std::vector<PathProof> proofs_;     // by path
  std::vector<PathTraffic> traffic_;  // by path; gaps are forgotten when the rail makes progress
  DatagramWriter writer_;
  // Probes and answers for the next flush, with their paths.
  std::vector<std::pair<int, ProbeRecord>> probes_;
  std::vector<std::pair<int, ProbeReplyRecord>> replies_;
  struct Outgoing {
    int path;
    Record record;
    Bytes frame = 0;  // not 0: in a datagram of its own, of so many bytes
  };
  std::vector<Outgoing> outgoing_;     // scratch of flush
  std::vector<RailReceipt> receipts_;  // scratch of flush
  int lastControlPath_ = 0;
  TimePoint nextRound_ = TimePoint::max();
  TimePoint lastRound_{};
  TimePoint probeUntil_{};  // until then somebody wants to know
  TimePoint lastHeard_;
  TimePoint heardSince_;  // without a longer silence
  Duration heardFor_{};   // in all, but for longer gaps: Degradation's clock
  bool missing_ = false;  // since then
  // Set: the peer's process may be gone; the latest round before that was thought.
  std::optional<std::uint32_t> doubted_;
  Reach elsewhere_ = Reach::kUnknown;
  TimePoint busySince_;  // since when there has been something to do without a pause
  TimePoint lastTick_;
  TimePoint noRailSince_ = TimePoint::max();
  DeliveryClock delivery_;
};

}  // namespace faultline::channel
