#include "tests/support/sim_world.h"

#include <algorithm>
#include <cstring>

#include "tests/support/memory_rail.h"
#include "tests/support/sim_end.h"
#include "tests/support/stream_rail.h"

namespace faultline::test {

using channel::ChunkHeader;
using channel::Failover;
using channel::Link;
using channel::RemoteRegion;

SimWorld::SimWorld(const SimOptions& options)
    : options_(options), random_(options.seed), health_(options.link.rails) {
  for (int end = 0; end < kEnds; ++end) {
    ends_[end] = std::make_unique<End>(*this, end);
    End& self = *ends_[end];
    self.wires.resize(options.link.rails);
    self.arrivedBytes.resize(options.link.rails);
    self.datagramsSent.resize(options.link.rails + 1);
    for (auto& wire : self.wires) {
      wire.latency = options.wireLatency;
      wire.fenceTime = options.fenceTime;
      wire.frame = options.frame;
      wire.lateDelivery = options.lateDelivery;
      wire.backsOff = options.backsOff;
    }
    self.rails.resize(options.link.rails);
    self.opening.resize(options.link.rails);
    self.portUp.assign(options.link.rails, true);
    self.portWasDown.assign(options.link.rails, false);
    self.portDownTold.assign(options.link.rails, false);
    self.seen.resize(options.link.rails);
    self.largestWindow.resize(options.link.rails);
  }
  for (const DeadRail& dead : options.deadRails) breakBeforehand(dead);
  for (int end = 0; end < kEnds; ++end) {
    Link::Identity identity{.self = static_cast<std::uint32_t>(end),
                            .peer = static_cast<std::uint32_t>(1 - end),
                            .name = fmt::format("rank {}", 1 - end),
                            .connects = end == 0};
    ends_[end]->link =
        std::make_unique<Link>(std::move(identity), options.link, *ends_[end], clock_.now());
    settle(end);
  }
  awaitRails();
}

void SimWorld::breakBeforehand(const DeadRail& dead) {
  if (!dead.port) return blackHole(dead.rail, dead.fromEnd0, dead.fromEnd1);
  ends_[dead.end]->portUp[dead.rail] = false;
  ends_[dead.end]->portWasDown[dead.rail] = true;
  blackHole(dead.rail);
}

/// As the engine: what is missing is waited for, and then begun without.
void SimWorld::awaitRails() {
  if (!options_.deadRails.empty()) {
    for (int end = 0; end < kEnds; ++end) {
      for (int rail = 0; rail < options_.link.rails; ++rail) {
        if (!ends_[end]->portUp[rail]) tellOfPort(end, rail);
      }
    }
  }
  while (!allRailsUp()) clock_.step(TimePoint::max());
  if (options_.deadRails.empty()) {
    started_.fill(true);
    return;
  }
  run(options_.grace);
  for (int end = 0; end < kEnds; ++end) {
    const auto start = [this, end] {
      runEvent(end, Input::kStart, [this, end] {
        started_[end] = true;
        link(end).start(clock_.now());
      });
    };
    if (end == options_.lateEnd) {
      clock_.after(options_.lateStart, start);
    } else {
      start();
    }
  }
}

bool SimWorld::allRailsUp() const {
  for (const auto& end : ends_) {
    for (int rail = 0; rail < options_.link.rails; ++rail) {
      if (!end->link->railUp(rail) && carries(rail)) return false;
    }
  }
  return true;
}

SimWorld::~SimWorld() = default;

Link& SimWorld::link(int end) { return *ends_[end]->link; }
const std::vector<Failover>& SimWorld::failovers(int end) const { return ends_[end]->failovers; }
const std::vector<Failover>& SimWorld::losses(int end) const { return ends_[end]->losses; }
const std::set<int>& SimWorld::degradedRails(int end) const { return ends_[end]->degradedRails; }
int SimWorld::explained(int end) const { return ends_[end]->explained; }
int SimWorld::missed(int end) const { return ends_[end]->missed; }
int SimWorld::failbacks(int end) const { return ends_[end]->failbackCount; }
double SimWorld::rateTold(int end, int rail) const {
  const auto told = ends_[end]->ratesTold.find(rail);
  return told == ends_[end]->ratesTold.end() ? 0 : told->second;
}

Bytes SimWorld::arrivedBytes(int end, int rail) const { return ends_[end]->arrivedBytes[rail]; }

const std::vector<std::pair<int, Bytes>>& SimWorld::lostFrames(int end) const {
  return ends_[end]->lostFrames;
}

const std::vector<channel::PathProved>& SimWorld::proved(int end) const {
  return ends_[end]->proved;
}

std::int64_t SimWorld::datagramsSent(int end, int path) const {
  return ends_[end]->datagramsSent[path];
}
const std::vector<std::vector<std::byte>>& SimWorld::notes(int end) const {
  return ends_[end]->notes;
}
const Status& SimWorld::error(int end) const { return ends_[end]->error; }

void SimWorld::runEvent(int end, Input input, std::function<void()> event, int socket) {
  End& self = *ends_[end];
  if (self.dead) return;
  if (clock_.now() < self.pausedUntil) {
    self.waiting.push_back({input, socket, std::move(event)});
    return;
  }
  event();
  observe(end, input);
  settle(end);
}

void SimWorld::observe(int end, Input input) {
  End& self = *ends_[end];
  for (int rail = 0; rail < options_.link.rails; ++rail) {
    const std::pair now(self.link->phase(rail), self.link->epoch(rail));
    const auto before = std::exchange(self.seen[rail], now);
    if (now == before) continue;
    // Whatever else happens in the same tick.
    const bool stalled = input != Input::kStall || now.first == Link::Phase::kFencing;
    const RailChange change{clock_.now(),
                            end,
                            rail,
                            before.first,
                            now.first,
                            now.second,
                            stalled ? input : Input::kTick};
    if (change.from == Link::Phase::kUp) {
      self.windowAtFailure[{rail, change.when}] = std::exchange(self.largestWindow[rail], 0);
      const End::Connection connection(rail, change.epoch);
      auto& open = self.openAtFailure[{rail, change.when}];
      open = {connection, std::move(self.sent[connection])};
      const channel::Receipt& done = self.acknowledged[connection];
      std::erase_if(open.chunks, [&](const auto& header) { return done.has(header.sequence); });
    }
    if (options_.trace) {
      trace_.add(clock_.now(), fmt::format("end {}: rail {} {} -> {} by {}, epoch {}", end, rail,
                                           phaseName(change.from), phaseName(change.to),
                                           inputName(change.input), change.epoch));
    }
    if (onRailChange) onRailChange(change);
  }
}

void SimWorld::settle(int end) {
  End& self = *ends_[end];
  if (self.dead) return;
  const auto stalls = self.link->counters().stalls;
  self.link->onTick(clock_.now());
  observe(end, self.link->counters().stalls > stalls ? Input::kStall : Input::kTick);
  self.link->flush(clock_.now());
  const TimePoint next = std::max(self.link->nextDeadline(), clock_.now() + 100us);
  // As the engine: at the next deadline, at the latest after 50 ms.
  const TimePoint when = std::min(next, clock_.now() + 50ms);
  if (self.tickAt > clock_.now() && self.tickAt <= when) return;
  self.tickAt = when;
  clock_.after(when - clock_.now(), [this, end, when] {
    if (ends_[end]->tickAt == when) ends_[end]->tickAt = TimePoint::max();
    runEvent(end, Input::kTick, [] {});
  });
}

namespace {

channel::StreamKey streamKey(int from, int stream) {
  return {.communicator = 1, .stream = static_cast<std::uint64_t>(2 * stream + from)};
}

}  // namespace

void SimWorld::message(int from, Bytes length, const Posting& posting) {
  const std::uint64_t token = messages_.size();
  Message& message = *messages_.emplace_back(std::make_unique<Message>());
  message.from = from;
  message.stream = posting.stream;
  message.source.resize(length);
  message.target.assign(posting.room < 0 ? length : posting.room, kPoison);
  message.sends = posting.sent;
  message.receives = posting.received;
  fillWithPattern(message.source, token);
  const auto [communicator, stream] = streamKey(from, posting.stream);
  const channel::MessageKey key{.communicator = communicator,
                                .sequence = static_cast<std::uint32_t>(token),
                                .stream = stream};
  const int firstChoice = options_.firstChoices && token % 2 == 0
                              ? static_cast<int>(token / 2 % options_.link.rails)
                              : posting.firstChoice;
  message.key = key;
  const auto send = [this, from, key, token, firstChoice, &message] {
    link(from).postSend(key, message.source.data(), static_cast<Bytes>(message.source.size()),
                        token, clock_.now(), firstChoice);
  };
  const auto receive = [this, from, token] { ends_[1 - from]->ask(token); };
  const auto eager = [this, from, token] { ends_[1 - from]->postEager(token); };
  const auto post = [this](int end, Duration delay, const std::function<void()>& event) {
    clock_.after(delay, [this, end, event] { runEvent(end, Input::kClient, event); });
  };
  if (posting.sent) post(from, posting.sendDelay, send);
  const bool before = options_.eager && options_.link.smallMessage > 0;
  if (posting.received && before) post(1 - from, posting.receiveDelay / 2, eager);
  if (posting.received) post(1 - from, posting.receiveDelay, receive);
}

void SimWorld::close(int end, Side side, int stream) {
  runEvent(end, Input::kClient, [this, end, side, stream] {
    closed_.insert({end, side, stream});
    const bool sends = side == Side::kSends;
    Link& closing = link(end);
    const bool done = sends ? closing.closeSends(streamKey(end, stream), clock_.now())
                            : closing.closeReceives(streamKey(1 - end, stream), clock_.now());
    bool late = false;
    for (int rail = 0; rail < options_.link.rails; ++rail) late = late || lateWrites(rail);
    if (!late && !done) problems_.push_back("memory of a closed stream is kept");
  });
}

int SimWorld::failedSends() const {
  return static_cast<int>(std::ranges::count_if(messages_, [](auto& m) { return m->sendFailed; }));
}

int SimWorld::doneSends() const {
  return static_cast<int>(std::ranges::count_if(messages_, [](auto& m) { return m->sent; }));
}

int SimWorld::failedReceives() const {
  return static_cast<int>(
      std::ranges::count_if(messages_, [](auto& m) { return m->receiveFailed; }));
}

bool SimWorld::carries(int rail) const {
  return ends_[0]->wires[rail].carries && ends_[1]->wires[rail].carries && ends_[0]->portUp[rail] &&
         ends_[1]->portUp[rail];
}

std::unique_ptr<SimRail> SimWorld::makeRail(int end, int rail) {
  const Schedule schedule = [this](Duration delay, std::function<void()> action) {
    clock_.after(delay, std::move(action));
  };
  End& self = *ends_[end];
  if (lateWrites(rail)) return std::make_unique<MemoryRail>(rail, self.wires[rail], self, schedule);
  return std::make_unique<StreamRail>(rail, self.wires[rail], self, schedule);
}

void SimWorld::open(int end, int rail, std::uint32_t epoch, std::uint32_t attempt) {
  ends_[end]->opening[rail] = attempt;
  clock_.after(options_.openTime, [this, end, rail, epoch, attempt] {
    const bool accepted = carries(rail) && !ends_[1 - end]->dead &&
                          clock_.now() >= ends_[1 - end]->pausedUntil &&
                          link(1 - end).onHello(rail, epoch, attempt, clock_.now());
    observe(1 - end, Input::kHello);
    if (accepted) {
      for (int side = 0; side < kEnds; ++side) {
        End& self = *ends_[side];
        if (self.rails[rail]) self.oldRails.push_back(std::move(self.rails[rail]));
        self.rails[rail] = makeRail(side, rail);
        SimRail* const made = self.rails[rail].get();
        made->onRead = [this](std::span<const std::byte> piece) {
          // Long enough not to be the message's own bytes.
          if (piece.size() < 16 || !consistsOf(piece.first(16), kSourcePoison)) return;
          problems_.push_back("a rail reads memory that the sender has given back");
        };
        made->onSentAgain = [this, rail] {
          Duration& longest = health_[rail].longestBackOff;
          longest = std::max(longest, clock_.now() - lastBroken(rail));
        };
        made->onReadable = [this, side, rail, made] {
          runEvent(
              side, Input::kChunk, [made] { made->read(); }, socketOf(rail));
        };
        made->onFenceDue = [this, side, rail, made] {
          runEvent(side, Input::kFenced, [this, side, rail, made] {
            made->close();
            link(side).onRailFenced(rail, clock_.now());
          });
        };
      }
      for (int side = 0; side < kEnds; ++side) {
        ends_[side]->rails[rail]->connect(ends_[1 - side]->rails[rail].get());
      }
      ends_[1 - end]->rails[rail]->begin();
      runEvent(1 - end, Input::kOpened,
               [this, end, rail, epoch] { link(1 - end).onRailOpened(rail, epoch, clock_.now()); });
    }
    // The answer needs time, too: meanwhile the rail may die or the attempt be cancelled.
    clock_.after(options_.openTime, [this, end, rail, epoch, attempt, accepted] {
      const bool works = accepted && carries(rail);
      const Input input = works ? Input::kOpened : Input::kOpenFailed;
      runEvent(end, input, [this, end, rail, epoch, attempt, accepted, works, input] {
        if (ends_[end]->opening[rail] != attempt) {
          if (accepted) abandon(end, rail);  // the acceptor sees the connection closed
          return;
        }
        ends_[end]->opening[rail] = 0;
        if (works) {
          link(end).onRailOpened(rail, epoch, clock_.now());
          observe(end, input);
          ends_[end]->rails[rail]->begin();
        } else {
          link(end).onOpenFailed(rail, epoch, clock_.now());
          if (accepted) abandon(end, rail);
        }
      });
    });
  });
}

void SimWorld::abandon(int end, int rail) {
  ends_[end]->rails[rail]->abandon();
  if (!carries(rail)) return;  // the reset is lost
  runEvent(1 - end, Input::kReset, [this, end, rail] {
    link(1 - end).onRailFailed(rail, channel::Cause::kRail, clock_.now());
  });
}

void SimWorld::send(int from, int path, const std::vector<std::byte>& datagram, Bytes frame) {
  ++ends_[from]->datagramsSent[path];
  if (options_.silentPaths.contains({from, path})) return;
  if (path < options_.link.rails) {
    Health& health = health_[path];
    if (!ends_[from]->portUp[path] || !ends_[from]->wires[path].carries ||
        !ends_[1 - from]->portUp[path]) {
      health.mostLost = std::max(health.mostLost, ++health.lost[from]);
      return;
    }
    health.lost[from] = 0;
    if (frame > ends_[from]->wires[path].longestFrame) return;
  } else if (!managementPathUp()) {
    return;
  }
  if (ends_[1 - from]->refuses) {
    clock_.after(50us, [this, from] {
      if (!ends_[from]->watchesRefusals) return;
      runEvent(from, Input::kDatagram, [this, from] { link(from).onRefused(clock_.now()); });
    });
    return;
  }
  if (random_.unit() < options_.datagramLoss) return;
  const int copies = random_.unit() < options_.datagramDuplication ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    Duration delay = 50us + Duration(random_.below(options_.datagramJitter.count() + 1));
    if (random_.unit() < options_.datagramsHeld) delay += options_.heldFor;
    clock_.after(delay, [this, from, path, datagram] {
      runEvent(
          1 - from, Input::kDatagram,
          [this, from, path, datagram] {
            channel::Datagram parsed;
            const Status status = channel::parseDatagram(datagram, parsed);
            if (!status.ok()) {
              problems_.push_back(status.message());
              return;
            }
            if (options_.trace) trace_.addDatagram(clock_.now(), 1 - from, path, parsed);
            ends_[1 - from]->noteReceipts(parsed);
            link(1 - from).onDatagram(path, parsed, clock_.now());
          },
          /*socket=*/path);
    });
  }
}

