#include "resilient_ccl/fabric/fabric.h"

#include <net/if.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <unordered_map>
#include <variant>

#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/fabric/port_watch.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"

namespace faultline::fabric {

using channel::Cause;
using channel::ChunkHeader;
using channel::Failover;
using channel::Link;
using channel::RemoteRegion;
using transport::tcp::SocketPlace;
using transport::tcp::TcpRail;

namespace {

// Longest sleep: budgets and hold-offs are looked at no later than this.
constexpr Duration kLongestSleep = 50ms;
// Connections that have not said hello yet, at most: a stray program cannot use up descriptors.
constexpr std::size_t kMaxStrangers = 256;

struct SendDone {
  int peer;
  std::uint64_t token;
};
struct ReceiveDone {
  int peer;
  std::uint64_t token;
  Bytes length;
};
struct FailedOver {
  int peer;
  Failover failover;
};
struct FailedBack {
  int peer;
  int rail;
  TimePoint when;
};
struct LinkFailed {
  int peer;
  Status why;
};
using Event = std::variant<SendDone, ReceiveDone, FailedOver, FailedBack, LinkFailed>;

}  // namespace

class Fabric::Impl {
 public:
  Impl(const FabricOptions& options, FabricClient& client) : options_(options), client_(client) {
    options_.link.rails = static_cast<int>(options_.nics.size());
  }

  Status open();
  Status connect(const std::vector<ProcessAddress>& addresses);
  bool allRailsUp() const;
  Status poll(Duration timeout);
  Status watch(int fd, std::function<void()> ready);
  void unwatch(int fd);
  void shutDown();
  void abort(const std::string& reason);
  channel::LinkCounters counters() const;

  Link& link(int peer);
  ProcessAddress address_;

 private:
  struct Peer;
  using Handler = std::function<void(std::uint32_t events)>;

  Status addHandler(int fd, std::uint32_t events, Handler handler);
  void setEvents(int fd, std::uint32_t events);
  void removeHandler(int fd);

  int paths() const { return options_.link.rails + 1; }
  void readDatagrams(int path);
  void acceptConnections(int rail);
  void advanceStranger(std::list<Handshake>::iterator stranger);
  void portChanged(int interface, bool usable);
  void settle();
  void dispatch();
  bool expireHandshakes();

  FabricOptions options_;
  FabricClient& client_;
  UniqueFd epoll_;
  std::unordered_map<int, std::shared_ptr<Handler>> handlers_;
  std::vector<UniqueFd> control_;    // one UDP socket per path
  std::vector<UniqueFd> listeners_;  // one per rail
  std::vector<int> interfaces_;      // interface index of each NIC, 0: unknown
  std::vector<bool> portUsable_;
  std::unique_ptr<PortWatch> ports_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process; null for ourselves
  std::list<Handshake> strangers_;            // accepted, no hello yet
  std::vector<Event> events_;
  std::vector<Event> dispatching_;
  channel::Datagram datagram_;
};

/// One other process: its link, and the sockets that the link speaks of.
struct Fabric::Impl::Peer : channel::LinkIo, transport::RailSink {
  Peer(Impl& inFabric, int inIndex, ProcessAddress inAddress)
      : fabric(inFabric),
        index(inIndex),
        address(std::move(inAddress)),
        rails(address.rails.size()),
        opening(address.rails.size()),
        fenceDue(address.rails.size()),
        waitsWritable(address.rails.size()) {}

