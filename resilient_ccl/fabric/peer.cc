#include "resilient_ccl/fabric/peer.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/system_calls.h"
#include "resilient_ccl/fabric/path_words.h"
#include "resilient_ccl/fabric/polled_rail.h"
#include "resilient_ccl/fabric/route_lookup.h"
#include "resilient_ccl/transport/shm/local_socket.h"

namespace faultline::fabric {

using channel::Cause;
using channel::ChunkHeader;
using channel::Failover;
using channel::Link;
using channel::RemoteRegion;
using telemetry::EventKind;
using transport::tcp::Arrival;
using transport::tcp::ThreadedRail;

namespace {

std::string nameOf(const FabricOptions& options, int index) {
  const auto known = static_cast<std::size_t>(index) < options.names.size();
  return known ? options.names[index] : fmt::format("rank {}", index);
}

channel::LinkOptions linkOptions(const FabricOptions& options, bool local) {
  channel::LinkOptions link = options.link;
  if (local) {
    link.rails = 1;
    link.partners.clear();
  }
  return link;
}

/// What a datagram is made of, and zeros behind it.
class Padded {
 public:
  void add(std::span<const std::byte> bytes) {
    pieces_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    size_ += bytes.size();
  }
  void padTo(std::size_t size) {
    while (size_ < size) add(std::span(kZeros).first(std::min(size - size_, kZeros.size())));
  }
  std::span<iovec> all() { return std::span(pieces_).first(count_); }