bool SimWorld::carriesFrom(int end, int rail) const { return ends_[end]->wires[rail].carries; }

Bytes SimWorld::arrivedTwice(int end, const Failover& failover) const {
  const auto open = ends_[end]->openAtFailure.find({failover.rail, failover.detected});
  if (open == ends_[end]->openAtFailure.end()) return 0;
  Bytes twice = 0;
  const auto& [connection, chunks] = open->second;
  for (const ChunkHeader& header : chunks) {
    const auto arrived = ends_[1 - end]->arrivals.find({header.slot, header.offset});
    if (arrived == ends_[1 - end]->arrivals.end() || arrived->second.size() < 2) continue;
    if (arrived->second.contains(connection)) twice += header.length;
  }
  return twice;
}

void SimWorld::managementPath(bool up) {
  if (up == managementPathUp()) return;
  managementUpSince_ = up ? clock_.now() : TimePoint::max();
}

TimePoint SimWorld::stoppedUntil(int end) const {
  return ends_[end]->dead ? TimePoint::max() : ends_[end]->pausedUntil;
}

bool SimWorld::portWasDown(int end, int rail) const { return ends_[end]->portWasDown[rail]; }

bool SimWorld::portDownTold(int end, int rail) const { return ends_[end]->portDownTold[rail]; }

