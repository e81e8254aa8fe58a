#include <net/if.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "resilient_ccl/channel/partners.h"
#include "resilient_ccl/fabric/datagram_inbox.h"
#include "resilient_ccl/fabric/fabric_impl.h"
#include "resilient_ccl/fabric/topology/nic_distance.h"
#include "resilient_ccl/transport/shm/local_socket.h"

namespace faultline::fabric {

void Fabric::Impl::choosePartners() {
  constexpr std::size_t kChoice = 3;  // with two rails each has one partner
  if (!options_.link.partners.empty() || options_.nics.size() < kChoice) return;
  std::vector<std::string> cards;
  for (const Nic& nic : options_.nics) cards.push_back(nic.card.empty() ? nic.device : nic.card);
  const auto distances =
      options_.topology.empty() ? nicDistances(cards) : nicDistancesIn(options_.topology, cards);
  nicDistancesKnown_ = distances.ok();
  if (distances.ok()) {
    options_.link.partners = channel::partnersByDistance(*distances);
  } else {
    spdlog::info("rails take over from each other in the order of their numbers: {}",
                 distances.status().message());
  }
}

Status Fabric::Impl::startIoThreads() {
  const auto& shared = options_.sharedIoThreads;
  const int count = std::min(options_.ioThreads, options_.link.rails);
  if (count == 0 && shared.empty()) return okStatus();
  collects_ = true;
  RETURN_IF_ERROR(arrivals_.open());
  RETURN_IF_ERROR(poller_.add(arrivals_.fd(), EPOLLIN, [this](auto) { arrivals_.clear(); }));
  for (std::size_t i = 0; i < shared.size(); ++i) {
    ioThreads_.push_back(
        shared[(static_cast<std::size_t>(options_.firstIoThread) + i) % shared.size()]);
    if (i < options_.nics.size()) commonIoThreads_.push_back(shared[i]);
  }
  for (int i = 0; i < count && shared.empty(); ++i) {
    ASSIGN_OR_RETURN(ioThreads_.emplace_back(), transport::tcp::IoThread::start());
  }
  if (shared.empty()) commonIoThreads_ = ioThreads_;
  return okStatus();
}

/// The sockets of a NIC. One whose interface is not there now is taken when that comes, if there is
/// another NIC to begin with.
Status Fabric::Impl::openNic(std::size_t rail) {
  const Nic& nic = options_.nics[rail];
  const int index = nic.device.empty() ? 0 : static_cast<int>(if_nametoindex(nic.device.c_str()));
  homes_.add(nic.device, nic.address, index);
  portSights_.push_back(nic.device.empty() ? PortSight() : PortSight(nic.device));
  address_.rails.emplace_back();
  listeners_.push_back(-1);
  reserved_.emplace_back();
  control_.emplace_back();
  const bool present = nic.device.empty() || index != 0;
  const bool others = std::ranges::any_of(options_.nics, [](const Nic& other) {
    return other.device.empty() || if_nametoindex(other.device.c_str()) != 0;
  });
  const Status opened = present || !others ? listenOn(rail) : reserve(rail);
  return opened.withContext(
      fmt::format("rail {} on {}", rail, nic.device.empty() ? "any device" : nic.device));
}

/// Ports that nobody else gets, for when the interface is there.
Status Fabric::Impl::reserve(std::size_t rail) {
  ProcessAddress::Rail& here = address_.rails[rail];
  ASSIGN_OR_RETURN(reserved_[rail], transport::tcp::reserveStreamPort());
  ASSIGN_OR_RETURN(here.data, transport::tcp::localEndpoint(reserved_[rail].get()));
  ASSIGN_OR_RETURN(UniqueFd control, transport::tcp::openUdp({0, "", options_.controlTos}));
  ASSIGN_OR_RETURN(here.control, transport::tcp::localEndpoint(control.get()));
  here.data.address = here.control.address = options_.nics[rail].address;
  return addControl(rail, std::move(control));
}

/// At the ports that it had before, if it had some.
Status Fabric::Impl::listenOn(std::size_t rail) {
  const Nic& nic = options_.nics[rail];
  ProcessAddress::Rail& here = address_.rails[rail];
  ASSIGN_OR_RETURN(UniqueFd listener,
                   transport::tcp::openListener(placeOf(nic, 0), here.data.port));
  ASSIGN_OR_RETURN(here.data, transport::tcp::localEndpoint(listener.get()));
  ASSIGN_OR_RETURN(UniqueFd control,
                   transport::tcp::openUdp(placeOf(nic, options_.controlTos), here.control.port));
  ASSIGN_OR_RETURN(here.control, transport::tcp::localEndpoint(control.get()));
  here.data.address = here.control.address = nic.address;
  listeners_[rail] = listener.get();
  RETURN_IF_ERROR(acceptor_.listen(std::move(listener)));
  return addControl(rail, std::move(control));
}

/// On the interface that the rail has now: a socket cannot be moved to another one.
void Fabric::Impl::reopen(std::size_t rail) {
  if (listeners_[rail] >= 0) acceptor_.close(std::exchange(listeners_[rail], -1));
  reserved_[rail].reset();
  if (control_[rail]) poller_.remove(control_[rail].get());
  control_[rail].reset();
  for (const auto& peer : peers_) {
    if (peer) peer->rehoused(static_cast<int>(rail));
  }
  const Status opened = listenOn(rail);
  if (!opened.ok()) {
    spdlog::warn("rail {} ({}) cannot be taken back: {}", rail, options_.nics[rail].device,
                 opened.message());
  }
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
    RETURN_IF_ERROR(openNic(rail));
  }
  ASSIGN_OR_RETURN(UniqueFd management,
                   transport::tcp::openUdp({options_.managementAddress, "", options_.controlTos}));
  ASSIGN_OR_RETURN(address_.management, transport::tcp::localEndpoint(management.get()));
  control_.emplace_back();
  RETURN_IF_ERROR(addControl(options_.nics.size(), std::move(management)));
  RETURN_IF_ERROR(openLocal().withContext("shared memory"));

