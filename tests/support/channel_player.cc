#include "tests/support/channel_player.h"

#include <algorithm>
#include <array>

#include "tests/support/channel_referee.h"

namespace faultline::test {

using channel::Link;
using Kind = Action::Kind;

namespace {

/// One run of a script.
class Player {
 public:
  explicit Player(const Script& script)
      : script_(script), world_(script.worldOptions()), referee_(world_, script) {
    world_.onRailChange = [this](const RailChange& change) {
      referee_.changed(change);
      fire(change);
    };
    world_.onDegraded = [this](int end, const channel::RailDegradation& change) {
      referee_.degraded(end, change);
    };
  }

  Outcome run() {
    for (const Action& action : script_.actions) {
      last_ = std::max(last_, action.at);
      if (action.kind == Kind::kMessages) last_ = std::max(last_, action.length);
      if (action.kind == Kind::kPause) last_ += action.length;
      schedule(action);
    }
    if (script_.closesStreams()) world_.run(last_);
    if (script_.fatal()) {
      awaitTheEnd();
    } else if (awaitTheMessages()) {
      awaitTheRails();
    }
    world_.run(100ms);  // late writes have landed by then
    world_.checkMemory();
    referee_.coverage().failedSends = world_.failedSends();
    referee_.coverage().failedReceives = world_.failedReceives();
    referee_.judgeFailovers();
    referee_.judgeShortOutage();
    Outcome outcome{.problems = world_.problems(),
                    .coverage = std::move(referee_.coverage()),
                    .trace = world_.trace()};
    outcome.problems.insert(outcome.problems.end(), problems_.begin(), problems_.end());
    outcome.problems.insert(outcome.problems.end(), referee_.problems().begin(),
                            referee_.problems().end());
    return outcome;
  }

 private:
  void schedule(const Action& action) {
    if (action.beforehand) {
      keepBroken(action);
    } else if (action.kind == Kind::kMessages) {
      for (int i = 0; i < action.count; ++i) {
        world_.message(action.end, action.bytes,
                       {.sendDelay = action.at,
                        .receiveDelay = action.length,
                        .stream = action.stream,
                        .room = action.room,
                        .sent = action.sent,
                        .received = action.received});
      }
    } else if (action.phase) {
      waiting_.push_back(&action);
    } else {
      world_.clock().after(action.at, [this, &action] { act(action); });
    }
  }

  void fire(const RailChange& change) {
    const auto due = std::ranges::find_if(waiting_, [&](const Action* action) {
      return change.rail == action->rail && change.to == *action->phase &&
             change.when >= begin_ + action->at;
    });
    if (due == waiting_.end()) return;
    world_.clock().after((*due)->after, [this, action = *due] { act(*action); });
    waiting_.erase(due);  // the others wait for the next time
  }

  void act(const Action& action) {
    if (over_) return;
    if (script_.options.trace) world_.addTrace("*** " + action.toString());
    switch (action.kind) {
      case Kind::kMessages:
        return;  // posted from the beginning
      case Kind::kNote:
        notes_[action.end].push_back(static_cast<std::byte>(notes_[action.end].size()));
        return world_.note(action.end, std::span(notes_[action.end]).last(1));
      case Kind::kPortDown:
        world_.portDown(action.end, action.rail);
        break;
      case Kind::kBlackHole:
        world_.blackHole(action.rail, action.fromEnd0, action.fromEnd1);
        break;
      case Kind::kReset:
        return world_.reset(action.rail);
      case Kind::kManagementDown:
        world_.managementPath(false);
        break;
      case Kind::kPause:
        return world_.pause(action.end, action.length);
      case Kind::kSlow:
        world_.slow(action.rail, action.rate);
        if (action.length == Duration::zero() || action.length == Action::kForGood) return;
        return world_.clock().after(action.length,
                                    [this, &action] { world_.slow(action.rail, Action::kFast); });
      case Kind::kKill:
        return world_.kill(action.end);
      case Kind::kExit:
        return world_.exit(action.end);
      case Kind::kDoubt:
        return world_.doubt(action.end);
      case Kind::kCloseSends:
        return world_.close(action.end, Side::kSends, action.stream);
      case Kind::kCloseReceives:
        return world_.close(action.end, Side::kReceives, action.stream);
    }
    keepBroken(action);
  }

  void keepBroken(const Action& action) {
    ++faults_[placeOf(action)];
    if (action.length == Action::kForGood) return;
    world_.clock().after(action.length, [this, &action] {
      if (!over_ && --faults_[placeOf(action)] == 0) heal(placeOf(action));
    });
  }

  /// What a fault that can be healed is in: a rail, or behind them the management network.
  int placeOf(const Action& action) const {
    return action.breaksRail() ? action.rail : script_.options.link.rails;
  }
  void heal(int place) {
    if (script_.options.trace) world_.addTrace(fmt::format("*** path {} is healed", place));
    if (place == script_.options.link.rails) {
      world_.managementPath(true);
    } else {
      world_.heal(place);
    }
  }

  bool awaitTheMessages() {
    constexpr Duration kLimit = 60s;
    if (world_.runUntilIdle(kLimit)) return true;
    problems_.push_back(
        fmt::format("hangs: {} / {}", world_.error(0).message(), world_.error(1).message()));
    return false;
  }