 private:
  static constexpr std::array<std::byte, 4096> kZeros{};
  // A datagram and its seal, and the longest padding.
  std::array<iovec, 2 + channel::kLongestFrame / kZeros.size() + 1> pieces_;
  std::size_t count_ = 0;
  std::size_t size_ = 0;
};

}  // namespace

Peer::Peer(const PeerContext& context, int index, ProcessAddress address, bool local)
    : context_(context),
      index_(index),
      address_(std::move(address)),
      local_(local),
      controlPaths_((local ? 1 : address_.rails.size()) + 1),
      addressChanges_(address_.rails.size()),
      places_(context_.options.link.cut()),
      rails_(controlPaths_.size() - 1),
      opening_(rails_.size()),
      openFailures_(rails_.size()),
      fenceDue_(rails_.size()),
      placedAt_(rails_.size()) {
  const FabricOptions& options = context_.options;
  link_ = std::make_unique<Link>(Link::Identity{.self = static_cast<std::uint32_t>(options.self),
                                                .peer = static_cast<std::uint32_t>(index_),
                                                .name = nameOf(options, index_),
                                                .connects = options.self < index_},
                                 linkOptions(options, local), static_cast<channel::LinkIo&>(*this),
                                 now());
}

std::string Peer::name() const { return nameOf(context_.options, index_); }

void Peer::record(EventKind kind, telemetry::Event event) const {
  event.kind = kind;
  event.peer = index_;
  context_.options.recorder->record(event);
}

void Peer::recordRail(EventKind kind, int rail) const {
  record(kind, {.at = now(), .epoch = link_->epoch(rail), .rail = static_cast<std::int16_t>(rail)});
}

std::uint32_t Peer::postReceive(const channel::MessageKey& key, std::byte* region, Bytes capacity,
                                std::uint64_t token, bool eager) {
  const std::uint32_t slot = link_->postReceive(key, region, capacity, {}, token, now(), eager);
  const bool placed = slot != transport::kNoSlot && !context_.ioThreads.empty() && !local_;
  if (placed) places_.open(slot, region, capacity);
  return slot;
}

bool Peer::closeSends(const channel::StreamKey& stream) {
  if (closeDue_) closeAll();  // the link has failed, and its rails read still
  return link_->closeSends(stream, now());
}

bool Peer::closeReceives(const channel::StreamKey& stream) {
  if (closeDue_) closeAll();
  return link_->closeReceives(stream, now());
}

// --- what the link asks for ---

void Peer::sendDatagram(int path, std::span<const std::byte> bytes, Bytes frame) {
  const bool overRail = path < railCount();
  auth::Seal seal = controlPaths_[path].seal(context_.authenticator, bytes);
  Padded pieces;
  pieces.add(bytes);
  pieces.add(std::as_bytes(std::span(&seal, 1)));
  if (local_ && ((shared_ && shared_->sendDatagram(pieces.all())) || overRail)) return;
  pieces.padTo(static_cast<std::size_t>(std::min(frame, channel::kLongestFrame)));
  const Endpoint& there = overRail ? address_.rails[path].control : address_.management;
  sockaddr_in to = there.toSockaddr();
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof(to);
  message.msg_iov = pieces.all().data();
  message.msg_iovlen = pieces.all().size();
  const FabricOptions& options = context_.options;
  if (refusals_.watching()) {
    const Nic here = overRail ? options.nics[path] : Nic{"", options.managementAddress};
    return refusals_.send(path, sourceOf(here, options.controlTos), there, message);
  }
  // The shared socket of a rail has no address of its own.
  const transport::tcp::DatagramSource source(message, overRail ? options.nics[path].address : 0);
  // Loss is the link's business: whatever goes wrong here looks like a lost datagram.
  countSystemCall();
  const UniqueFd& socket = overRail ? context_.control[path] : context_.control.back();
  (void)::sendmsg(socket.get(), &message, MSG_DONTWAIT);
}

void Peer::submit(int rail, const ChunkHeader& header, const std::byte* data,
                  const RemoteRegion& region) {
  rails_[rail]->submit(header, data, region);
  if (recording()) {
    record(EventKind::kChunkSent, {.at = now(),
                                   .bytes = header.length,
                                   .number = header.sequence,
                                   .offset = header.offset,
                                   .slot = header.slot,
                                   .rail = static_cast<std::int16_t>(rail)});
  }
}

// No transport that a fabric opens has late writes.
bool Peer::lateWrites(int rail) const { return rails_[rail] && rails_[rail]->lateWrites(); }
bool Peer::detach(int rail, std::uint64_t sequence) { return rails_[rail]->detach(sequence); }
void Peer::divert(int rail) { rails_[rail]->divert(); }
transport::Delivery Peer::delivery(int rail) const { return rails_[rail]->delivery(); }
void Peer::tellRate(int rail, double bytesPerSecond) { rails_[rail]->tellRate(bytesPerSecond); }
void Peer::tellRoom(int rail) { rails_[rail]->tellRoom(); }
bool Peer::portLost(int rail) const { return !local_ && context_.ports[rail].lost(); }
void Peer::fenceRail(int rail) {
  fenceDue_[rail] = true;
  if (recording()) recordRail(EventKind::kRailFence, rail);
}
void Peer::cancelOpen(int rail) { dropOpening(rail); }
void Peer::sendDone(std::uint64_t token) {
  context_.events.push_back(SendDone{index_, token});
  if (recording()) record(EventKind::kMessageSent, {.at = now(), .number = token});
}
void Peer::receiveDone(std::uint64_t token, Bytes length) {
  context_.events.push_back(ReceiveDone{index_, token, length});
  if (recording()) {
    record(EventKind::kMessageArrived, {.at = now(), .bytes = length, .number = token});
  }
}
void Peer::closeSlot(std::uint32_t slot) {
  if (context_.ioThreads.empty() || local_) return;
  places_.close(slot);  // first, so that no rail claims a place in it any more
  for (const auto& rail : rails_) {
    if (rail) rail->releaseSlot(slot);
  }
}
void Peer::railLost(const Failover& failover) {
  context_.events.push_back(RailLost{index_, failover});
}
void Peer::failedOver(const Failover& failover) {
  context_.events.push_back(FailedOver{index_, failover});
  if (recording()) {
    const TimePoint end = failover.redelivered == TimePoint{} ? now() : failover.redelivered;
    record(EventKind::kFailedOver, {.at = failover.detected,
                                    .length = end - failover.detected,
                                    .bytes = failover.resentBytes,
                                    .rail = static_cast<std::int16_t>(failover.rail)});
  }
}
void Peer::causeFound(int rail, Cause cause) {
  context_.events.push_back(CauseFound{index_, rail, cause});
}
void Peer::failedBack(int rail, TimePoint when) {
  context_.events.push_back(FailedBack{index_, rail, when});
}
void Peer::railDegraded(const channel::RailDegradation& change) {
  context_.events.push_back(Degraded{index_, change});
  if (recording()) {
    recordRail(change.degraded ? EventKind::kRailSlow : EventKind::kRailFast, change.rail);
  }
}
void Peer::noteArrived(std::span<const std::byte> note) {
  if (const auto word = Note::wordOf(note)) {
    context_.events.push_back(WordArrived{index_, {word->begin(), word->end()}});
  } else {
    context_.events.push_back(NoteArrived{index_, Note::parse(note)});
  }
}
void Peer::linkFailed(const Status& why) {
  closeDue_ = true;  // before the client hears of it: the buffers are its own again then
  context_.events.push_back(LinkFailed{index_, why});
  if (recording()) record(EventKind::kLinkFailed, {.at = now()});
}

void Peer::readdress(int rail, std::uint32_t address, std::uint32_t change) {
  if (local_ || change <= addressChanges_[rail]) return;
  addressChanges_[rail] = change;
  address_.rails[rail].data.address = address;
  address_.rails[rail].control.address = address;
  refusals_.forget(rail);
}

// --- what the rails tell ---

Result<std::byte*> Peer::place(int rail, const ChunkHeader& header) {
  if (recording()) placedAt_[rail] = now();
  return link_->place(rail, header, now());
}

void Peer::recordChunk(int rail, const ChunkHeader& header, TimePoint began, TimePoint ended) {
  record(EventKind::kChunkArrived, {.at = began,
                                    .length = ended - began,
                                    .bytes = header.length,
                                    .number = header.sequence,
                                    .offset = header.offset,
                                    .slot = header.slot,
                                    .rail = static_cast<std::int16_t>(rail)});
}

void Peer::chunkArrived(int rail, const ChunkHeader& header) {
  const TimePoint time = now();
  if (recording()) recordChunk(rail, header, placedAt_[rail], time);
  link_->onChunkArrived(rail, header, time);
}

void Peer::arrived(int rail, Arrival&& arrival) {
  const ChunkHeader& header = arrival.header;
  const Result<std::byte*> place = link_->place(rail, header, now());
  if (!place.ok()) {
    railFailed(rail, place.status());
    return;
  }
  if (*place != nullptr && !arrival.staged.empty()) {
    // The message may be complete with this chunk: nobody may write its place any more.
    if (arrival.holder != rail) rails_[arrival.holder]->release(header);
    std::ranges::copy(arrival.staged, *place);
  }
  if (recording()) recordChunk(rail, header, arrival.began, arrival.ended);
  link_->onChunkArrived(rail, header, now());
  if (!link_->receives(header.slot)) places_.close(header.slot);
}

Status Peer::watch(ThreadedRail& rail) {
  return context_.poller.add(rail.fd(), EPOLLIN, [&rail](auto) { rail.read(); });
}

void Peer::railFailed(int rail, const Status& why) {
  const bool lie = why.code() == Code::kInvalidArgument;
  link_->onRailFailed(rail, lie ? Cause::kProtocol : Cause::kRail, now());
}

// --- connections ---

void Peer::openRail(int rail, std::uint32_t epoch, std::uint32_t attempt) {
  Result<UniqueFd> socket =
      local_ ? transport::shm::connectLocally(address_.local)
             : transport::tcp::beginConnect(sourceOf(context_.options.nics[rail], 0),
                                            address_.rails[rail].data);
  if (!socket.ok()) {
    openFailures_[rail] = socket.status();
    failedOpens_.push_back(rail);  // told later: no call back from here
    return;
  }
  const Hello hello{.source = static_cast<std::uint32_t>(context_.options.self),
                    .destination = static_cast<std::uint32_t>(index_),
                    .rail = static_cast<std::uint32_t>(rail),
                    .epoch = epoch,
                    .attempt = attempt};
  const int fd = socket->get();
  const Duration patience = context_.options.connectTimeout;
  opening_[rail] = Handshake::connecting(std::move(*socket), hello, now() + patience, patience);
  const Status added =
      context_.poller.add(fd, EPOLLOUT, [this, rail](auto) { advanceOpening(rail); });
  if (!added.ok()) {
    opening_[rail].reset();
    openFailures_[rail] = added;
    failedOpens_.push_back(rail);
  }
}

std::string Peer::whyNotUp(int rail) const {
  if (portLost(rail)) return "this port is down";
  if (const std::string none = noRoute(rail); !none.empty()) return none;
  if (!openFailures_[rail].ok()) return openFailures_[rail].message();
  return context_.options.self < index_ ? "no answer yet" : "it has not connected";
}

/// As `missingRoute`, to where this peer listens on the rail.
std::string Peer::noRoute(int rail) const {
  if (local()) return "";
  const Nic& nic = context_.options.nics[rail];
  return missingRoute(nic.address, address_.rails[rail].data.address, nic.device);
}

std::string Peer::wordsOf(const channel::PathProved& proved) const {
  const FabricOptions& options = context_.options;
  if (proved.path >= railCount()) {
    return fabric::wordsOf({.path = "the management network to " + name(),
                            .device = "",
                            .from = options.managementAddress,
                            .to = address_.management},
                           proved);
  }
  const Nic& nic = options.nics[proved.path];
  return fabric::wordsOf(
      {.path = fmt::format("rail {} ({}) to {}", proved.path, nic.device, name()),
       .device = nic.device,
       .from = nic.address,
       .to = address_.rails[proved.path].control,
       .noRoute = proved.passes ? "" : noRoute(proved.path)},
      proved);
}

void Peer::dropOpening(int rail) {
  if (!opening_[rail]) return;
  context_.poller.remove(opening_[rail]->fd());
  opening_[rail].reset();
}

void Peer::openFailed(int rail) {
  dropOpening(rail);
  link_->onOpenFailed(rail, link_->epoch(rail) + 1, now());
}

void Peer::advanceOpening(int rail) {
  if (!opening_[rail]) return;
  const Result<bool> done = opening_[rail]->advance(context_.authenticator);
  if (!done.ok()) {
    if (done.status().code() == Code::kInvalidArgument) ++answersRefused_;
    openFailures_[rail] = done.status();
    openFailed(rail);
  } else if (*done) {
    openFailures_[rail] = okStatus();
    const std::uint32_t epoch = opening_[rail]->hello().epoch;
    context_.poller.remove(opening_[rail]->fd());
    UniqueFd socket = opening_[rail]->release();
    opening_[rail].reset();
    adopt(rail, std::move(socket), epoch);
  } else {
    context_.poller.setEvents(opening_[rail]->fd(),
                              opening_[rail]->wantsWritable() ? EPOLLOUT : EPOLLIN);
  }
}

bool Peer::expireOpenings(TimePoint time) {
  bool any = false;
  for (const int rail : std::exchange(failedOpens_, {})) {
    openFailed(rail);
    any = true;
  }
  for (int rail = 0; rail < railCount(); ++rail) {
    if (!opening_[rail] || time < opening_[rail]->deadline()) continue;
    any = true;
    // Who was busy meanwhile may have the other end's words here, unread.
    if (!opening_[rail]->wantsWritable()) advanceOpening(rail);
    if (opening_[rail] && time >= opening_[rail]->deadline()) {
      openFailures_[rail] = errorf(Code::kDeadlineExceeded, "no answer within {}",
                                   formatDuration(context_.options.connectTimeout));
      openFailed(rail);
    }
  }
  return any;
}

Status Peer::drive(int rail, UniqueFd socket) {
  if (local_) {
    shared_ = std::make_shared<SharedRail>(
        rail, std::move(socket), static_cast<transport::RailSink&>(*this),
        static_cast<transport::shm::DatagramSink&>(*this), context_.poller);
    rails_[rail] = shared_;
    return shared_->start(/*offers=*/context_.options.self < index_);
  }
  if (context_.ioThreads.empty()) {
    const auto polled = std::make_shared<PolledRail>(
        rail, std::move(socket), static_cast<transport::RailSink&>(*this), context_.poller);
    rails_[rail] = polled;
    return polled->start();
  }
  transport::tcp::IoThread& own = *context_.ioThreads[rail % context_.ioThreads.size()];
  transport::tcp::IoThread& common =
      *context_.commonIoThreads[rail % context_.commonIoThreads.size()];
  const auto threaded = std::make_shared<ThreadedRail>(
      rail, std::move(socket), places_, static_cast<transport::tcp::ArrivalSink&>(*this),
      context_.arrivals, own, common);
  rails_[rail] = threaded;
  own.add(threaded);
  if (&common != &own) common.add(threaded);
  RETURN_IF_ERROR(threaded->start());
  threaded->setMover(mover_);
  return okStatus();
}

void Peer::adopt(int rail, UniqueFd socket, std::uint32_t epoch) {
  const Status driven = drive(rail, std::move(socket));
  link_->onRailOpened(rail, epoch, now());
  if (recording()) recordRail(EventKind::kRailUp, rail);
  if (!driven.ok()) link_->onRailFailed(rail, Cause::kRail, now());
}

// --- rails ---

void Peer::fence(int rail) {
  fenceDue_[rail] = false;
  rails_[rail]->fence();
  link_->onRailFenced(rail, now());
  if (recording()) recordRail(EventKind::kRailClosed, rail);
}

bool Peer::hasWork() const {
  return closeDue_ || refusals_.refused() || !failedOpens_.empty() ||
         std::ranges::count(fenceDue_, true) > 0;
}

bool Peer::fenceDue() {
  if (refusals_.takeRefusal()) link_->onRefused(now());
  bool any = closeDue_;
  if (closeDue_) closeAll();
  for (int rail = 0; rail < railCount(); ++rail) {
    if (!fenceDue_[rail]) continue;
    fence(rail);
    any = true;
  }
  return any;
}

bool Peer::collect() {
  bool any = false;
  for (const auto& rail : rails_) {
    if (rail && rail->collect()) any = true;
  }
  return any;
}

void Peer::arm() {
  for (const auto& rail : rails_) {
    if (rail) rail->arm();
  }
}

void Peer::disarm() {
  for (const auto& rail : rails_) {
    if (rail) rail->disarm();
  }
}

void Peer::setMover(transport::Mover mover) {
  if (std::exchange(mover_, mover) == mover) return;
  for (const auto& rail : rails_) {
    if (rail) rail->setMover(mover);
  }
}

void Peer::transmit() {
  for (const auto& rail : rails_) {
    if (rail) rail->transmit();
  }
}

void Peer::shutDown() {
  link_->shutDown();
  closeAll();
}

void Peer::closeAll() {
  closeDue_ = false;
  for (int rail = 0; rail < railCount(); ++rail) {
    dropOpening(rail);
    if (rails_[rail] && !rails_[rail]->fenced()) fence(rail);
  }
}

}  // namespace faultline::fabric
