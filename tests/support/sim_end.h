#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "tests/support/sim_pattern.h"
#include "tests/support/sim_rail.h"
#include "tests/support/sim_world.h"

namespace faultline::test {

inline constexpr std::byte kPoison{0xa5};        // what the user writes into memory it has got back
inline constexpr std::byte kSourcePoison{0x5a};  // another, or a late copy of it would not be seen

struct SimWorld::Message {
  int from = 0;
  int stream = 0;
  std::vector<std::byte> source, target;
  bool sends = true, receives = true;  // posted there
  bool askedFor = false;               // the receive is posted by now
  bool sent = false, received = false;
  bool sendFailed = false, receiveFailed = false;
  channel::MessageKey key{};
  enum class Eager { kNone, kPosted, kArrived, kOver };
  Eager eager = Eager::kNone;  // what is posted, or was, before the receive
  std::vector<std::byte> eagerTarget;
  std::uint32_t eagerSlot = 0;

  bool tooLong() const { return source.size() > target.size(); }
  bool sendOver() const { return sent || sendFailed; }
  bool receiveOver() const { return received || receiveFailed; }
  bool over() const { return (!sends || sendOver()) && (!receives || receiveOver()); }
};

/// One process: its link, its ends of the rails, and what waits while it is paused.
struct SimWorld::End : channel::LinkIo, transport::RailSink {
  /// Of the token of an eager receive.
  static constexpr std::uint64_t kEager = std::uint64_t{1} << 63;

  End(SimWorld& inWorld, int inIndex) : world(inWorld), index(inIndex) {}

  End& peer() { return *world.ends_[1 - index]; }

