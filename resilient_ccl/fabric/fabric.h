#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/channel/link.h"
#include "resilient_ccl/telemetry/recorder.h"
#include "resilient_ccl/transport/driven_rail.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::transport::tcp {
class IoThread;
}

namespace faultline::fabric {

using transport::tcp::Endpoint;

/// One network port of this process: rail r uses the r-th of every process.
struct Nic {
  std::string device;         ///< "rail0"; empty: any (loopback tests)
  std::uint32_t address = 0;  ///< IPv4, host byte order
  std::string card{};         ///< its name in the topology; empty: that of the device
};

struct FabricOptions {
  int self = 0;  ///< this process among the processes of the job: the rank
  /// What messages call the processes, by number; empty: "rank 3".
  std::vector<std::string> names;
  auth::JobKey jobKey;
  std::vector<Nic> nics;
  std::uint32_t managementAddress = 0;
  /// The node of this process, equal for all processes on it (`hostIdentity`). Empty: not known, a
  /// node of its own.
  std::string host;
  /// Whether processes of one node have a rail through shared memory instead of the NICs.
  bool sharedMemory = true;
  /// TOS byte of control datagrams: the class that the network lets pass bulk data.
  int controlTos = 0;
  /// `rails` is overwritten by the number of NICs; `partners`, when empty, by the NICs' distances.
  channel::LinkOptions link;
  /// Where the NICs sit, as hwloc's XML. Empty: as hwloc finds them on this machine.
  std::string topology;
  /// Where events are recorded, on the thread that polls; must outlive the fabric. Null: nowhere.
  telemetry::Recorder* recorder = nullptr;
  /// Threads that move the payload of the rails: rail r of every peer is served by thread r modulo
  /// this number. More than rails: as many as rails. 0: whoever calls `poll` moves it.
  int ioThreads = 0;
  /// Instead of threads of its own, those of a process that has many fabrics: rail r of a peer is
  /// served by thread `firstIoThread` + r modulo their number, with Mover::kCommonThread by thread
  /// r, modulo their number, too.
  std::vector<std::shared_ptr<transport::tcp::IoThread>> sharedIoThreads;
  int firstIoThread = 0;
  /// Pause for the answer to a connection attempt before it counts as failed.
  Duration connectTimeout = 500ms;
};

/// Where the sockets of a NIC stand to which others send: bound to its device and to whatever
/// address that has, which may change; without a device, to its address.
inline transport::tcp::SocketPlace placeOf(const Nic& nic, int tos) {
  return {nic.device.empty() ? nic.address : 0, nic.device, tos};
}

/// Where a socket stands that sends from a NIC: at its present address, too, without which the
/// kernel would look up the route of the first packet without a source.
inline transport::tcp::SocketPlace sourceOf(const Nic& nic, int tos) {
  return {nic.address, nic.device, tos};
}

/// Where one process can be reached, exchanged at bootstrap.
struct ProcessAddress {
  struct Rail {
    Endpoint data;     ///< TCP listener
    Endpoint control;  ///< UDP
  };
  std::vector<Rail> rails;
  Endpoint management;  ///< UDP
  std::string host;     ///< FabricOptions::host, 255 bytes at most
  /// Local socket, where processes of the same node connect; empty: they take the network.
  std::string local;

  std::string serialize() const;
  static Result<ProcessAddress> parse(const std::string& bytes);
};

/// What the links of a process have done, and what was refused before it reached one.
struct FabricCounters : channel::LinkCounters {
  /// Forged, damaged, repeated, or not meant for this process.
  std::uint64_t datagramsRejected = 0;
  /// Accepted, and then closed (`Acceptor::rejected`), or made, and then closed, because who took
  /// it did not have the job's key.
  std::uint64_t connectionsRejected = 0;
  /// Whether partners are in order of distance. False: in order of their numbers, because it is
  /// not known where the NICs sit, or because with two rails there is no choice.
  bool nicDistancesKnown = false;
};

/// What the fabric tells its client. Calls come from inside `poll` and `push`; they may post
/// messages.
class FabricClient {
 public:
  virtual ~FabricClient() = default;
  virtual void sendDone(int peer, std::uint64_t token) = 0;
  virtual void receiveDone(int peer, std::uint64_t token, Bytes length) = 0;
  /// The message will not be delivered, and its memory is the client's again; the link goes on. It
  /// was withdrawn at either end (kAborted, Fabric::closeSends), or is longer than the receive that
  /// it meets (kInvalidArgument).
  virtual void sendFailed(int peer, std::uint64_t token, const Status& why) = 0;
  virtual void receiveFailed(int peer, std::uint64_t token, const Status& why) = 0;
  /// A rail to `peer` is given up, at once: `failover` tells what is known by now.
  virtual void railLost(int /*peer*/, const channel::Failover& /*failover*/) {}
  /// The same failover is over.
  virtual void failedOver(int peer, const channel::Failover& failover) = 0;
  virtual void failedBack(int peer, int rail, TimePoint when) = 0;
  /// A rail to `peer` is far slower than the others from now on, or is so no more.
  virtual void degraded(int /*peer*/, const channel::RailDegradation& /*change*/) {}
  /// Datagrams of `frame` bytes are lost over a rail to `peer`, and short ones are not: some port
  /// along the path has a smaller MTU. A rail that is not the last one is given up as well.
  virtual void framesLost(int /*peer*/, int /*rail*/, Bytes /*frame*/) {}
  /// No datagram has ever passed over a path to `peer`, or one has at last; `words` say what was
  /// tried and where to look.
  virtual void pathProved(int /*peer*/, const channel::PathProved& /*proved*/,
                          const std::string& /*words*/) {}
  /// What the latest failover of `rail` to `peer` had for a cause, and where, found out after
  /// failedOver.
  virtual void explained(int peer, int rail, channel::Cause cause, channel::Where where) = 0;
  virtual void linkFailed(int peer, const Status& why) = 0;
  /// A word of the client of another process (Fabric::tell).
  virtual void wordArrived(int /*peer*/, std::span<const std::byte> /*word*/) {}
};

/// Everything that one process has of the network: its NICs and their port events, the rails and
/// control paths to every other process, and the links over them. A pollable object without a
/// thread of its own; not thread-safe.
class Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> create(const FabricOptions& options, FabricClient& client);
  ~Fabric();

