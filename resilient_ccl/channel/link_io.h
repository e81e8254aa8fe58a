#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/transport/rail.h"

// What a link is told, tells, and asks of the world.

namespace faultline::channel {

using transport::ChunkHeader;
using transport::RemoteRegion;

/// How chunks are assigned to rails.
enum class Policy : std::uint8_t {
  kPinned,  ///< a chunk belongs to a rail; when that fails, to its partner: hot repair alone
  kPull,    ///< each rail takes the next chunk when its window has room, and the last chunks of
            ///< a slow one go again over a faster one: balances by itself
};

/// Of a message: no rail is its first choice.
inline constexpr int kAnyRail = -1;

/// Everything about a link that can be chosen. Equal on both ends, except for `partners`.
struct LinkOptions {
  int rails = 1;
  Policy policy = Policy::kPinned;
  /// Off: no probes, no failover, no give-up budget, as in a stock library. A reset is an error, a
  /// silent rail hangs.
  bool resilient = true;
  Bytes chunkBytes = 64 << 10;
  /// The least part into which a message is cut so that it travels on all rails at once
  /// (transport::Cut); 0: an eighth of a chunk. With chunkBytes a shorter message stays whole, and
  /// costs one header and one call instead of one for each rail: where many messages are under way,
  /// of which each may take another rail, that is all there is to gain.
  Bytes leastPart = 0;
  transport::Cut cut() const { return {.longest = chunkBytes, .rails = rails, .least = leastPart}; }
  /// The window of a rail, bytes that the other application has not acknowledged yet: kLeastWindow
  /// chunks, and what the rail carries in this time, as measured; never more than a receipt
  /// reaches.
  Duration windowTime = 2ms;
  /// kPull: bytes of one message that may be sent twice, because a faster rail is likely to deliver
  /// them sooner than the one that has them; and of all messages, beyond a kTailShare-th of what
  /// has been delivered since, of which a copy that came second takes kUselessCopy times its
  /// length. 0, or not resilient: none.
  Bytes tailBudget = 512 << 10;
  /// A message of up to so many bytes is *small*: it is copied as soon as it is posted and the peer
  /// has asked for it, and its buffer is the client's again (sendDone), though it has not been
  /// delivered. So nobody waits for its acknowledgement, which may be late, and grants wait for
  /// each other while the peer has some left: next to no datagrams. What is copied is bounded by
  /// what the peer has posted. Who ends a process sees to it that nothing is undelivered
  /// (Link::delivered). Other messages of one chunk are not copied, but their acknowledgement may
  /// be late, too: such a client has others under way. 0: none.
  Bytes smallMessage = 0;
  /// Receives are numbered from 0 to one less, and then again; more than there are at a time.
  std::uint32_t slotNumbers = transport::kNoSlot;
  /// For each rail all others, in the order in which they take over its chunks (kPinned), or are
  /// preferred for them where several are about as good (kPull). Empty: in the order of their
  /// numbers, from the next one on.
  std::vector<std::vector<int>> partners;
  /// A rail with chunks outstanding that makes no progress this long is probed: at least, where
  /// its acknowledgements usually take longer (Patience).
  Duration suspectAfter = 10ms;
  /// Pause between probe rounds while a rail is suspected.
  Duration suspectProbeInterval = 2500us;
  /// Pause between probe rounds while a rail is down and may have come back: the first one, and
  /// that of a path that answers again.
  Duration returnProbeInterval = 10ms;
  /// The longest one, of a path that has been dead for minutes.
  Duration longestReturnInterval = 1s;
  /// Pause between probe rounds that only ask whether the peer is still there.
  Duration idleProbeInterval = 200ms;
  /// Answers in a row after which a path counts as healed.
  int answersToReturn = 3;
  /// A failed rail is not taken back before this; grows holdOffGrowth times with each failure that
  /// follows within holdOffMemory of the return before, up to longestHoldOff. A train of short
  /// flaps costs at most a few migrations: 50 ms, 500 ms, 5 s, 10 s. No rail is held off while
  /// there is no other.
  Duration holdOff = 50ms;
  int holdOffGrowth = 10;
  Duration holdOffMemory = 10s;
  Duration longestHoldOff = 10s;
  /// After this long without any live rail, or without any sign of the peer, the link is given up.
  Duration giveUp = 10s;
};

/// One failover of one rail as this end saw it.
struct Failover {
  int rail = 0;
  Cause cause = Cause::kNone;
  /// Of kPath alone: which direction was lost, as far as it was known when the repair was over.
  DeadDirection deadDirection = DeadDirection::kUnknown;
  Where where = Where::kUnknown;
  bool stalled = false;  ///< given up because the transport was stuck, not the path
  /// Not 0: datagrams of so many bytes are lost on the path, and shorter ones are not.
  Bytes frame = 0;
  bool told = false;        ///< the other end noticed first
  bool sending = false;     ///< chunks of this end were outstanding on it
  bool receiving = false;   ///< a message to this end had begun and was not complete
  TimePoint detected{};     ///< this end gave the rail up
  TimePoint fenced{};       ///< both ends had closed it and knew what had arrived
  TimePoint redelivered{};  ///< the last chunk outstanding on it had arrived elsewhere
  TimePoint restored{};     ///< the rail was taken back; the epoch of the clock: not yet
  Bytes resentBytes = 0;
  /// Of the chunks of this end that were outstanding on the rail: what the other end has received
  /// over it and, because a copy was under way, over another one, too.
  Bytes duplicateBytes = 0;
  /// Longest time without progress of a receive that had begun, seen until the redelivery.
  Duration receiveStall{};
};

/// A rail has become far slower than the others, or is so no more.
struct RailDegradation {
  int rail = 0;
  bool degraded = false;
  double share = 1;  ///< what it carried meanwhile, of the fastest other rail
  TimePoint when{};
};

/// No datagram has ever passed over a path that should carry some, or one does at last.
struct PathProved {
  int path = 0;         ///< a rail, or behind the last one the management network
  bool passes = false;  ///< false: none has
  DeadDirection direction = DeadDirection::kUnknown;  ///< which carries nothing
  int rounds = 0;                                     ///< of probes, by now
  Duration within{};                                  ///< since when
  bool othersAnswer = false;                          ///< other paths to the same peer do
};

/// What a link has done so far.
struct LinkCounters {
  std::uint64_t chunksSent = 0, chunksArrived = 0, chunksResent = 0, chunksDuplicate = 0;
  Bytes bytesSent = 0, bytesArrived = 0, bytesResent = 0, bytesDuplicate = 0;
  /// Sent again over a faster rail while another still had them.
  std::uint64_t chunksCopied = 0;
  Bytes bytesCopied = 0;
  std::uint64_t failovers = 0, failbacks = 0, suspicions = 0, stalls = 0, probesSent = 0;
  /// Times that a rail became far slower than the others, and lived.
  std::uint64_t degradations = 0;
  std::uint64_t datagramsSent = 0;
  /// The longest time in which the oldest receive that had begun got nothing, whether a rail was
  /// given up or not.
  Duration longestReceiveStall{};

