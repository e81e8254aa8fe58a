#include "resilient_ccl/fabric/fabric.h"

#include <net/if.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/log.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/partners.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/fabric/acceptor.h"
#include "resilient_ccl/fabric/datagram_inbox.h"
#include "resilient_ccl/fabric/nic_address.h"
#include "resilient_ccl/fabric/nic_distance.h"
#include "resilient_ccl/fabric/peer.h"
#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/fabric/port_watch.h"
#include "resilient_ccl/fabric/triangulation.h"
#include "resilient_ccl/transport/shm/local_socket.h"

namespace faultline::fabric {

using channel::Link;

namespace {

// Longest sleep: budgets and hold-offs are looked at no later than this.
constexpr Duration kLongestSleep = 50ms;

}  // namespace

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

  Status open();
  Status connect(const std::vector<ProcessAddress>& addresses);
  std::string missingRails() const;
  bool allPeersReached() const;
  void start();
  Status poll(Duration timeout);
  Status watch(int fd, std::function<void()> ready);
  void unwatch(int fd);
  void shutDown();
  void abort(const std::string& reason);
  FabricCounters counters() const;
  void loads(std::vector<std::optional<channel::LinkLoad>>& out) const;

  Link& link(int peer);
  bool told() const;
  void tellClient(int peer, std::span<const std::byte> word);
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token);
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
  Status addControl(UniqueFd socket);
  bool takeDatagram(int door, std::span<const std::byte> sealed);
  bool comesBy(const Peer& peer, int door, int path) const;
  bool wants(const Hello& hello, bool local);
  void portChanged(int interface, bool usable);
  void addressChanged(int interface, std::uint32_t address, bool present);
  void failedOver(int peer, const channel::Failover& failover);
  void noteArrived(int peer, const Note& note);
  void settle();
  void dispatch();
  bool expireHandshakes();
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
  std::vector<UniqueFd> control_;  // one UDP socket per rail, then of the management network
  std::vector<int> interfaces_;    // interface index of each NIC, 0: unknown
  std::vector<NicAddress> nicAddresses_;
  std::vector<PortSight> portSights_;
  std::unique_ptr<PortWatch> ports_;
  transport::Doorbell arrivals_;                // of the I/O threads
  std::vector<std::unique_ptr<Peer>> peers_;    // by process; null for ourselves
  std::optional<Triangulation> triangulation_;  // from `connect` on
  bool posted_ = false;                         // something may wait to be sent
  bool collects_ = false;                       // there are rails that others than the poller serve
  std::vector<Event> events_;
  std::vector<Event> dispatching_;
  channel::Datagram datagram_;
  std::uint64_t datagramsRejected_ = 0;
  std::vector<std::unique_ptr<transport::tcp::IoThread>> ioThreads_;  // end before all else goes
};

Link& Fabric::Impl::link(int peer) {
  posted_ = true;
  return peers_[peer]->link();
}

void Fabric::Impl::postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                               Bytes capacity, std::uint64_t token) {
  posted_ = true;
  peers_[peer]->postReceive(key, region, capacity, token);
}

void Fabric::Impl::tellClient(int peer, std::span<const std::byte> word) {
  const Note::Kind kind = Note::Kind::kWord;
  std::array<std::byte, channel::Record::kMaxPayload> note;
  assert(word.size() <= kLongestWord);
  std::ranges::copy(channel::bytesOf(kind), note.begin());
  std::ranges::copy(word, note.begin() + sizeof(kind));
  link(peer).sendNote(std::span(note).first(sizeof(kind) + word.size()));
}

bool Fabric::Impl::told() const {
  return std::ranges::all_of(peers_, [](const auto& peer) { return !peer || peer->link().told(); });
}

// --- set-up ---

void Fabric::Impl::choosePartners() {
  constexpr std::size_t kChoice = 3;  // with two rails each has one partner
  if (!options_.link.partners.empty() || options_.nics.size() < kChoice) return;
  std::vector<std::string> devices;
  for (const Nic& nic : options_.nics) devices.push_back(nic.device);
  const auto distances = nicDistances(devices);
  nicDistancesKnown_ = distances.ok();
  if (distances.ok()) {
    options_.link.partners = channel::partnersByDistance(*distances);
  } else {
    spdlog::info("rails take over from each other in the order of their numbers: {}",
                 distances.status().message());
  }
}