  /// From now on nothing is broken any more.
  void awaitTheRails() {
    world_.run(30ms + script_.options.portEventDelay);
    over_ = true;
    for (auto& [place, count] : faults_) {
      if (count > 0) heal(place);
    }
    if (!script_.options.link.resilient) return;
    const int rails = script_.options.link.rails;
    const TimePoint limit = world_.clock().now() + 10s;
    const auto allUp = [&] {
      for (int rail = 0; rail < rails; ++rail) {
        for (int end = 0; end < SimWorld::kEnds; ++end) {
          if (!world_.link(end).railUp(rail)) return false;
        }
        if (world_.link(0).epoch(rail) != world_.link(1).epoch(rail)) return false;
      }
      return true;
    };
    while (!allUp()) {
      if (!world_.clock().step(limit)) {
        problems_.push_back("a rail that nothing is wrong with does not come back");
        return;
      }
    }
    for (int end = 0; end < SimWorld::kEnds; ++end)
      world_.message(end, 4 * rails * script_.options.link.chunkBytes);
    if (!awaitTheMessages()) return;
    // Where probes get lost, one of the rails may have been given up once more, and held off.
    world_.run(500ms + script_.options.link.longestHoldOff);
    for (int end = 0; end < SimWorld::kEnds; ++end) {
      if (world_.link(end).nextDeadline() != TimePoint::max()) {
        problems_.push_back(fmt::format("end {} does not fall silent", end));
      }
      judgeStreams(end);
      std::vector<std::byte> got;
      for (const auto& note : world_.notes(1 - end)) got.push_back(note.at(0));
      std::ranges::sort(got);
      if (got != notes_[end]) problems_.push_back("a note has not come, or more than once");
    }
  }

  /// When every stream that is closed is closed at both ends.
  void judgeStreams(int end) {
    std::map<std::pair<int, int>, int> closed;  // by sending end and stream
    for (const Action& action : script_.actions) {
      if (!action.closesStream()) continue;
      const int from = action.kind == Kind::kCloseSends ? action.end : 1 - action.end;
      ++closed[{from, action.stream}];
    }
    if (std::ranges::any_of(closed, [](const auto& times) { return times.second != 2; })) return;
    const Link& link = world_.link(end);
    if (link.endedStreams() == 0 && link.earlyGrants() == 0) return;
    problems_.push_back(fmt::format("end {} remembers {} streams that have ended and {} grants",
                                    end, link.endedStreams(), link.earlyGrants()));
  }

  /// Each end that still has something to do must give up, and say why.
  void awaitTheEnd() {
    world_.run(last_ + script_.options.link.giveUp + 1s);
    for (int end = 0; end < SimWorld::kEnds; ++end) {
      if (world_.stoppedUntil(end) == TimePoint::max()) continue;  // killed
      const Link& link = world_.link(end);
      if (link.failed()) ++referee_.coverage().givenUp;
      if (link.busy() && !link.failed()) {
        problems_.push_back(fmt::format("end {} waits for ever", end));
      }
    }
  }

  const Script& script_;
  SimWorld world_;
  Referee referee_;
  const TimePoint begin_ = world_.clock().now();
  Duration last_{};  // when the last thing begins that can keep an end from giving up
  std::vector<const Action*> waiting_;
  std::map<int, int> faults_;  // open ones, by place
  std::array<std::vector<std::byte>, SimWorld::kEnds> notes_;
  bool over_ = false;
  std::vector<std::string> problems_;
};

}  // namespace

Outcome play(const Script& script) { return Player(script).run(); }

Script shrink(Script script, const std::function<bool(const Script&)>& fails) {
  const auto tryWithout = [&](const std::function<void(Script&)>& simplify) {
    Script simpler = script;
    simplify(simpler);
    if (!fails(simpler)) return false;
    script = std::move(simpler);
    return true;
  };
  // The network first: in a simpler one more actions can be left out.
  tryWithout([](Script& simpler) { simpler.options.datagramLoss = 0; });
  tryWithout([](Script& simpler) { simpler.options.datagramDuplication = 0; });
  tryWithout([](Script& simpler) { simpler.options.datagramsHeld = 0; });
  tryWithout([](Script& simpler) { simpler.options.datagramJitter = 100us; });
  tryWithout([](Script& simpler) { simpler.options.fenceTime = 100us; });
  tryWithout([](Script& simpler) { simpler.options.openTime = 300us; });
  tryWithout([](Script& simpler) { simpler.options.lateDelivery = {}; });
  tryWithout([](Script& simpler) { simpler.options.mixed = false; });
  // Halves first, then quarters, ... then single actions, until none can be left out.
  for (std::size_t count = std::max<std::size_t>(1, script.actions.size() / 2); count > 0;) {
    bool shorter = false;
    for (std::size_t first = 0; first < script.actions.size();) {
      const std::size_t last = std::min(first + count, script.actions.size());
      const bool gone = tryWithout([&](Script& simpler) {
        simpler.actions.erase(simpler.actions.begin() + static_cast<std::ptrdiff_t>(first),
                              simpler.actions.begin() + static_cast<std::ptrdiff_t>(last));
      });
      shorter |= gone;
      if (!gone) first = last;
    }
    if (!(shorter && count == 1)) count /= 2;
  }
  return script;
}

}  // namespace faultline::test
