#include <algorithm>

#include "tests/support/sim_end.h"
#include "tests/support/sim_world.h"

// What a script does to the world, and when each rail was broken, stuck or slow.

namespace faultline::test {

/// To be called after a change; `wholeBefore` is how it was.
void SimWorld::noteHealth(int rail, bool wholeBefore) {
  (wholeBefore ? health_[rail].lastWhole : health_[rail].lastBroken) = clock_.now();
}

TimePoint SimWorld::lastBroken(int rail) const {
  return carries(rail) ? health_[rail].lastBroken : clock_.now();
}

TimePoint SimWorld::lastWhole(int rail) const {
  return carries(rail) ? clock_.now() : health_[rail].lastWhole;
}

void SimWorld::blackHole(int rail, bool fromEnd0, bool fromEnd1) {
  noteHealth(rail, carries(rail));
  if (fromEnd0) ends_[0]->wires[rail].carries = false;
  if (fromEnd1) ends_[1]->wires[rail].carries = false;
}

void SimWorld::longestFrame(int rail, Bytes longest, bool fromEnd0, bool fromEnd1) {
  if (fromEnd0) ends_[0]->wires[rail].longestFrame = longest;
  if (fromEnd1) ends_[1]->wires[rail].longestFrame = longest;
}

void SimWorld::refusesLongFrames(int rail, bool refuses) {
  for (const auto& end : ends_) end->wires[rail].refuses = refuses;
}

void SimWorld::portDown(int end, int rail) {
  noteHealth(rail, carries(rail));
  ends_[end]->portUp[rail] = false;
  ends_[end]->portWasDown[rail] = true;
  for (auto& self : ends_) self->wires[rail].carries = false;
  tellOfPort(end, rail);
}

/// As of now: a late event tells of the state that the port has by then.
void SimWorld::tellOfPort(int end, int rail) {
  const auto tell = [this, end, rail] {
    runEvent(end, Input::kPort, [this, end, rail] {
      End& self = *ends_[end];
      if (!self.portUp[rail]) self.portDownTold[rail] = true;
      self.link->onPort(rail, self.portUp[rail], clock_.now());
    });
  };
  if (options_.portEventDelay == Duration::zero()) return tell();
  clock_.after(options_.portEventDelay, tell);
}

void SimWorld::reset(int rail) {
  health_[rail].lastBroken = clock_.now();
  for (int end = 0; end < kEnds; ++end) {
    runEvent(end, Input::kReset, [this, end, rail] {
      link(end).onRailFailed(rail, channel::Cause::kRail, clock_.now());
    });
  }
}

void SimWorld::heal(int rail) {
  noteHealth(rail, carries(rail));
  for (int end = 0; end < kEnds; ++end) {
    ends_[end]->wires[rail].carries = true;
    if (ends_[end]->portUp[rail]) continue;
    ends_[end]->portUp[rail] = true;
    tellOfPort(end, rail);
  }
}

TimePoint SimWorld::lastStuck(int rail) const {
  const bool stuck = ends_[0]->wires[rail].bytesPerSecond <= kStuckRate;
  return stuck ? clock_.now() : health_[rail].lastStuck;
}

TimePoint SimWorld::lastSlow(int rail) const {
  const std::vector<Wire>& wires = ends_[0]->wires;
  const double fastest = std::ranges::max(wires, {}, &Wire::bytesPerSecond).bytesPerSecond;
  return wires[rail].bytesPerSecond < kEqual * fastest ? clock_.now() : health_[rail].lastSlow;
}

void SimWorld::slow(int rail, double bytesPerSecond) {
  health_[rail].lastStuck = lastStuck(rail);
  for (int any = 0; any < options_.link.rails; ++any) health_[any].lastSlow = lastSlow(any);
  for (auto& self : ends_) self->wires[rail].bytesPerSecond = bytesPerSecond;
}

void SimWorld::lateDelivery(Duration delay) {
  for (auto& self : ends_) {
    for (auto& wire : self->wires) wire.lateDelivery = delay;
  }
}

void SimWorld::pause(int end, Duration length) {
  End& self = *ends_[end];
  self.pausedUntil = std::max(self.pausedUntil, clock_.now() + length);
  clock_.after(self.pausedUntil - clock_.now(), [this, end] {
    End& waking = *ends_[end];
    if (clock_.now() < waking.pausedUntil) return;
    // Sockets are read one after the other: what came first is not what is read first.
    auto waiting = std::exchange(waking.waiting, {});
    const std::uint64_t order = random_();
    std::ranges::stable_sort(waiting, {}, [order](const Event& event) {
      return Random::mix(order + static_cast<std::uint64_t>(event.socket));
    });
    for (const Event& event : waiting) {
      event.run();
      observe(end, event.input);
    }
    settle(end);
  });
}

void SimWorld::kill(int end) { ends_[end]->dead = true; }

void SimWorld::exit(int end) {
  ends_[end]->dead = ends_[end]->refuses = true;
  for (int rail = 0; rail < options_.link.rails; ++rail) {
    if (!carries(rail)) continue;
    health_[rail].lastBroken = clock_.now();
    runEvent(1 - end, Input::kReset, [this, end, rail] {
      link(1 - end).onRailFailed(rail, channel::Cause::kRail, clock_.now());
    });
  }
}

void SimWorld::doubt(int end) {
  runEvent(end, Input::kClient, [this, end] { link(end).doubt(clock_.now()); });
}

}  // namespace faultline::test