  ASSIGN_OR_RETURN(
      ports_,
      PortWatch::open(
          {.port = [this](const Port& port) { nicsChanged(homes_.port(port)); },
           .ports = [this](const std::set<int>& all) { nicsChanged(homes_.ports(all)); },
           .address =
               [this](int interface, std::uint32_t address, bool present) {
                 nicsChanged(homes_.address(interface, address, present));
               },
           .addresses =
               [this](const PortWatch::Addresses& all) { nicsChanged(homes_.addresses(all)); }}));
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

Status Fabric::Impl::addControl(std::size_t place, UniqueFd socket) {
  const int fd = socket.get();
  const int path = static_cast<int>(place);
  control_[place] = std::move(socket);
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
    peers_.push_back(std::make_unique<Peer>(
        PeerContext{options_, poller_, control_, authenticator_, events_, ioThreads_,
                    commonIoThreads_, arrivals_, portSights_, takeShared_},
        index, addresses[i], local));
  }
  triangulation_.emplace(options_.self, static_cast<int>(peers_.size()),
                         static_cast<TriangulationIo&>(*this));
  for (std::size_t rail = 0; rail < homes_.size(); ++rail) {
    const bool missing = homes_.index(rail) == 0 && !homes_.device(rail).empty();
    if (missing) portChanged(rail, false);
  }
  // Ports that were down before we listened.
  return ports_->reportAll();
}

bool Fabric::Impl::allRailsUp() const {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    for (int rail = 0; peers_[peer] && rail < railsTo(static_cast<int>(peer)); ++rail) {
      if (!peers_[peer]->link().railUp(rail)) return false;
    }
  }
  return true;
}

std::string Fabric::Impl::missingRails() const {
  std::string missing;
  for (std::size_t index = 0; index < peers_.size(); ++index) {
    if (!peers_[index]) continue;
    Peer& peer = *peers_[index];
    for (int rail = 0; rail < railsTo(static_cast<int>(index)); ++rail) {
      if (peer.link().railUp(rail)) continue;
      if (!missing.empty()) missing += "; ";
      missing += peer.local() ? fmt::format("shared memory with {}", peer.name())
                              : fmt::format("rail {} ({}) to {}", rail, options_.nics[rail].device,
                                            peer.name());
      missing += ": " + peer.whyNotUp(rail);
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

}  // namespace faultline::fabric