void SimWorld::note(int from, std::span<const std::byte> note) {
  runEvent(from, Input::kClient,
           [this, from, kept = std::vector<std::byte>(note.begin(), note.end())] {
             link(from).sendNote(kept);
           });
}

bool SimWorld::runUntilIdle(Duration limit) {
  const TimePoint until = clock_.now() + limit;
  const auto idle = [&] {
    return std::ranges::all_of(messages_, [this](const auto& m) {
      // What only one end has posted waits until its stream is closed.
      const bool closed = closed_.contains({m->from, Side::kSends, m->stream}) ||
                          closed_.contains({1 - m->from, Side::kReceives, m->stream});
      return m->over() || (!closed && !(m->sends && m->receives));
    });
  };
  while (!idle()) {
    if (!ends_[0]->error.ok() || !ends_[1]->error.ok() || !clock_.step(until)) return false;
  }
  return true;
}

void SimWorld::run(Duration time) {
  const TimePoint until = clock_.now() + time;
  while (clock_.step(until)) {
  }
}

void SimWorld::checkMemory() {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!messages_[i]->receiveOver()) continue;
    if (!consistsOf(messages_[i]->target, kPoison) ||
        !consistsOf(messages_[i]->eagerTarget, kPoison)) {
      problems_.push_back(
          fmt::format("message {}: memory was written after it had been given back", i));
    }
  }
}

}  // namespace faultline::test