  // LinkIo
  void sendDatagram(int path, std::span<const std::byte> datagram, Bytes frame) override {
    world.send(index, path, {datagram.begin(), datagram.end()}, frame);
  }
  void submit(int rail, const transport::ChunkHeader& header, const std::byte* data,
              const transport::RemoteRegion& region) override {
    largestWindow[rail] = std::max(largestWindow[rail], link->windowBytes(rail));
    sent[{rail, link->epoch(rail)}].push_back(header);
    rails[rail]->submit(header, data, region);
  }
  bool lateWrites(int rail) const override { return world.lateWrites(rail); }
  bool detach(int rail, std::uint64_t sequence) override { return rails[rail]->detach(sequence); }
  void divert(int rail) override { rails[rail]->divert(); }
  transport::Delivery delivery(int rail) const override { return rails[rail]->delivery(); }
  void tellRate(int rail, double bytesPerSecond) override { ratesTold[rail] = bytesPerSecond; }
  void tellRoom(int rail) override { ++world.roomTold_[{index, rail}]; }
  bool portLost(int rail) const override { return world.options_.portsSeen && !portUp[rail]; }
  void fenceRail(int rail) override { rails[rail]->fence(); }
  void openRail(int rail, std::uint32_t epoch, std::uint32_t attempt) override {
    world.open(index, rail, epoch, attempt);
  }
  void cancelOpen(int rail) override { opening[rail] = 0; }
  void sendDone(std::uint64_t token) override {
    Message& message = *world.messages_[token];
    if (message.sendOver()) world.problems_.push_back("send completed twice");
    message.sent = true;
    // What comes for a receive that is being withdrawn has arrived, too.
    const bool withdrawn = world.closed_.contains({1 - index, Side::kReceives, message.stream});
    const bool mayBeDone = message.askedFor || message.eager == Message::Eager::kPosted ||
                           message.eager == Message::Eager::kArrived;
    if (!message.receiveOver() && !withdrawn && !(small(message) && mayBeDone)) {
      world.problems_.push_back("a send is done before its receive");
    }
    // The user gets the buffer back and writes something else into it.
    overwrite(message.source, kSourcePoison);
  }
  /// The receive is posted: what an eager one has got, or will get, is its.
  void ask(std::uint64_t token) {
    Message& message = *world.messages_[token];
    message.askedFor = true;
    if (message.eager == Message::Eager::kPosted) {
      return link->expect(message.eagerSlot, world.clock_.now());
    }
    if (message.eager == Message::Eager::kArrived) return takeEager(token);
    // Who has closed a stream posts nothing in it.
    const bool closed = world.closed_.contains({index, Side::kReceives, message.stream});
    if (message.eager != Message::Eager::kNone && closed) {
      return receiveFailed(token, Status(Code::kAborted, "closed"));
    }
    const RemoteRegion region{reinterpret_cast<std::uint64_t>(message.target.data()), token};
    link->postReceive(message.key, message.target.data(), static_cast<Bytes>(message.target.size()),
                      region, token, world.clock_.now());
  }
  void postEager(std::uint64_t token) {
    Message& message = *world.messages_[token];
    message.eager = Message::Eager::kPosted;
    message.eagerTarget.assign(static_cast<std::size_t>(link->options().smallMessage), kPoison);
    const RemoteRegion region{reinterpret_cast<std::uint64_t>(message.eagerTarget.data()), token};
    message.eagerSlot = link->postReceive(message.key, message.eagerTarget.data(),
                                          static_cast<Bytes>(message.eagerTarget.size()), region,
                                          token | kEager, world.clock_.now(), /*eager=*/true);
  }
  void takeEager(std::uint64_t token) {
    Message& message = *world.messages_[token];
    const auto length = static_cast<Bytes>(message.source.size());
    if (message.tooLong()) {
      receiveFailed(token, Status(Code::kInvalidArgument, "too long"));
    } else {
      std::copy_n(message.eagerTarget.begin(), length, message.target.begin());
      receiveDone(token, length);
    }
    overwrite(message.eagerTarget, kPoison);
  }
  void eagerDone(std::uint64_t token, Bytes length) {
    Message& message = *world.messages_[token];
    if (message.eager != Message::Eager::kPosted) {
      world.problems_.push_back("an eager receive completed twice");
    }
    if (length != static_cast<Bytes>(message.source.size())) {
      world.problems_.push_back("an eager receive has a wrong length");
    }
    message.eager = Message::Eager::kArrived;
    if (message.askedFor) takeEager(token);
  }
  void eagerFailed(std::uint64_t token, const Status& why) {
    Message& message = *world.messages_[token];
    if (message.eager != Message::Eager::kPosted) {
      world.problems_.push_back("an eager receive completed twice");
    }
    const bool refused = why.code() == Code::kInvalidArgument;
    if (refused && small(message)) world.problems_.push_back("what fits was refused");
    message.eager = Message::Eager::kOver;
    overwrite(message.eagerTarget, kPoison);
    if (!message.askedFor) return;
    if (refused) return ask(token);
    receiveFailed(token, why);
  }
  void receiveDone(std::uint64_t token, Bytes length) override {
    if ((token & kEager) != 0) return eagerDone(token & ~kEager, length);
    Message& message = *world.messages_[token];
    if (message.receiveOver()) world.problems_.push_back("receive completed twice");
    message.received = true;
    if (length != static_cast<Bytes>(message.source.size()) || message.tooLong())
      world.problems_.push_back("wrong length");
    const std::size_t arrived = std::min(static_cast<std::size_t>(length), message.target.size());
    if (const auto wrong = firstWrongByte(std::span(message.target).first(arrived), token)) {
      world.problems_.push_back(fmt::format("message {} is wrong at byte {}", token, *wrong));
    }
    // The user reads it, and uses the memory for something else.
    overwrite(message.target, kPoison);
    ++world.completed_;
  }
  void sendFailed(std::uint64_t token, const Status& why) override {
    Message& message = *world.messages_[token];
    if (message.sendOver()) world.problems_.push_back("send completed twice");
    message.sendFailed = true;
    const bool withdrawn = world.closed_.contains({index, Side::kSends, message.stream});
    if (message.received && !withdrawn) {
      world.problems_.push_back("a send has failed, and its receive has not");
    }
    judgeFailure(message, why);
    overwrite(message.source, kSourcePoison);
  }
  void receiveFailed(std::uint64_t token, const Status& why) override {
    if ((token & kEager) != 0) return eagerFailed(token & ~kEager, why);
    Message& message = *world.messages_[token];
    if (message.receiveOver()) world.problems_.push_back("receive completed twice");
    message.receiveFailed = true;
    const bool withdrawn = world.closed_.contains({index, Side::kReceives, message.stream});
    if (message.sent && !withdrawn && !message.tooLong()) {
      world.problems_.push_back("a send is done, and its receive fails");
    }
    judgeFailure(message, why);
    overwrite(message.target, kPoison);
  }
  bool small(const Message& message) const {
    const Bytes most = link->options().smallMessage;
    return most > 0 && static_cast<Bytes>(message.source.size()) <= most;
  }
  void judgeFailure(const Message& message, const Status& why) {
    const bool closed = world.closed_.contains({message.from, Side::kSends, message.stream}) ||
                        world.closed_.contains({1 - message.from, Side::kReceives, message.stream});
    if (why.code() == Code::kInvalidArgument ? message.tooLong() : closed) return;
    world.problems_.push_back("a message fails for no reason: " + why.message());
  }
  void closeSlot(std::uint32_t) override {}
  void railLost(const channel::Failover& failover) override { losses.push_back(failover); }
  void failedOver(const channel::Failover& failover) override {
    if (losses.empty()) world.problems_.push_back("a failover ends that has not begun");
    failovers.push_back(failover);
    const Bytes window = windowAtFailure[{failover.rail, failover.detected}];
    // A window is full when the last chunk has passed its end.
    if (failover.resentBytes > window + link->options().chunkBytes) {
      world.problems_.push_back(fmt::format("{} bytes sent again of a rail whose window was {}",
                                            failover.resentBytes, window));
    }
  }
  void railDegraded(const channel::RailDegradation& change) override {
    if (change.degraded) {
      degradedRails.insert(change.rail);
    } else {
      degradedRails.erase(change.rail);
    }
    if (world.onDegraded) world.onDegraded(index, change);
  }
  void framesLost(int rail, Bytes frame) override { lostFrames.emplace_back(rail, frame); }
  void pathProved(const channel::PathProved& change) override { proved.push_back(change); }
  void causeFound(int rail, channel::Cause cause) override {
    // An older one whose chunks it has inherited is reported after it.
    auto latest = failovers.end();
    for (auto it = failovers.begin(); it != failovers.end(); ++it) {
      if (it->rail != rail) continue;
      if (latest == failovers.end() || it->detected > latest->detected) latest = it;
    }
    if (latest == failovers.end() || latest->cause != channel::Cause::kPath) {
      world.problems_.push_back("another cause of a failover that has not been reported, or known");
      return;
    }
    latest->cause = cause;
    latest->where = channel::whereOf(cause);
    latest->deadDirection = channel::DeadDirection::kUnknown;
    latest->told = cause == channel::Cause::kRemoteNic;
    ++explained;
  }
  void failedBack(int, TimePoint) override { ++failbackCount; }
  void noteArrived(std::span<const std::byte> note) override {
    notes.emplace_back(note.begin(), note.end());
  }
  void peerMissing() override { ++missed; }
  void watchRefusals(bool on) override { watchesRefusals = on; }
  void linkFailed(const Status& why) override { error = why; }