Status Fabric::Impl::startIoThreads() {
  const int count = std::min(options_.ioThreads, options_.link.rails);
  if (count == 0) return okStatus();
  collects_ = true;
  RETURN_IF_ERROR(arrivals_.open());
  RETURN_IF_ERROR(poller_.add(arrivals_.fd(), EPOLLIN, [this](auto) { arrivals_.clear(); }));
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(ioThreads_.emplace_back(), transport::tcp::IoThread::start());
  }
  return okStatus();
}

Status Fabric::Impl::open() {
  if (options_.nics.empty())
    return errorf(Code::kInvalidArgument, "a fabric needs at least one NIC");
  if (options_.nics.size() > channel::kMaxRails) {
    return errorf(Code::kInvalidArgument, "{} NICs: a fabric takes {} at most",
                  options_.nics.size(), channel::kMaxRails);
  }
  constexpr std::size_t kLongestHost = 255;
  if (options_.host.size() > kLongestHost) {
    return errorf(Code::kInvalidArgument, "the name of a node has {} bytes: {} at most",
                  options_.host.size(), kLongestHost);
  }
  choosePartners();
  address_.host = options_.host;
  RETURN_IF_ERROR(poller_.open());
  RETURN_IF_ERROR(startIoThreads());
  for (std::size_t rail = 0; rail < options_.nics.size(); ++rail) {
    const Nic& nic = options_.nics[rail];
    const std::string what =
        fmt::format("rail {} on {}", rail, nic.device.empty() ? "any device" : nic.device);
    Result<UniqueFd> listener = transport::tcp::openListener(placeOf(nic, 0));
    RETURN_IF_ERROR(listener.status().withContext(what));
    ASSIGN_OR_RETURN(Endpoint data, transport::tcp::localEndpoint(listener->get()));
    RETURN_IF_ERROR(acceptor_.listen(std::move(*listener)));
    ASSIGN_OR_RETURN(UniqueFd control, transport::tcp::openUdp(placeOf(nic, options_.controlTos)));
    ASSIGN_OR_RETURN(Endpoint datagrams, transport::tcp::localEndpoint(control.get()));
    data.address = datagrams.address = nic.address;
    address_.rails.push_back({data, datagrams});
    interfaces_.push_back(
        nic.device.empty() ? 0 : static_cast<int>(if_nametoindex(nic.device.c_str())));
    nicAddresses_.emplace_back(nic.address);
    portSights_.push_back(nic.device.empty() ? PortSight() : PortSight(nic.device));
    RETURN_IF_ERROR(addControl(std::move(control)).withContext(what));
  }
  ASSIGN_OR_RETURN(UniqueFd management,
                   transport::tcp::openUdp({options_.managementAddress, "", options_.controlTos}));
  ASSIGN_OR_RETURN(address_.management, transport::tcp::localEndpoint(management.get()));
  RETURN_IF_ERROR(addControl(std::move(management)));
  RETURN_IF_ERROR(openLocal().withContext("shared memory"));

  ASSIGN_OR_RETURN(
      ports_,
      PortWatch::open(
          {.port = [this](int interface, bool usable) { portChanged(interface, usable); },
           .address = [this](int interface, std::uint32_t address,
                             bool present) { addressChanged(interface, address, present); }}));
  return poller_.add(ports_->fd(), EPOLLIN, [this](auto) { (void)ports_->poll(); });
}

Acceptor::Calls Fabric::Impl::callsOf(bool local) {
  return {.configure =
              [local](int socket) {
                return local ? okStatus() : transport::tcp::configureAccepted(socket, /*tos=*/0);
              },
          .wanted = [this, local](const Hello& hello) { return wants(hello, local); },
          .accepted =
              [this](const Hello& hello, UniqueFd socket) {
                peers_[hello.source]->adopt(static_cast<int>(hello.rail), std::move(socket),
                                            hello.epoch);
              }};
}

Status Fabric::Impl::openLocal() {
  if (options_.host.empty() || !options_.sharedMemory) return okStatus();
  ASSIGN_OR_RETURN(UniqueFd listener, transport::shm::openLocalListener());
  ASSIGN_OR_RETURN(address_.local, transport::shm::localName(listener.get()));
  return localAcceptor_.listen(std::move(listener));
}