  // LinkIo
  void sendDatagram(int path, std::span<const std::byte> bytes) override {
    const bool overRail = path < static_cast<int>(address.rails.size());
    const sockaddr_in to =
        (overRail ? address.rails[path].control : address.management).toSockaddr();
    // Loss is the link's business: whatever goes wrong here looks like a lost datagram.
    (void)::sendto(fabric.control_[path].get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }
  void submit(int rail, const ChunkHeader& header, const std::byte* data,
              const RemoteRegion& region) override {
    rails[rail]->submit(header, data, region);
  }
  void fenceRail(int rail) override { fenceDue[rail] = true; }
  void openRail(int rail, std::uint32_t epoch) override { beginOpen(rail, epoch); }
  void cancelOpen(int rail) override { dropOpening(rail); }
  void sendDone(std::uint64_t token) override { fabric.events_.push_back(SendDone{index, token}); }
  void receiveDone(std::uint64_t token, Bytes length) override {
    fabric.events_.push_back(ReceiveDone{index, token, length});
  }
  void failedOver(const Failover& failover) override {
    fabric.events_.push_back(FailedOver{index, failover});
  }
  void failedBack(int rail, TimePoint when) override {
    fabric.events_.push_back(FailedBack{index, rail, when});
  }
  void linkFailed(const Status& why) override { fabric.events_.push_back(LinkFailed{index, why}); }

  // RailSink
  Result<std::byte*> place(int rail, const ChunkHeader& header) override {
    return link->place(rail, header);
  }
  void chunkArrived(int rail, const ChunkHeader& header) override {
    link->onChunkArrived(rail, header, now());
  }
  void railFailed(int rail, const Status& why) override {
    const bool lie = why.code() == Code::kInvalidArgument;
    link->onRailFailed(rail, lie ? Cause::kProtocol : Cause::kRail, now());
  }

  void beginOpen(int rail, std::uint32_t epoch);
  void dropOpening(int rail);
  void advanceOpening(int rail);
  void openFailed(int rail);
  void adopt(int rail, UniqueFd socket, std::uint32_t epoch);
  void fence(int rail);
  void writeRails();

  Impl& fabric;
  int index;
  ProcessAddress address;
  std::unique_ptr<Link> link;
  std::vector<std::unique_ptr<TcpRail>> rails;
  std::vector<std::optional<Handshake>> opening;  // connecting end
  std::vector<std::uint32_t> failedOpens;         // rails whose attempt failed at once
  std::vector<bool> fenceDue;
  std::vector<bool> waitsWritable;
};

Link& Fabric::Impl::link(int peer) { return *peers_[peer]->link; }

// --- set-up ---

Status Fabric::Impl::open() {
  if (options_.nics.empty())
    return errorf(Code::kInvalidArgument, "a fabric needs at least one NIC");
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Status::fromErrno(errno, "create an epoll object");
  portUsable_.assign(options_.nics.size(), true);
  for (std::size_t rail = 0; rail < options_.nics.size(); ++rail) {
    const Nic& nic = options_.nics[rail];
    const std::string what =
        fmt::format("rail {} on {}", rail, nic.device.empty() ? "any device" : nic.device);
    ASSIGN_OR_RETURN(UniqueFd control,
                     transport::tcp::openUdp({nic.address, nic.device, options_.controlTos}));
    ASSIGN_OR_RETURN(UniqueFd listener, transport::tcp::openListener({nic.address, nic.device, 0}));
    ASSIGN_OR_RETURN(const Endpoint data, transport::tcp::localEndpoint(listener.get()));
    ASSIGN_OR_RETURN(const Endpoint datagrams, transport::tcp::localEndpoint(control.get()));
    address_.rails.push_back({data, datagrams});
    interfaces_.push_back(
        nic.device.empty() ? 0 : static_cast<int>(if_nametoindex(nic.device.c_str())));
    const int index = static_cast<int>(rail);
    RETURN_IF_ERROR(addHandler(control.get(), EPOLLIN, [this, index](auto) {
                      readDatagrams(index);
                    }).withContext(what));
    RETURN_IF_ERROR(addHandler(listener.get(), EPOLLIN, [this, index](auto) {
                      acceptConnections(index);
                    }).withContext(what));
    control_.push_back(std::move(control));
    listeners_.push_back(std::move(listener));
  }
  ASSIGN_OR_RETURN(UniqueFd management,
                   transport::tcp::openUdp({options_.managementAddress, "", options_.controlTos}));
  ASSIGN_OR_RETURN(address_.management, transport::tcp::localEndpoint(management.get()));
  const int path = paths() - 1;
  RETURN_IF_ERROR(
      addHandler(management.get(), EPOLLIN, [this, path](auto) { readDatagrams(path); }));
  control_.push_back(std::move(management));

  ASSIGN_OR_RETURN(ports_, PortWatch::open([this](int interface, bool usable) {
                     portChanged(interface, usable);
                   }));
  return addHandler(ports_->fd(), EPOLLIN, [this](auto) { (void)ports_->poll(); });
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
    peers_.push_back(std::make_unique<Peer>(*this, index, addresses[i]));
    Peer& peer = *peers_.back();
    peer.link =
        std::make_unique<Link>(Link::Identity{.self = static_cast<std::uint32_t>(options_.self),
                                              .peer = static_cast<std::uint32_t>(i),
                                              .jobKey = options_.jobKey,
                                              .name = fmt::format("rank {}", i),
                                              .connects = options_.self < index},
                               options_.link, peer, now());
  }
  // Ports that were down before we listened.
  return ports_->reportAll();
}

bool Fabric::Impl::allRailsUp() const {
  for (const auto& peer : peers_) {
    if (!peer) continue;
    for (int rail = 0; rail < options_.link.rails; ++rail) {
      if (!peer->link->railUp(rail)) return false;
    }
  }
  return true;
}

// --- descriptors ---

Status Fabric::Impl::addHandler(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Status::fromErrno(errno, "watch a descriptor");
  }
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return okStatus();
}