  // RailSink
  Result<std::byte*> place(int rail, const transport::ChunkHeader& header) override {
    return link->place(rail, header, world.clock_.now());
  }
  void chunkArrived(int rail, const transport::ChunkHeader& header) override {
    arrivedBytes[rail] += header.length;
    const std::uint32_t epoch = link->epoch(rail);
    world.runEvent(
        index, Input::kChunk,
        [this, rail, header, epoch] {
          if (link->epoch(rail) != epoch) return;
          const channel::LinkCounters before = link->counters();
          link->onChunkArrived(rail, header, world.clock_.now());
          const channel::LinkCounters& after = link->counters();
          if (after.chunksArrived + after.chunksDuplicate >
              before.chunksArrived + before.chunksDuplicate) {
            arrivals[{header.slot, header.offset}].insert({rail, epoch});
          }
          Bytes& twice = duplicates[header.slot];
          twice += after.bytesDuplicate - before.bytesDuplicate;
          if (twice > link->options().tailBudget && world.closed_.empty()) {
            world.problems_.push_back(fmt::format("{} bytes of one message arrived twice", twice));
          }
        },
        world.socketOf(rail));
  }
  void railFailed(int rail, const Status& why) override {
    const bool lie = why.code() == Code::kInvalidArgument;
    const auto cause = lie ? channel::Cause::kProtocol : channel::Cause::kRail;
    world.runEvent(index, lie ? Input::kChunk : Input::kReset,
                   [this, rail, cause] { link->onRailFailed(rail, cause, world.clock_.now()); });
  }