Status Fabric::Impl::addControl(UniqueFd socket) {
  const int fd = socket.get();
  const int path = static_cast<int>(control_.size());
  control_.push_back(std::move(socket));
  return poller_.add(fd, EPOLLIN, [this, path, fd](auto) {
    readDatagrams(fd, [&](std::span<const std::byte> sealed) {
      // Strays, leftovers of other jobs, repetitions and garbage are dropped without a word.
      if (!takeDatagram(path, sealed)) ++datagramsRejected_;
    });
  });
}

Status Fabric::Impl::connect(const std::vector<ProcessAddress>& addresses) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const int index = static_cast<int>(i);
    if (index == options_.self) {
      peers_.push_back(nullptr);
      continue;
    }
    if (addresses[i].rails.size() != options_.nics.size()) {
      return errorf(Code::kInvalidArgument,
                    "rank {} has {} rails, this process {}: all need the same", i,
                    addresses[i].rails.size(), options_.nics.size());
    }
    const bool local = !address_.local.empty() && !addresses[i].local.empty() &&
                       addresses[i].host == address_.host;
    collects_ = collects_ || local;
    peers_.push_back(
        std::make_unique<Peer>(PeerContext{options_, poller_, control_, authenticator_, events_,
                                           ioThreads_, arrivals_, portSights_, takeShared_},
                               index, addresses[i], local));
  }
  triangulation_.emplace(options_.self, static_cast<int>(peers_.size()),
                         static_cast<TriangulationIo&>(*this));
  // Ports that were down before we listened.
  return ports_->reportAll();
}

std::string Fabric::Impl::missingRails() const {
  std::string missing;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank]) continue;
    for (int rail = 0; rail < railsTo(static_cast<int>(rank)); ++rail) {
      if (peers_[rank]->link().railUp(rail)) continue;
      if (!missing.empty()) missing += ", ";
      missing += peers_[rank]->local() ? fmt::format("shared memory with rank {}", rank)
                                       : fmt::format("rail {} ({}) to rank {}", rail,
                                                     options_.nics[rail].device, rank);
    }
  }
  return missing;
}

bool Fabric::Impl::allPeersReached() const {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (!peers_[peer]) continue;
    bool reached = false;
    for (int rail = 0; rail < railsTo(static_cast<int>(peer)); ++rail) {
      reached = reached || peers_[peer]->link().railUp(rail);
    }
    if (!reached) return false;
  }
  return true;
}

void Fabric::Impl::start() {
  for (const auto& peer : peers_) {
    if (peer) peer->link().start(now());
  }
}

// --- descriptors ---

Status Fabric::Impl::watch(int fd, std::function<void()> ready) {
  return poller_.add(fd, EPOLLIN, [ready = std::move(ready)](auto) { ready(); });
}

void Fabric::Impl::unwatch(int fd) { poller_.remove(fd); }

// --- connections ---

bool Fabric::Impl::wants(const Hello& hello, bool local) {
  const bool known = hello.destination == static_cast<std::uint32_t>(options_.self) &&
                     hello.source < peers_.size() && peers_[hello.source] &&
                     peers_[hello.source]->local() == local &&
                     hello.rail < static_cast<std::uint32_t>(railsTo(hello.source));
  return known && peers_[hello.source]->link().onHello(static_cast<int>(hello.rail), hello.epoch,
                                                       hello.attempt, now());
}

bool Fabric::Impl::expireHandshakes() {
  const TimePoint time = now();
  acceptor_.expire(time);
  localAcceptor_.expire(time);
  bool any = false;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    if (peer->expireOpenings(time)) any = true;
  }
  return any;
}

// --- events ---

void Fabric::Impl::portChanged(int interface, bool usable) {
  for (std::size_t rail = 0; rail < interfaces_.size(); ++rail) {
    if (interfaces_[rail] == 0 || interfaces_[rail] != interface) continue;
    if (usable) portSights_[rail].works();
    for (const auto& peer : peers_) {
      if (peer && !peer->local()) peer->link().onPort(static_cast<int>(rail), usable, now());
    }
  }
}

void Fabric::Impl::failedOver(int peer, const channel::Failover& failover) {
  client_.failedOver(peer, failover);
  if (failover.cause == channel::Cause::kPath) triangulation_->begin(peer, failover.rail, now());
}