  /// Where this process listens.
  const ProcessAddress& address() const;

  /// Before `connect`: the key in place of that of the options, for processes that agree on one
  /// only when they know of each other. Who connects earlier is refused.
  void setJobKey(const auth::JobKey& key);
  /// Starts the links to all other processes (`addresses[self]` is ignored). Rails come up in poll.
  Status connect(const std::vector<ProcessAddress>& addresses);
  /// What the link to a peer was made with, after `connect`.
  const channel::LinkOptions& linkOptions(int peer) const;
  /// Whether every rail to every peer is up.
  bool allRailsUp() const;
  /// Those that are not, in words, and why, as far as this end knows: "rail 1 (rail1) to rank 2:
  /// connect: Connection refused; ...".
  std::string missingRails() const;
  /// Whether there is a rail to every peer.
  bool allPeersReached() const;
  /// The work begins: rails that are not up have failed (Link::start).
  void start();

  /// `firstChoice` is a rail, see Link::postSend.
  void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                std::uint64_t token, int firstChoice = channel::kAnyRail);
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token);
  /// A receive that nobody waits for yet, into memory of the client, which copies what came when
  /// somebody does. A message that does not fit makes it fail (kInvalidArgument), and waits for
  /// another receive with the same key, which may be posted then. Its name for `expect`.
  std::uint32_t postEagerReceive(int peer, const channel::MessageKey& key, std::byte* region,
                                 Bytes capacity, std::uint64_t token);
  /// Somebody waits for that receive now. Until then it keeps no peer from being out of reach for
  /// longer than the budget.
  void expect(int peer, std::uint32_t slot);

  /// Withdraws the sends to `peer` in this stream, and refuses what is posted in it later; the
  /// other end's receives in it fail. True: when this returns nothing reads their memory any more.
  /// False: that is so of each when poll brings its sendFailed (or sendDone). A link that has
  /// failed reads nothing. A stream is closed at both ends, and then not used again: until then
  /// either end remembers it.
  bool closeSends(int peer, const channel::StreamKey& stream);
  /// The same of the receives from `peer`: nothing writes into their memory any more. What is
  /// under way for them is thrown away, and the other end's sends fail.
  bool closeReceives(int peer, const channel::StreamKey& stream);

  /// Whether every send to `peer` that is done has been delivered, or has failed: small messages
  /// (LinkOptions::smallMessage) are done before.
  bool delivered(int peer) const;

  /// Carries up to kLongestWord bytes to the client of another process, over every path, once and
  /// in no order.
  void tell(int peer, std::span<const std::byte> word);
  static constexpr std::size_t kLongestWord =
      channel::Record::kMaxPayload - sizeof(std::uint32_t);  // behind the kind of a note
  /// Whether `peer` has what was told it; true when its link has failed.
  bool told(int peer) const;

  /// Another connection with this peer's process has ended: a hint that it is gone (Link::doubt).
  void doubt(int peer);

  /// Calls `ready` from inside poll whenever `fd` is readable, until unwatch.
  Status watch(int fd, std::function<void()> ready);
  void unwatch(int fd);

  /// Who moves the bytes of rails that have I/O threads from now on: their own, as in the
  /// beginning, common ones, or `poll` and `push`.
  void setMover(transport::Mover mover);

  /// Waits at most `timeout` for something to happen, and does what there is to do.
  Status poll(Duration timeout);

  /// Sends what was posted, as far as it goes at once, and tells the client what is done by that,
  /// without a look at what has come: for whoever posts and polls soon.
  void push();

  /// Ends all links at this end and closes all rails: when this returns, nothing reads or writes
  /// any memory that was posted. No completions follow.
  void shutDown();

  /// Of the reason of an abort, in bytes; what is longer is cut off.
  static constexpr std::size_t kLongestReason = channel::Record::kMaxPayload;
  /// Tells all peers, over every path, that the job is given up. Poll some time longer to repeat.
  void abort(const std::string& reason);

  /// Sum over all links.
  FabricCounters counters() const;

  /// The NICs as they are now: devices that were renamed or made anew, addresses that have changed.
  const std::vector<Nic>& nics() const;

  /// Payload that was sent to `peer` over each rail since the beginning, bytes.
  std::vector<Bytes> bytesSentByRail(int peer) const;
  /// What the link to each process carries over the network; nothing for this process itself and
  /// for those that are reached through shared memory.
  void loads(std::vector<std::optional<channel::LinkLoad>>& out) const;

 private:
  class Impl;
  explicit Fabric(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::fabric