void Fabric::Impl::setEvents(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Fabric::Impl::removeHandler(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

Status Fabric::Impl::watch(int fd, std::function<void()> ready) {
  return addHandler(fd, EPOLLIN, [ready = std::move(ready)](auto) { ready(); });
}

void Fabric::Impl::unwatch(int fd) { removeHandler(fd); }

// --- connections ---

void Fabric::Impl::Peer::beginOpen(int rail, std::uint32_t epoch) {
  const Nic& nic = fabric.options_.nics[rail];
  Result<UniqueFd> socket =
      transport::tcp::beginConnect({nic.address, nic.device, 0}, address.rails[rail].data);
  if (!socket.ok()) {
    failedOpens.push_back(static_cast<std::uint32_t>(rail));  // told later: no call back from here
    return;
  }
  const Hello hello{.source = static_cast<std::uint32_t>(fabric.options_.self),
                    .jobKey = fabric.options_.jobKey,
                    .destination = static_cast<std::uint32_t>(index),
                    .rail = static_cast<std::uint32_t>(rail),
                    .epoch = epoch};
  const int fd = socket->get();
  opening[rail] =
      Handshake::connecting(std::move(*socket), hello, now() + fabric.options_.connectTimeout);
  const Status added =
      fabric.addHandler(fd, EPOLLOUT, [this, rail](auto) { advanceOpening(rail); });
  if (!added.ok()) {
    opening[rail].reset();
    failedOpens.push_back(static_cast<std::uint32_t>(rail));
  }
}

void Fabric::Impl::Peer::dropOpening(int rail) {
  if (!opening[rail]) return;
  fabric.removeHandler(opening[rail]->fd());
  opening[rail].reset();
}

void Fabric::Impl::Peer::openFailed(int rail) {
  dropOpening(rail);
  link->onOpenFailed(rail, link->epoch(rail) + 1, now());
}

void Fabric::Impl::Peer::advanceOpening(int rail) {
  if (!opening[rail]) return;
  const Result<bool> done = opening[rail]->advance();
  if (!done.ok()) {
    openFailed(rail);
  } else if (*done) {
    const std::uint32_t epoch = opening[rail]->hello().epoch;
    fabric.removeHandler(opening[rail]->fd());
    UniqueFd socket = opening[rail]->release();
    opening[rail].reset();
    adopt(rail, std::move(socket), epoch);
  } else {
    fabric.setEvents(opening[rail]->fd(), opening[rail]->wantsWritable() ? EPOLLOUT : EPOLLIN);
  }
}

void Fabric::Impl::Peer::adopt(int rail, UniqueFd socket, std::uint32_t epoch) {
  const int fd = socket.get();
  rails[rail] = std::make_unique<TcpRail>(rail, std::move(socket), *this);
  waitsWritable[rail] = false;
  const Status added = fabric.addHandler(fd, EPOLLIN, [this, rail](std::uint32_t events) {
    if (events & EPOLLOUT) rails[rail]->write(/*socketIsWritable=*/true);
    if (events & ~std::uint32_t{EPOLLOUT}) rails[rail]->read();
  });
  link->onRailOpened(rail, epoch, now());
  if (!added.ok()) link->onRailFailed(rail, Cause::kRail, now());
}

void Fabric::Impl::acceptConnections(int rail) {
  for (;;) {
    UniqueFd socket(
        accept4(listeners_[rail].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    if (strangers_.size() >= kMaxStrangers) continue;  // closes it
    if (!transport::tcp::configureAccepted(socket.get(), 0).ok()) continue;
    const int fd = socket.get();
    const auto stranger = strangers_.insert(
        strangers_.end(), Handshake::accepted(std::move(socket), now() + options_.connectTimeout));
    const Status added =
        addHandler(fd, EPOLLIN, [this, stranger](auto) { advanceStranger(stranger); });
    if (!added.ok()) strangers_.erase(stranger);
  }
}

void Fabric::Impl::advanceStranger(std::list<Handshake>::iterator stranger) {
  const Result<bool> done = stranger->advance();
  if (done.ok() && !*done) return;
  removeHandler(stranger->fd());
  const Hello hello = stranger->hello();
  const bool known = done.ok() && hello.jobKey == options_.jobKey &&
                     hello.destination == static_cast<std::uint32_t>(options_.self) &&
                     hello.source < peers_.size() && peers_[hello.source] &&
                     hello.rail < options_.nics.size();
  if (known && peers_[hello.source]->link->mayAccept(static_cast<int>(hello.rail), hello.epoch)) {
    Result<UniqueFd> socket = stranger->accept();
    if (socket.ok()) {
      peers_[hello.source]->adopt(static_cast<int>(hello.rail), std::move(*socket), hello.epoch);
    }
  }
  strangers_.erase(stranger);
}

bool Fabric::Impl::expireHandshakes() {
  const TimePoint time = now();
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto stranger = next++;
    if (time < stranger->deadline()) continue;
    removeHandler(stranger->fd());
    strangers_.erase(stranger);
  }
  bool any = false;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    for (const std::uint32_t rail : std::exchange(peer->failedOpens, {})) {
      peer->openFailed(static_cast<int>(rail));
      any = true;
    }
    for (int rail = 0; rail < options_.link.rails; ++rail) {
      if (!peer->opening[rail] || time < peer->opening[rail]->deadline()) continue;
      peer->openFailed(rail);
      any = true;
    }
  }
  return any;
}

void Fabric::Impl::Peer::fence(int rail) {
  fenceDue[rail] = false;
  const int fd = rails[rail]->fd();
  rails[rail]->fence();
  fabric.handlers_.erase(fd);  // closed: the kernel has taken it out of the epoll set
  link->onRailFenced(rail, now());
}

void Fabric::Impl::Peer::writeRails() {
  for (int rail = 0; rail < static_cast<int>(rails.size()); ++rail) {
    TcpRail* out = rails[rail].get();
    if (out == nullptr || out->fenced()) continue;
    if (out->canWrite()) out->write(/*socketIsWritable=*/false);
    if (out->fenced() || out->wantsWritable() == waitsWritable[rail]) continue;
    waitsWritable[rail] = out->wantsWritable();
    fabric.setEvents(out->fd(), waitsWritable[rail] ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
}

// --- events ---

void Fabric::Impl::portChanged(int interface, bool usable) {
  for (std::size_t rail = 0; rail < interfaces_.size(); ++rail) {
    if (interfaces_[rail] == 0 || interfaces_[rail] != interface) continue;
    if (portUsable_[rail] == usable) continue;
    portUsable_[rail] = usable;
    for (const auto& peer : peers_) {
      if (peer) peer->link->onPort(static_cast<int>(rail), usable, now());
    }
  }
}

void Fabric::Impl::readDatagrams(int path) {
  constexpr int kBatch = 16;
  std::array<std::array<std::byte, channel::kMaxDatagram + 1>, kBatch> buffers;
  std::array<iovec, kBatch> pieces;
  std::array<mmsghdr, kBatch> messages{};
  for (int i = 0; i < kBatch; ++i) {
    pieces[i] = {buffers[i].data(), buffers[i].size()};
    messages[i].msg_hdr.msg_iov = &pieces[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  for (;;) {
    const int count =
        recvmmsg(control_[path].get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      const std::span<const std::byte> bytes(buffers[i].data(), messages[i].msg_len);
      // Strays, leftovers of other jobs and garbage are dropped without a word.
      if (!channel::parseDatagram(bytes, datagram_).ok()) continue;
      const channel::DatagramHeader& header = datagram_.header;
      if (header.jobKey != options_.jobKey || header.path != path) continue;
      if (header.destination != static_cast<std::uint32_t>(options_.self)) continue;
      if (header.source >= peers_.size() || !peers_[header.source]) continue;
      peers_[header.source]->link->onDatagram(path, datagram_, now());
    }
    if (count < kBatch) return;
  }
}

Status Fabric::Impl::poll(Duration timeout) {
  const TimePoint begin = now();
  TimePoint wake = begin + std::min(timeout, kLongestSleep);
  for (const auto& peer : peers_) {
    if (peer) wake = std::min(wake, peer->link->nextDeadline());
  }
  const Duration sleep = std::max(Duration::zero(), wake - begin);
  const timespec pause{.tv_sec = duration_cast<std::chrono::seconds>(sleep).count(),
                       .tv_nsec = (sleep % 1s).count()};
  std::array<epoll_event, 64> ready;
  const int count = epoll_pwait2(epoll_.get(), ready.data(), ready.size(), &pause, nullptr);
  if (count < 0 && errno != EINTR) return Status::fromErrno(errno, "wait for the network");
  for (int i = 0; i < count; ++i) {
    const auto handler = handlers_.find(ready[i].data.fd);
    if (handler == handlers_.end()) continue;
    const std::shared_ptr<Handler> call = handler->second;  // it may remove itself
    (*call)(ready[i].events);
  }
  settle();
  return okStatus();
}

void Fabric::Impl::settle() {
  // Repairs lead to completions, completions to new messages: a few rounds, then the next poll.
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    bool again = expireHandshakes();
    for (const auto& peer : peers_) {
      if (!peer) continue;
      for (int rail = 0; rail < options_.link.rails; ++rail) {
        if (!peer->fenceDue[rail]) continue;
        peer->fence(rail);
        again = true;
      }
      peer->link->onTick(now());
    }
    again = again || !events_.empty();
    dispatch();
    for (const auto& peer : peers_) {
      if (!peer) continue;
      peer->link->flush(now());
      peer->writeRails();
    }
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
          if constexpr (std::is_same_v<T, FailedOver>) client_.failedOver(it.peer, it.failover);
          if constexpr (std::is_same_v<T, FailedBack>)
            client_.failedBack(it.peer, it.rail, it.when);
          if constexpr (std::is_same_v<T, LinkFailed>) client_.linkFailed(it.peer, it.why);
        },
        event);
  }
  dispatching_.clear();
}

void Fabric::Impl::shutDown() {
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->link->shutDown();
    for (int rail = 0; rail < options_.link.rails; ++rail) {
      peer->dropOpening(rail);
      if (peer->rails[rail] && !peer->rails[rail]->fenced()) peer->fence(rail);
    }
  }
}

void Fabric::Impl::abort(const std::string& reason) {
  for (const auto& peer : peers_) {
    if (peer) peer->link->sendAbort(reason);
  }
}

channel::LinkCounters Fabric::Impl::counters() const {
  channel::LinkCounters sum;
  for (const auto& peer : peers_) {
    if (peer) sum += peer->link->counters();
  }
  return sum;
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
bool Fabric::allRailsUp() const { return impl_->allRailsUp(); }
Status Fabric::poll(Duration timeout) { return impl_->poll(timeout); }
void Fabric::shutDown() { impl_->shutDown(); }
void Fabric::abort(const std::string& reason) { impl_->abort(reason); }
channel::LinkCounters Fabric::counters() const { return impl_->counters(); }
Status Fabric::watch(int fd, std::function<void()> ready) {
  return impl_->watch(fd, std::move(ready));
}
void Fabric::unwatch(int fd) { impl_->unwatch(fd); }

void Fabric::postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                      std::uint64_t token) {
  impl_->link(peer).postSend(key, data, length, token, now());
}

void Fabric::postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                         Bytes capacity, std::uint64_t token) {
  impl_->link(peer).postReceive(key, region, capacity, {}, token, now());
}

std::string ProcessAddress::serialize() const {
  std::string bytes;
  const auto add = [&](const Endpoint& endpoint) {
    bytes.append(reinterpret_cast<const char*>(&endpoint.address), sizeof(endpoint.address));
    bytes.append(reinterpret_cast<const char*>(&endpoint.port), sizeof(endpoint.port));
  };
  add(management);
  for (const Rail& rail : rails) {
    add(rail.data);
    add(rail.control);
  }
  return bytes;
}

Result<ProcessAddress> ProcessAddress::parse(const std::string& bytes) {
  constexpr std::size_t kEndpoint = sizeof(std::uint32_t) + sizeof(std::uint16_t);
  if (bytes.size() < kEndpoint || (bytes.size() / kEndpoint) % 2 != 1 ||
      bytes.size() % kEndpoint != 0) {
    return errorf(Code::kInvalidArgument, "{} bytes are not a process address", bytes.size());
  }
  std::size_t at = 0;
  const auto next = [&] {
    Endpoint endpoint;
    std::memcpy(&endpoint.address, bytes.data() + at, sizeof(endpoint.address));
    std::memcpy(&endpoint.port, bytes.data() + at + sizeof(endpoint.address),
                sizeof(endpoint.port));
    at += kEndpoint;
    return endpoint;
  };
  ProcessAddress address;
  address.management = next();
  while (at < bytes.size()) {
    const Endpoint data = next();
    const Endpoint control = next();
    address.rails.push_back({data, control});
  }
  return address;
}

}  // namespace faultline::fabric