void Fabric::Impl::addressChanged(int interface, std::uint32_t address, bool present) {
  for (std::size_t rail = 0; rail < interfaces_.size(); ++rail) {
    if (interfaces_[rail] == 0 || interfaces_[rail] != interface) continue;
    const auto changed = nicAddresses_[rail].changed(address, present);
    if (!changed) continue;
    options_.nics[rail].address = *changed;
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      if (!peers_[peer] || peers_[peer]->local()) continue;
      tell(static_cast<int>(peer), {.kind = Note::Kind::kAddress,
                                    .rail = static_cast<std::uint32_t>(rail),
                                    .value = *changed,
                                    .detail = nicAddresses_[rail].changes()});
    }
  }
}

void Fabric::Impl::noteArrived(int peer, const Note& note) {
  const bool anyPath = note.rail == Note::kAnyPath && note.kind != Note::Kind::kAddress;
  if (note.rail >= options_.nics.size() && !anyPath) return;
  const int rail = anyPath ? Triangulation::kAnyPath : static_cast<int>(note.rail);
  const int about = note.value < peers_.size() ? static_cast<int>(note.value) : options_.self;
  switch (note.kind) {
    case Note::Kind::kAddress:
      peers_[peer]->readdress(rail, note.value, note.detail);
      break;
    case Note::Kind::kQuestion:
      triangulation_->asked(peer, about, rail, now());
      break;
    case Note::Kind::kAnswer:
      if (note.detail <= static_cast<std::uint32_t>(Reach::kSilent)) {
        triangulation_->answered(peer, about, rail, static_cast<Reach>(note.detail));
      }
      break;
    case Note::Kind::kWord:
      break;  // never parsed as a note
  }
}

/// Whether what the peer sends over `path` may come through this control socket.
bool Fabric::Impl::comesBy(const Peer& peer, int door, int path) const {
  if (!peer.local()) return door == path;
  const int management = static_cast<int>(control_.size()) - 1;
  return door == kSharedMemory ? path <= 1 : door == management && path == 1;
}

bool Fabric::Impl::takeDatagram(int door, std::span<const std::byte> sealed) {
  const auto header = channel::parseHeader(sealed);
  if (!header.ok() || header->destination != static_cast<std::uint32_t>(options_.self)) {
    return false;
  }
  if (header->source >= peers_.size() || !peers_[header->source]) return false;
  Peer& peer = *peers_[header->source];
  const int path = header->path;
  if (!comesBy(peer, door, path)) return false;
  const auto datagram = peer.controlPath(path).open(authenticator_, sealed);
  if (!datagram || !channel::parseDatagram(*datagram, datagram_).ok()) return false;
  peer.link().onDatagram(path, datagram_, now());
  return true;
}

Status Fabric::Impl::poll(Duration timeout) {
  if (posted_) transmit();  // what was posted since the last poll does not wait for this one's end
  const TimePoint begin = now();
  TimePoint wake = begin + std::min(timeout, kLongestSleep);
  if (!events_.empty()) wake = begin;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    wake = std::min(wake, peer->hasWork() ? begin : peer->link().nextDeadline());
  }
  if (collects_ && (collect() || armAndCollect())) wake = begin;
  RETURN_IF_ERROR(poller_.wait(wake - begin));
  if (collects_) {
    disarm();
    collect();
  }
  settle();
  return okStatus();
}

bool Fabric::Impl::collect() {
  bool any = false;
  for (const auto& peer : peers_) {
    if (peer && peer->collect()) any = true;
  }
  return any;
}

bool Fabric::Impl::armAndCollect() {
  arrivals_.arm();
  for (const auto& peer : peers_) {
    if (peer) peer->arm();
  }
  return collect();
}

void Fabric::Impl::disarm() {
  arrivals_.disarm();
  for (const auto& peer : peers_) {
    if (peer) peer->disarm();
  }
}

void Fabric::Impl::transmit() {
  posted_ = false;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->link().flush(now());
    peer->transmit();
  }
}

void Fabric::Impl::settle() {
  // Repairs lead to completions, completions to new messages: a few rounds, then the next poll.
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    bool again = expireHandshakes();
    for (const auto& peer : peers_) {
      if (!peer) continue;
      peer->link().onTick(now());
      if (peer->fenceDue()) again = true;
    }
    again = again || !events_.empty();
    dispatch();
    if (triangulation_) triangulation_->onTick(now());
    transmit();
    if (!again) return;
  }
}