  LinkCounters& operator+=(const LinkCounters& other);
};

/// What a link asks of the world. None of these may call the link back before it has returned.
class LinkIo {
 public:
  virtual ~LinkIo() = default;
  /// Sends a control datagram over path 0 .. rails-1 (the NIC of that rail) or `rails` (management
  /// network), padded behind its end to `frame` bytes if it is shorter. It may be lost.
  virtual void sendDatagram(int path, std::span<const std::byte> datagram, Bytes frame) = 0;
  virtual void submit(int rail, const ChunkHeader& header, const std::byte* data,
                      const RemoteRegion& region) = 0;
  /// transport::Rail::lateWrites of the rail, also before it is opened.
  virtual bool lateWrites(int rail) const = 0;
  /// transport::Rail::detach.
  virtual bool detach(int rail, std::uint64_t sequence) = 0;
  /// transport::Rail::divert.
  virtual void divert(int rail) = 0;
  /// transport::Rail::delivery of a rail that is up.
  virtual transport::Delivery delivery(int rail) const = 0;
  /// transport::Rail::tellRate of a rail that is up.
  virtual void tellRate(int rail, double bytesPerSecond) = 0;
  /// transport::Rail::tellRoom of a rail that is up.
  virtual void tellRoom(int rail) = 0;
  /// Whether this end's port of the rail is down, as far as can be told at once: onPort may come
  /// later.
  virtual bool portLost(int rail) const = 0;
  /// Close this end of the rail (transport::Rail::fence); then onRailFenced.
  virtual void fenceRail(int rail) = 0;
  /// Connect the rail for this epoch (only asked of the connecting end); then onRailOpened or
  /// onOpenFailed.
  /// `attempt` grows with every call and goes into the hello: see Link::onHello.
  virtual void openRail(int rail, std::uint32_t epoch, std::uint32_t attempt) = 0;
  /// Stop connecting; nothing is called back for it.
  virtual void cancelOpen(int rail) = 0;
  virtual void sendDone(std::uint64_t token) = 0;
  virtual void receiveDone(std::uint64_t token, Bytes length) = 0;
  /// The message will not be delivered, or was withdrawn; the link goes on. Its memory is the
  /// client's again.
  virtual void sendFailed(std::uint64_t token, const Status& why) = 0;
  virtual void receiveFailed(std::uint64_t token, const Status& why) = 0;
  /// The receive of this slot has ended before it was complete: threads that read rails write
  /// nothing there any more when this returns. Rails that the link itself gave a place are
  /// diverted.
  virtual void closeSlot(std::uint32_t slot) = 0;
  /// A rail is given up, at once: `failover` tells what is known by now.
  virtual void railLost(const Failover& failover) = 0;
  /// The same failover is over.
  virtual void failedOver(const Failover& failover) = 0;
  /// The cause of the rail's latest failover, found out after failedOver.
  virtual void causeFound(int rail, Cause cause) = 0;
  virtual void failedBack(int rail, TimePoint when) = 0;
  /// The rail lives and is far slower than the others from now on, or is so no more.
  virtual void railDegraded(const RailDegradation& change) = 0;
  /// Datagrams of `frame` bytes, as long as the rail's own frames, are lost, and short ones are not
  /// (FrameTrial). At most once until such datagrams pass again. The rail is given up if there are
  /// others.
  virtual void framesLost(int rail, Bytes frame) = 0;
  /// At most twice for each path: it carries no datagrams, and then it does.
  virtual void pathProved(const PathProved& proved) = 0;
  /// A note of the other end (Link::sendNote).
  virtual void noteArrived(std::span<const std::byte> note) = 0;
  /// Nothing has been heard of the peer for so long that it will be given up soon: whoever else
  /// may hear it is to be asked now, for `heardElsewhere`.
  virtual void peerMissing() = 0;
  /// While `on`, whoever sends datagrams watches whether the peer's host refuses them:
  /// Link::onRefused.
  virtual void watchRefusals(bool on) = 0;
  /// The link is lost; nothing else will be called, but this again (kAborted) when the other end
  /// says that it gives the job up, and why.
  virtual void linkFailed(const Status& why) = 0;
};

}  // namespace faultline::channel
