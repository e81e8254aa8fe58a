#include "resilient_ccl/fabric/fabric.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/log.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/fabric/fabric_impl.h"

namespace faultline::fabric {

namespace {

// Longest sleep: budgets and hold-offs are looked at no later than this.
constexpr Duration kLongestSleep = 50ms;

}  // namespace

Link& Fabric::Impl::link(int peer) {
  posted_ = true;
  return peers_[peer]->link();
}

std::uint32_t Fabric::Impl::postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                                        Bytes capacity, std::uint64_t token, bool eager) {
  posted_ = true;
  return peers_[peer]->postReceive(key, region, capacity, token, eager);
}

void Fabric::Impl::tellClient(int peer, std::span<const std::byte> word) {
  const Note::Kind kind = Note::Kind::kWord;
  std::array<std::byte, channel::Record::kMaxPayload> note;
  assert(word.size() <= kLongestWord);
  std::ranges::copy(channel::bytesOf(kind), note.begin());
  std::ranges::copy(word, note.begin() + sizeof(kind));
  link(peer).sendNote(std::span(note).first(sizeof(kind) + word.size()));
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

bool Fabric::Impl::expireHandshakes(TimePoint time) {
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

void Fabric::Impl::nicsChanged(const NicHomes::Changes& changes) {
  using Kind = NicHomes::Change::Kind;
  for (const NicHomes::Change& change : changes) {
    const std::size_t rail = change.rail;
    if (change.kind == Kind::kRenamed || change.kind == Kind::kMoved) {
      spdlog::info("rail {} ({}) {} {}", rail, options_.nics[rail].device,
                   change.kind == Kind::kMoved ? "is on a new interface:" : "is called",
                   homes_.device(rail));
      options_.nics[rail].device = homes_.device(rail);
      portSights_[rail] = PortSight(homes_.device(rail));
    }
    if (change.kind == Kind::kMoved) {
      portChanged(rail, false);  // what was connected stands on an interface that is gone
      reopen(rail);
    }
    if (change.kind == Kind::kAddress) tellAddress(rail);
    if (change.kind != Kind::kAddress && change.kind != Kind::kRenamed) {
      portChanged(rail, change.usable);
    }
  }
}

void Fabric::Impl::portChanged(std::size_t rail, bool usable) {
  if (usable) portSights_[rail].works();
  for (const auto& peer : peers_) {
    if (peer && !peer->local()) peer->link().onPort(static_cast<int>(rail), usable, now());
  }
}

void Fabric::Impl::failedOver(int peer, const channel::Failover& failover) {
  client_.failedOver(peer, failover);
  if (failover.cause == channel::Cause::kPath) triangulation_->begin(peer, failover.rail, now());
}

void Fabric::Impl::tellAddress(std::size_t rail) {
  options_.nics[rail].address = homes_.address(rail);
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (!peers_[peer] || peers_[peer]->local()) continue;
    peers_[peer]->rehoused(static_cast<int>(rail));
    tell(static_cast<int>(peer), {.kind = Note::Kind::kAddress,
                                  .rail = static_cast<std::uint32_t>(rail),
                                  .value = homes_.address(rail),
                                  .detail = homes_.addressChanges(rail)});
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
  // Whatever is behind the seal only makes a frame full; of a long one it has been cut off.
  const std::size_t whole = header->length + sizeof(auth::Seal);
  const bool padded = sealed.size() > whole;
  if (padded) sealed = sealed.first(whole);
  if (!comesBy(peer, door, path)) return false;
  const auto datagram = peer.controlPath(path).open(authenticator_, sealed);
  if (!datagram || !channel::parseDatagram(*datagram, datagram_).ok()) return false;
  if (padded && !channel::fillsFrame(datagram_)) return false;
  peer.link().onDatagram(path, datagram_, now());
  return true;
}

Status Fabric::Impl::poll(Duration timeout) {
  if (posted_) transmit();  // what was posted since the last poll does not wait for this one's end
  const TimePoint begin = now();
  const TimePoint due = events_.empty() ? nextDue(begin) : begin;
  TimePoint wake = std::min(due, begin + std::min(timeout, kLongestSleep));
  bool any = collects_ && collect();
  const bool sleeps = collects_ && !any && wake > begin;
  if (sleeps) any = armAndCollect();
  if (any) wake = begin;
  ASSIGN_OR_RETURN(const int ready, poller_.wait(wake - begin));
  if (sleeps) disarm();
  if (collects_ && collect()) any = true;
  // Who polls in a loop does so far more often than there is anything.
  if (unsettled_ || any || ready > 0 || wake > begin || due <= begin) settle();
  return okStatus();
}

void Fabric::Impl::push() {
  if (posted_) transmit();
  for (const auto& peer : peers_) {
    if (peer && peer->hasWork()) peer->fenceDue();  // before anybody is told that a link has failed
  }
  dispatch();
}

/// When there is something to do for whoever is polled, if nothing comes.
TimePoint Fabric::Impl::nextDue(TimePoint time) const {
  TimePoint due = settled_ + kLongestSleep;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    due = std::min(due, peer->hasWork() ? time : peer->link().nextDeadline());
  }
  return due;
}

void Fabric::Impl::setMover(transport::Mover mover) {
  for (const auto& peer : peers_) {
    if (peer) peer->setMover(mover);
  }
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
  if (std::exchange(posted_, false)) unsettled_ = true;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->transmit();  // payload first: somebody waits for it
    peer->link().flush(now());
  }
}