void Fabric::Impl::dispatch() {
  dispatching_.swap(events_);
  for (const Event& event : dispatching_) {
    std::visit(
        [&](const auto& it) {
          using T = std::decay_t<decltype(it)>;
          if constexpr (std::is_same_v<T, SendDone>) client_.sendDone(it.peer, it.token);
          if constexpr (std::is_same_v<T, ReceiveDone>)
            client_.receiveDone(it.peer, it.token, it.length);
          if constexpr (std::is_same_v<T, FailedOver>) failedOver(it.peer, it.failover);
          if constexpr (std::is_same_v<T, CauseFound>)
            client_.explained(it.peer, it.rail, it.cause, channel::whereOf(it.cause));
          if constexpr (std::is_same_v<T, PeerMissing>) triangulation_->seek(it.peer, now());
          if constexpr (std::is_same_v<T, FailedBack>)
            client_.failedBack(it.peer, it.rail, it.when);
          if constexpr (std::is_same_v<T, NoteArrived>)
            if (it.note) noteArrived(it.peer, *it.note);
          if constexpr (std::is_same_v<T, LinkFailed>) client_.linkFailed(it.peer, it.why);
          if constexpr (std::is_same_v<T, WordArrived>) client_.wordArrived(it.peer, it.word);
        },
        event);
  }
  dispatching_.clear();
}

void Fabric::Impl::shutDown() {
  for (const auto& peer : peers_) {
    if (peer) peer->shutDown();
  }
}

void Fabric::Impl::abort(const std::string& reason) {
  posted_ = true;
  for (const auto& peer : peers_) {
    if (peer) peer->link().sendAbort(reason);
  }
}

FabricCounters Fabric::Impl::counters() const {
  FabricCounters sum;
  sum.datagramsRejected = datagramsRejected_;
  sum.connectionsRejected = acceptor_.rejected() + localAcceptor_.rejected();
  sum.nicDistancesKnown = nicDistancesKnown_;
  for (const auto& peer : peers_) {
    if (peer) sum += peer->link().counters();
  }
  return sum;
}

void Fabric::Impl::loads(std::vector<std::optional<channel::LinkLoad>>& out) const {
  const TimePoint time = now();
  out.assign(peers_.size(), std::nullopt);
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer] && !peers_[peer]->local()) out[peer] = peers_[peer]->link().load(time);
  }
}

// --- the public face ---

Fabric::Fabric(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Fabric::~Fabric() = default;

Result<std::unique_ptr<Fabric>> Fabric::create(const FabricOptions& options, FabricClient& client) {
  auto impl = std::make_unique<Impl>(options, client);
  RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<Fabric>(new Fabric(std::move(impl)));
}

const ProcessAddress& Fabric::address() const { return impl_->address_; }
Status Fabric::connect(const std::vector<ProcessAddress>& addresses) {
  return impl_->connect(addresses);
}
std::string Fabric::missingRails() const { return impl_->missingRails(); }
bool Fabric::allPeersReached() const { return impl_->allPeersReached(); }
void Fabric::start() { impl_->start(); }
Status Fabric::poll(Duration timeout) { return impl_->poll(timeout); }
void Fabric::shutDown() { impl_->shutDown(); }
void Fabric::abort(const std::string& reason) { impl_->abort(reason); }
FabricCounters Fabric::counters() const { return impl_->counters(); }
void Fabric::loads(std::vector<std::optional<channel::LinkLoad>>& out) const { impl_->loads(out); }
Status Fabric::watch(int fd, std::function<void()> ready) {
  return impl_->watch(fd, std::move(ready));
}
void Fabric::unwatch(int fd) { impl_->unwatch(fd); }
void Fabric::tell(int peer, std::span<const std::byte> word) { impl_->tellClient(peer, word); }
bool Fabric::told() const { return impl_->told(); }
void Fabric::doubt(int peer) { impl_->link(peer).doubt(now()); }

void Fabric::postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                      std::uint64_t token) {
  impl_->link(peer).postSend(key, data, length, token, now());
}

void Fabric::postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                         Bytes capacity, std::uint64_t token) {
  impl_->postReceive(peer, key, region, capacity, token);
}

}  // namespace faultline::fabric
