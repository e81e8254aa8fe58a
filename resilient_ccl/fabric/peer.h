#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/link.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/fabric/note.h"
#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/fabric/port_sight.h"
#include "resilient_ccl/fabric/refusal_watch.h"
#include "resilient_ccl/fabric/shared_rail.h"
#include "resilient_ccl/transport/doorbell.h"
#include "resilient_ccl/transport/driven_rail.h"
#include "resilient_ccl/transport/place_table.h"
#include "resilient_ccl/transport/tcp/io_thread.h"
#include "resilient_ccl/transport/tcp/threaded_rail.h"

namespace faultline::fabric {

/// What links have to tell the fabric's client: told between two steps, never from inside a link.
struct SendDone {
  int peer;
  std::uint64_t token;
};
struct ReceiveDone {
  int peer;
  std::uint64_t token;
  Bytes length;
};
struct SendFailed {
  int peer;
  std::uint64_t token;
  Status why;
};
struct ReceiveFailed {
  int peer;
  std::uint64_t token;
  Status why;
};
struct RailLost {
  int peer;
  channel::Failover failover;
};
struct FailedOver {
  int peer;
  channel::Failover failover;
};
struct FailedBack {
  int peer;
  int rail;
  TimePoint when;
};
struct Degraded {
  int peer;
  channel::RailDegradation change;
};
struct FramesLost {
  int peer;
  int rail;
  Bytes frame;
};
struct PathWord {
  int peer;
  channel::PathProved proved;
};
struct CauseFound {
  int peer;
  int rail;
  channel::Cause cause;
};
struct PeerMissing {
  int peer;
};
struct LinkFailed {
  int peer;
  Status why;
};
struct NoteArrived {
  int peer;
  std::optional<Note> note;
};
struct WordArrived {
  int peer;
  std::vector<std::byte> word;
};
using Event = std::variant<SendDone, ReceiveDone, SendFailed, ReceiveFailed, RailLost, FailedOver,
                           CauseFound, FailedBack, Degraded, FramesLost, PathWord, PeerMissing,
                           LinkFailed, NoteArrived, WordArrived>;

/// What all peers of a process share.
struct PeerContext {
  const FabricOptions& options;
  Poller& poller;
  const std::vector<UniqueFd>& control;  ///< one UDP socket per rail, and of the management network
  auth::Authenticator& authenticator;
  std::vector<Event>& events;
  /// Rail r belongs to thread r modulo their number; empty: the poller serves all rails.
  const std::vector<std::shared_ptr<transport::tcp::IoThread>>& ioThreads;
  /// Those for Mover::kCommonThread, likewise.
  const std::vector<std::shared_ptr<transport::tcp::IoThread>>& commonIoThreads;
  transport::Doorbell& arrivals;        ///< rung by the I/O threads
  const std::vector<PortSight>& ports;  ///< one per rail
  /// Takes what comes through shared memory, sealed as what comes through a socket.
  const std::function<void(std::span<const std::byte>)>& takeDatagram;
};

/// One other process: its link, and the sockets that the link speaks of. Not thread-safe.
class Peer : private channel::LinkIo,
             private transport::RailSink,
             private transport::shm::DatagramSink,
             private transport::tcp::ArrivalSink {
 public:
  /// `local`: of this node, and to be reached through shared memory.
  Peer(const PeerContext& context, int index, ProcessAddress address, bool local);

  channel::Link& link() { return *link_; }
  /// A process of this node: its one rail is shared memory, which carries the datagrams of all
  /// paths, too. While it is closed, those of the last path take the management network.
  bool local() const { return local_; }
  /// In messages: FabricOptions::names, or "rank 3".
  std::string name() const;
  /// Of a rail that is not up, why, as far as this end knows.
  std::string whyNotUp(int rail) const;
  /// What the link has found out about a path, for people.
  std::string wordsOf(const channel::PathProved& proved) const;
  /// As of Link.
  std::uint32_t postReceive(const channel::MessageKey& key, std::byte* region, Bytes capacity,
                            std::uint64_t token, bool eager);

  bool closeSends(const channel::StreamKey& stream);
  bool closeReceives(const channel::StreamKey& stream);

  /// The control path to this peer over rail `path`, or, behind the last rail, over the management
  /// network.
  /// Connections of this end that were closed because who took them did not have the job's key.
  std::uint64_t answersRefused() const { return answersRefused_; }
  auth::SealedPath& controlPath(int path) { return controlPaths_[path]; }

  /// The accepting end: `socket` is a rail now.
  void adopt(int rail, UniqueFd socket, std::uint32_t epoch);
  /// The peer's NIC of `rail` has another address now; `change` counts its changes.
  void readdress(int rail, std::uint32_t address, std::uint32_t change);
  /// This end's NIC of `rail` has another address or interface now.
  void rehoused(int rail) { refusals_.forget(rail); }
  /// Closes the rails that the link wants closed; whether there was one.
  bool fenceDue();
  /// Whether `fenceDue` or `expireOpenings` has something to do now.
  bool hasWork() const;
  /// Ends attempts to connect that have failed or taken too long; whether there was one.
  bool expireOpenings(TimePoint time);
  /// Hands to the link what I/O threads and shared memory have; whether there was something.
  bool collect();
  /// As of DrivenRail, of all rails.
  void arm();
  void disarm();
  void setMover(transport::Mover mover);
  /// Writes what the rails have to send, as far as their sockets take it.
  void transmit();
  /// Ends the link and closes everything.
  void shutDown();

 private:
  std::string noRoute(int rail) const;
  // LinkIo
  void sendDatagram(int path, std::span<const std::byte> bytes, Bytes frame) override;
  void submit(int rail, const channel::ChunkHeader& header, const std::byte* data,
              const channel::RemoteRegion& region) override;
  bool lateWrites(int rail) const override;
  bool detach(int rail, std::uint64_t sequence) override;
  void divert(int rail) override;
  transport::Delivery delivery(int rail) const override;
  void tellRate(int rail, double bytesPerSecond) override;
  void tellRoom(int rail) override;
  bool portLost(int rail) const override;
  void fenceRail(int rail) override;
  void openRail(int rail, std::uint32_t epoch, std::uint32_t attempt) override;
  void cancelOpen(int rail) override;
  void sendDone(std::uint64_t token) override;
  void receiveDone(std::uint64_t token, Bytes length) override;
  void sendFailed(std::uint64_t token, const Status& why) override {
    context_.events.push_back(SendFailed{index_, token, why});
  }
  void receiveFailed(std::uint64_t token, const Status& why) override {
    context_.events.push_back(ReceiveFailed{index_, token, why});
  }
  void closeSlot(std::uint32_t slot) override;
  void railLost(const channel::Failover& failover) override;
  void failedOver(const channel::Failover& failover) override;
  void causeFound(int rail, channel::Cause cause) override;
  void failedBack(int rail, TimePoint when) override;
  void railDegraded(const channel::RailDegradation& change) override;
  void framesLost(int rail, Bytes frame) override {
    context_.events.push_back(FramesLost{index_, rail, frame});
  }
  void pathProved(const channel::PathProved& proved) override {
    context_.events.push_back(PathWord{index_, proved});
  }
  void noteArrived(std::span<const std::byte> note) override;
  void watchRefusals(bool on) override { refusals_.watch(on); }
  void peerMissing() override { context_.events.push_back(PeerMissing{index_}); }
  void linkFailed(const Status& why) override;

  // RailSink: rails that the poller serves.
  Result<std::byte*> place(int rail, const channel::ChunkHeader& header) override;
  void chunkArrived(int rail, const channel::ChunkHeader& header) override;
  // DatagramSink: shared memory.
  void datagramArrived(std::span<const std::byte> datagram) override {
    context_.takeDatagram(datagram);
  }
  // ArrivalSink: rails that an I/O thread serves.
  void arrived(int rail, transport::tcp::Arrival&& arrival) override;
  Status watch(transport::tcp::ThreadedRail& rail) override;
  void unwatch(transport::tcp::ThreadedRail& rail) override { context_.poller.remove(rail.fd()); }
  // Both.
  void railFailed(int rail, const Status& why) override;

  /// Records an event of this peer; `event` is only filled in where somebody wants it.
  void record(telemetry::EventKind kind, telemetry::Event event) const;
  void recordRail(telemetry::EventKind kind, int rail) const;
  bool recording() const { return context_.options.recorder != nullptr; }

  void recordChunk(int rail, const channel::ChunkHeader& header, TimePoint began, TimePoint ended);

  int railCount() const { return static_cast<int>(rails_.size()); }
  void advanceOpening(int rail);
  void dropOpening(int rail);
  Status drive(int rail, UniqueFd socket);
  void openFailed(int rail);
  void fence(int rail);
  void closeAll();

  PeerContext context_;
  int index_;
  ProcessAddress address_;
  const bool local_;
  std::vector<auth::SealedPath> controlPaths_;
  std::vector<std::uint32_t> addressChanges_;  // of the peer's NICs that are known here
  transport::PlaceTable places_;               // for I/O threads
  transport::Mover mover_ = transport::Mover::kThread;
  std::vector<std::shared_ptr<transport::DrivenRail>> rails_;
  std::shared_ptr<SharedRail> shared_;             // rails_[0] of a local peer
  std::vector<std::optional<Handshake>> opening_;  // connecting end
  std::uint64_t answersRefused_ = 0;
  std::vector<Status> openFailures_;  // of the last attempt of each rail that failed
  std::vector<int> failedOpens_;      // rails whose attempt failed at once
  std::vector<bool> fenceDue_;
  std::vector<TimePoint> placedAt_;  // when the chunk that a rail reads began, for the recorder
  RefusalWatch refusals_;
  bool closeDue_ = false;                // the link has failed
  std::unique_ptr<channel::Link> link_;  // last: its constructor opens rails
};

}  // namespace faultline::fabric