  void noteReceipts(const channel::Datagram& datagram) {
    for (int rail = 0; rail < static_cast<int>(datagram.rails.size()); ++rail) {
      const channel::RailReceipt& receipt = datagram.rails[rail];
      if (!link->railUp(rail) || !receipt.isOf(link->epoch(rail))) continue;
      channel::Receipt& known = acknowledged[{rail, link->epoch(rail)}];
      const channel::Receipt told = receipt.after(known);
      if (told.covers(known)) known = told;
    }
  }

  SimWorld& world;
  int index;
  std::unique_ptr<channel::Link> link;
  std::vector<Wire> wires;  // from this end
  std::vector<std::unique_ptr<SimRail>> rails;
  std::vector<std::unique_ptr<SimRail>> oldRails;  // late writes still refer to them
  std::vector<Bytes> arrivedBytes;
  std::vector<std::int64_t> datagramsSent;
  std::vector<std::uint32_t> opening;
  std::vector<bool> portUp, portWasDown, portDownTold;
  std::vector<std::pair<channel::Link::Phase, std::uint32_t>> seen;  // of each rail, with its epoch
  std::map<int, double> ratesTold;   // by rail, of its latest epoch or an earlier one
  std::vector<Bytes> largestWindow;  // of this epoch
  std::map<std::pair<int, TimePoint>, Bytes> windowAtFailure;
  std::map<std::uint32_t, Bytes> duplicates;         // by slot
  using Connection = std::pair<int, std::uint32_t>;  // rail and epoch
  std::map<Connection, std::vector<transport::ChunkHeader>> sent;
  std::map<Connection, channel::Receipt> acknowledged;  // of what was sent
  struct Open {
    Connection connection;
    std::vector<transport::ChunkHeader> chunks;
  };
  std::map<std::pair<int, TimePoint>, Open> openAtFailure;
  // By slot and offset: the connections over which the chunk has come to this end.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<Connection>> arrivals;
  TimePoint pausedUntil{};
  bool dead = false;
  bool refuses = false;  // what is sent to it
  bool watchesRefusals = false;
  std::vector<Event> waiting;
  TimePoint tickAt = TimePoint::max();
  std::vector<channel::Failover> losses;  // as they begin
  std::vector<channel::Failover> failovers;
  int failbackCount = 0;
  std::vector<channel::PathProved> proved;
  std::vector<std::pair<int, Bytes>> lostFrames;  // rail and length
  int missed = 0;                                 // times that the peer was called missing
  int explained = 0;                              // failovers whose cause was found out afterwards
  std::set<int> degradedRails;
  std::vector<std::vector<std::byte>> notes;
  Status error;
};

}  // namespace faultline::test