void Fabric::Impl::settle() {
  // Repairs lead to completions, completions to new messages: a few rounds, then the next poll.
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    settled_ = now();
    unsettled_ = false;
    bool again = expireHandshakes(settled_);
    for (const auto& peer : peers_) {
      if (!peer) continue;
      peer->link().onTick(settled_);
      if (peer->fenceDue()) again = true;
    }
    again = again || !events_.empty();
    dispatch();
    if (triangulation_) triangulation_->onTick(settled_);
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
          if constexpr (std::is_same_v<T, SendFailed>)
            client_.sendFailed(it.peer, it.token, it.why);
          if constexpr (std::is_same_v<T, ReceiveFailed>)
            client_.receiveFailed(it.peer, it.token, it.why);
          if constexpr (std::is_same_v<T, RailLost>) client_.railLost(it.peer, it.failover);
          if constexpr (std::is_same_v<T, FailedOver>) failedOver(it.peer, it.failover);
          if constexpr (std::is_same_v<T, CauseFound>)
            client_.explained(it.peer, it.rail, it.cause, channel::whereOf(it.cause));
          if constexpr (std::is_same_v<T, PeerMissing>) triangulation_->seek(it.peer, now());
          if constexpr (std::is_same_v<T, FailedBack>)
            client_.failedBack(it.peer, it.rail, it.when);
          if constexpr (std::is_same_v<T, Degraded>) client_.degraded(it.peer, it.change);
          if constexpr (std::is_same_v<T, FramesLost>)
            client_.framesLost(it.peer, it.rail, it.frame);
          if constexpr (std::is_same_v<T, PathWord>)
            client_.pathProved(it.peer, it.proved, peers_[it.peer]->wordsOf(it.proved));
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
    if (!peer) continue;
    sum += peer->link().counters();
    sum.connectionsRejected += peer->answersRefused();
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
void Fabric::setJobKey(const auth::JobKey& key) { impl_->setJobKey(key); }
Status Fabric::connect(const std::vector<ProcessAddress>& addresses) {
  return impl_->connect(addresses);
}
const channel::LinkOptions& Fabric::linkOptions(int peer) const { return impl_->linkOptions(peer); }
bool Fabric::allRailsUp() const { return impl_->allRailsUp(); }
std::string Fabric::missingRails() const { return impl_->missingRails(); }
bool Fabric::allPeersReached() const { return impl_->allPeersReached(); }
void Fabric::start() { impl_->start(); }
void Fabric::setMover(transport::Mover mover) { impl_->setMover(mover); }
Status Fabric::poll(Duration timeout) { return impl_->poll(timeout); }
void Fabric::push() { impl_->push(); }
void Fabric::shutDown() { impl_->shutDown(); }
void Fabric::abort(const std::string& reason) { impl_->abort(reason); }
FabricCounters Fabric::counters() const { return impl_->counters(); }
const std::vector<Nic>& Fabric::nics() const { return impl_->nics(); }
std::vector<Bytes> Fabric::bytesSentByRail(int peer) const {
  const Link& link = impl_->link(peer);
  std::vector<Bytes> sent;
  for (int rail = 0; rail < link.options().rails; ++rail) sent.push_back(link.bytesSent(rail));
  return sent;
}
void Fabric::loads(std::vector<std::optional<channel::LinkLoad>>& out) const { impl_->loads(out); }
Status Fabric::watch(int fd, std::function<void()> ready) {
  return impl_->watch(fd, std::move(ready));
}
void Fabric::unwatch(int fd) { impl_->unwatch(fd); }
void Fabric::tell(int peer, std::span<const std::byte> word) { impl_->tellClient(peer, word); }
bool Fabric::told(int peer) const { return impl_->link(peer).told(); }
bool Fabric::delivered(int peer) const { return impl_->link(peer).delivered(); }
void Fabric::doubt(int peer) { impl_->link(peer).doubt(now()); }

void Fabric::postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                      std::uint64_t token, int firstChoice) {
  impl_->link(peer).postSend(key, data, length, token, now(), firstChoice);
}

void Fabric::postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                         Bytes capacity, std::uint64_t token) {
  impl_->postReceive(peer, key, region, capacity, token, /*eager=*/false);
}

std::uint32_t Fabric::postEagerReceive(int peer, const channel::MessageKey& key, std::byte* region,
                                       Bytes capacity, std::uint64_t token) {
  return impl_->postReceive(peer, key, region, capacity, token, /*eager=*/true);
}

void Fabric::expect(int peer, std::uint32_t slot) { impl_->link(peer).expect(slot, now()); }

bool Fabric::closeSends(int peer, const channel::StreamKey& stream) {
  return impl_->withdrawing(peer).closeSends(stream);
}

bool Fabric::closeReceives(int peer, const channel::StreamKey& stream) {
  return impl_->withdrawing(peer).closeReceives(stream);
}

}  // namespace faultline::fabric
