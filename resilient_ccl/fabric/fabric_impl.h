#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/fabric/acceptor.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/fabric/nic_homes.h"
#include "resilient_ccl/fabric/peer.h"
#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/fabric/port_watch.h"
#include "resilient_ccl/fabric/triangulation.h"

namespace faultline::fabric {

using channel::Link;

/// What is behind `Fabric`: set-up in fabric_setup.cc, all that happens later in fabric.cc.
class Fabric::Impl : private TriangulationIo {
 public:
  Impl(const FabricOptions& options, FabricClient& client)
      : options_(options),
        client_(client),
        authenticator_(options.jobKey),
        acceptor_(poller_, authenticator_, options.connectTimeout, callsOf(/*local=*/false)),
        localAcceptor_(poller_, authenticator_, options.connectTimeout, callsOf(/*local=*/true)) {
    options_.link.rails = static_cast<int>(options_.nics.size());
  }
  /// Threads that go on without the fabric let go of its rails.
  ~Impl() override {
    if (!options_.sharedIoThreads.empty()) shutDown();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status open();
  void setJobKey(const auth::JobKey& key) { authenticator_ = auth::Authenticator(key); }
  Status connect(const std::vector<ProcessAddress>& addresses);
  const channel::LinkOptions& linkOptions(int peer) const { return peers_[peer]->link().options(); }
  bool allRailsUp() const;
  std::string missingRails() const;
  bool allPeersReached() const;
  void start();
  void setMover(transport::Mover mover);
  Status poll(Duration timeout);
  void push();
  Status watch(int fd, std::function<void()> ready);
  void unwatch(int fd);
  void shutDown();
  void abort(const std::string& reason);
  FabricCounters counters() const;
  const std::vector<Nic>& nics() const { return options_.nics; }
  void loads(std::vector<std::optional<channel::LinkLoad>>& out) const;

  Link& link(int peer);
  Peer& withdrawing(int peer) {
    posted_ = true;
    return *peers_[peer];
  }
  void tellClient(int peer, std::span<const std::byte> word);
  std::uint32_t postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                            Bytes capacity, std::uint64_t token, bool eager);
  ProcessAddress address_;

 private:
  /// In place of a control socket: what has come through shared memory.
  static constexpr int kSharedMemory = -1;

  int railsTo(int peer) const { return peers_[peer]->link().options().rails; }
  Acceptor::Calls callsOf(bool local);
  Status openLocal();
  void choosePartners();
  Status startIoThreads();
  bool collect();
  bool armAndCollect();
  void disarm();
  Status addControl(std::size_t place, UniqueFd socket);
  bool takeDatagram(int door, std::span<const std::byte> sealed);
  bool comesBy(const Peer& peer, int door, int path) const;
  bool wants(const Hello& hello, bool local);
  Status openNic(std::size_t rail);
  Status reserve(std::size_t rail);
  Status listenOn(std::size_t rail);
  void reopen(std::size_t rail);
  void nicsChanged(const NicHomes::Changes& changes);
  void portChanged(std::size_t rail, bool usable);
  void tellAddress(std::size_t rail);
  void failedOver(int peer, const channel::Failover& failover);
  void noteArrived(int peer, const Note& note);
  void settle();
  void dispatch();
  bool expireHandshakes(TimePoint time);
  TimePoint nextDue(TimePoint time) const;
  void transmit();

  // TriangulationIo
  std::uint32_t examine(int peer) override { return peers_[peer]->link().examine(now()); }
  Reach reach(int peer, int rail, std::uint32_t after) const override {
    const Link& link = peers_[peer]->link();
    if (rail != Triangulation::kAnyPath) return link.reach(rail, after);
    for (int path = 0; path <= railsTo(peer); ++path) {
      if (link.reach(path, after) == Reach::kAnswers) return Reach::kAnswers;
    }
    return Reach::kUnknown;
  }
  bool reachable(int process, int rail) const override {
    const auto& peer = peers_[process];
    // A process of this node has no rails of the network, and shares their ports.
    return peer && !peer->link().failed() && (!peer->local() || rail == Triangulation::kAnyPath);
  }
  void ask(int witness, int about, int rail) override {
    tell(witness, {.kind = Note::Kind::kQuestion,
                   .rail = static_cast<std::uint32_t>(rail),
                   .value = static_cast<std::uint32_t>(about)});
  }
  void answer(int asker, int about, int rail, Reach reach) override {
    tell(asker, {.kind = Note::Kind::kAnswer,
                 .rail = static_cast<std::uint32_t>(rail),
                 .value = static_cast<std::uint32_t>(about),
                 .detail = static_cast<std::uint32_t>(reach)});
  }
  void located(int peer, int rail, Where where) override {
    client_.explained(peer, rail, channel::Cause::kPath, where);
  }
  void sought(int peer, Reach reach) override { peers_[peer]->link().heardElsewhere(reach); }
  void tell(int peer, const Note& note) { peers_[peer]->link().sendNote(channel::bytesOf(note)); }

  FabricOptions options_;
  FabricClient& client_;
  auth::Authenticator authenticator_;
  bool nicDistancesKnown_ = false;
  Poller poller_;
  Acceptor acceptor_;
  Acceptor localAcceptor_;
  std::function<void(std::span<const std::byte>)> takeShared_ =
      [this](std::span<const std::byte> sealed) {
        if (!takeDatagram(kSharedMemory, sealed)) ++datagramsRejected_;
      };
  std::vector<UniqueFd> control_;   // one UDP socket per rail, then of the management network
  std::vector<int> listeners_;      // of each NIC, the acceptor's; -1: none
  std::vector<UniqueFd> reserved_;  // holds the port of a NIC that has no interface now
  NicHomes homes_;
  std::vector<PortSight> portSights_;
  std::unique_ptr<PortWatch> ports_;
  transport::Doorbell arrivals_;                // of the I/O threads
  std::vector<std::unique_ptr<Peer>> peers_;    // by process; null for ourselves
  std::optional<Triangulation> triangulation_;  // from `connect` on
  bool posted_ = false;                         // something may wait to be sent
  bool unsettled_ = false;                      // something was posted since `settled_`
  TimePoint settled_{};                         // when all that depends on time was looked at
  bool collects_ = false;                       // there are rails that others than the poller serve
  std::vector<Event> events_;
  std::vector<Event> dispatching_;
  channel::Datagram datagram_;
  std::uint64_t datagramsRejected_ = 0;
  // Own ones end before all else goes.
  std::vector<std::shared_ptr<transport::tcp::IoThread>> ioThreads_;
  std::vector<std::shared_ptr<transport::tcp::IoThread>> commonIoThreads_;
};

}  // namespace faultline::fabric
