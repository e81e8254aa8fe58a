#include <array>

#include "tests/support/script_parts.h"

// What a seed makes: scenes, each of which brings some parts of the channel about.

namespace faultline::test {

using channel::Policy;
using Kind = Action::Kind;
using Phase = channel::Link::Phase;

namespace {

/// More small messages than a receipt reaches, over slow rails, one of which loses some chunks and
/// goes on.
void addCrowd(Random& random, Script& script) {
  const Duration at = upTo(random, kBusy / 2);
  script.actions.push_back({.kind = Kind::kMessages,
                            .at = at,
                            .end = static_cast<int>(random.below(2)),
                            .bytes = 1 + static_cast<Bytes>(random.below(64)),
                            .count = 300});
  for (int rail = 0; rail < script.options.link.rails; ++rail) {
    script.actions.push_back({.kind = Kind::kSlow, .at = at, .rail = rail, .rate = 0.5e6});
  }
  script.actions.push_back({.kind = Kind::kBlackHole,
                            .at = at + upTo(random, 10ms),
                            .rail = static_cast<int>(random.below(script.options.link.rails)),
                            .length = upTo(random, 2ms)});
}

/// Equal rails, one of which gets slow when it has its part of a message; then another one may.
void addTail(Random& random, Script& script) {
  const int rails = script.options.link.rails;
  for (int rail = 0; rail < rails; ++rail) {
    script.actions.push_back({.kind = Kind::kSlow, .rail = rail, .rate = Action::kFast});
  }
  for (int i = 0; i < 6; ++i) {
    const Action slow{.kind = Kind::kSlow,
                      .at = upTo(random, kBusy / 2),
                      .rail = static_cast<int>(random.below(rails)),
                      .length = upTo(random, kBusy / 2),
                      .rate = 50e3 * static_cast<double>(1 << random.below(8))};
    script.actions.push_back(slow);
    if (random.below(4) == 0) continue;
    // While it is slow, or when it has just delivered what has been copied meanwhile.
    const Duration until = random.below(2) ? upTo(random, 10ms) : slow.length + upTo(random, 5ms);
    script.actions.push_back({.kind = Kind::kReset, .at = slow.at + until, .rail = slow.rail});
  }
}

/// One on which a chunk takes longer than a suspicion.
void addSlowRail(Random& random, Script& script) {
  const int rail = static_cast<int>(random.below(script.options.link.rails));
  script.actions.push_back({.kind = Kind::kSlow,
                            .rail = rail,
                            .length = 4 * kBusy,
                            .rate = 30e3 + 70e3 * random.unit()});
}

/// A slow rail, to a peer that is stopped now and then.
void addBusyPeer(Random& random, Script& script) {
  addSlowRail(random, script);
  for (int i = 0; i < 3; ++i) {
    script.actions.push_back({.kind = Kind::kPause,
                              .at = upTo(random, 2 * kBusy),
                              .end = static_cast<int>(random.below(2)),
                              .length = upTo(random, 100ms)});
  }
}

/// Datagrams are lost now and then, repeated, and overtaken, also on a rail on which one chunk
/// takes longer than a suspicion.
void addDisorder(Random& random, Script& script) {
  SimOptions& options = script.options;
  options.link.rails = 2 + static_cast<int>(random.below(2));
  options.datagramLoss = 0.02;  // three in a row: never within some thousand seeds
  options.datagramDuplication = random.below(2) ? 0.3 : 0;
  options.datagramJitter = channel::Arrivals::kOrderKept - upTo(random, 500us);
  for (int rail = 0; rail < options.link.rails; ++rail) {
    script.actions.push_back({.kind = Kind::kSlow, .rail = rail, .rate = Action::kFast});
  }
  addSlowRail(random, script);
  // One end has much to send. The other suspects no rail, so that its acknowledgements come over
  // all of them.
  const int end = static_cast<int>(random.below(2));
  std::erase_if(script.actions, [end](const Action& action) {
    return action.kind == Kind::kMessages && action.end != end;
  });
  script.actions.push_back(
      {.kind = Kind::kMessages, .end = end, .bytes = 200'000, .count = 6 * options.link.rails});
}

/// An outage that is over before anybody asks: both ends have much to send.
Duration addOutageBeforeSuspicion(Random& random, Script& script) {
  script.options.link.suspectAfter = 20ms;
  for (int end = 0; end < SimWorld::kEnds; ++end) {
    script.actions.push_back({.kind = Kind::kMessages,
                              .end = end,
                              .bytes = 200'000,
                              .count = 12 * script.options.link.rails});
  }
  return 8ms + upTo(random, 8ms);
}

/// One that is over before there is a verdict: the only end that sends has lost rounds and next to
/// no other datagram.
Duration addOutageBeforeVerdict(Random& random, Script& script) {
  SimOptions& options = script.options;
  options.link.suspectAfter = 10ms;
  options.link.chunkBytes = 64 << 10;
  std::erase_if(script.actions, [](const Action& action) {
    return action.kind == Kind::kMessages && action.end != 0;
  });
  script.actions.push_back({.kind = Kind::kMessages,
                            .end = 0,
                            .bytes = Bytes{1'200'000} * options.link.rails,
                            .count = 2});
  for (int rail = 0; rail < options.link.rails; ++rail) {
    script.actions.push_back({.kind = Kind::kSlow, .rail = rail, .rate = 20e6});
  }
  return options.link.suspectAfter + options.wireLatency + 1500us + upTo(random, 3ms);
}

/// A short outage of a rail that sends again when its timer says so. What came in just before is
/// acknowledged when it is over.
void addShortOutage(Random& random, Script& script) {
  SimOptions& options = script.options;
  options.lateWrites = options.mixed = false;
  options.backsOff = true;
  options.datagramJitter = 100us;
  options.wireLatency = 50us + upTo(random, 2ms);
  const Duration length = random.below(2) ? addOutageBeforeVerdict(random, script)
                                          : addOutageBeforeSuspicion(random, script);
  script.actions.push_back({.kind = Kind::kBlackHole,
                            .at = 2ms + upTo(random, 10ms),
                            .rail = static_cast<int>(random.below(options.link.rails)),
                            .length = length});
}

/// Datagrams pass and payload does not, on all rails: they are given up in turn, and open again.
/// Both ends have something to send; one that only receives hears of it from the other's job.
void addNoPayload(Random& random, Script& script) {
  const Duration at = upTo(random, kBusy / 2);
  for (int rail = 0; rail < script.options.link.rails; ++rail) {
    script.actions.push_back({.kind = Kind::kSlow,
                              .at = at,
                              .rail = rail,
                              .length = Action::kForGood,
                              .rate = Action::kStuck});
  }
  for (int end = 0; end < SimWorld::kEnds; ++end) {
    script.actions.push_back({.kind = Kind::kMessages, .at = at, .end = end, .bytes = 200'000});
  }
}

/// A rail that fails again while it is being opened, several times.
void addBadReturn(Random& random, Script& script) {
  const int rail = static_cast<int>(random.below(script.options.link.rails));
  const Duration step = script.options.openTime;
  script.actions.push_back(
      {.kind = Kind::kPortDown, .at = upTo(random, kBusy / 2), .rail = rail, .length = 2ms});
  for (int i = 0; i < 4; ++i) {
    Action fault = randomFault(random, script.options.link.rails, step);
    fault.rail = rail;
    fault.length = upTo(random, 3 * step);
    fault.phase = random.below(2) ? Phase::kOpening : Phase::kUp;
    fault.after = upTo(random, 2 * step);
    if (fault.breaksRail()) script.actions.push_back(fault);
  }
}

/// All rails but one stay dead until everything is done.
void addDeadRails(Random& random, Script& script) {
  const int rails = script.options.link.rails;
  const int survivor = static_cast<int>(random.below(rails));
  for (int rail = 0; rail < rails; ++rail) {
    if (rail == survivor || random.below(2)) continue;
    script.actions.push_back({.kind = random.below(2) ? Kind::kPortDown : Kind::kBlackHole,
                              .at = upTo(random, kBusy),
                              .end = static_cast<int>(random.below(2)),
                              .rail = rail,
                              .length = Action::kForGood});
  }
}

/// All rails are reset together, again and again, while there is something to send.
void addCommonResets(Random& random, Script& script) {
  for (int time = 0; time < 5; ++time) {
    const Duration at = (time + 1) * 200ms + upTo(random, 50ms);
    script.actions.push_back(
        {.kind = Kind::kMessages, .at = at - 1ms, .end = 0, .bytes = 256 << 10, .count = 4});
    for (int rail = 0; rail < script.options.link.rails; ++rail) {
      script.actions.push_back({.kind = Kind::kReset, .at = at, .rail = rail});
    }
  }
}

/// The job begins without some of its rails, never without all; they come up early or late.
void addMissing(Random& random, Script& script) {
  const int rails = script.options.link.rails;
  const int survivor = static_cast<int>(random.below(rails));
  script.options.grace = upTo(random, 60ms);
  if (random.below(2)) script.options.openTime = upTo(random, 20ms);
  script.options.lateEnd = static_cast<int>(random.below(2));
  script.options.lateStart = random.below(2) ? upTo(random, 30ms) : Duration{};
  for (int rail = 0; rail < rails; ++rail) {
    if (rail == survivor || random.below(3) == 0) continue;
    Action missing{.kind = random.below(2) ? Kind::kPortDown : Kind::kBlackHole,
                   .end = static_cast<int>(random.below(2)),
                   .rail = rail,
                   .length = upTo(random, random.below(2) ? 40ms : 400ms),
                   .beforehand = true};
    if (missing.kind == Kind::kBlackHole && random.below(2)) {
      missing.fromEnd0 = missing.end == 0;
      missing.fromEnd1 = missing.end == 1;
    }
    script.actions.push_back(missing);
  }
}

/// From numbers of their own, so that the other seeds stay what they were: one in eight is about
/// the numbers of datagrams, one in 64 about rails that open and carry nothing.
std::uint64_t sceneOf(std::uint64_t seed, Random& random) {
  constexpr std::uint64_t kOthers = 16;
  const std::uint64_t scene = random.below(kOthers);
  const std::uint64_t own = Random::mix(Random::mix(seed));
  if (own % 8 == 0) return kOthers + own / 8 % 2;
  return own % 64 == 1 ? kOthers + 2 : scene;
}

/// False hints that a process is gone, from numbers of their own.
void addDoubts(std::uint64_t seed, Script& script) {
  Random random(Random::mix(seed));
  for (auto doubts = random.below(4); doubts > 0; --doubts) {
    script.actions.push_back({.kind = Kind::kDoubt,
                              .at = upTo(random, 2 * kBusy),
                              .end = static_cast<int>(random.below(2))});
  }
}

void addEnd(Random& random, Script& script) {
  const Duration at = upTo(random, kBusy);
  if (random.below(2)) {
    const int end = static_cast<int>(random.below(2));
    const Kind kind = random.below(2) ? Kind::kKill : Kind::kExit;
    script.actions.push_back({.kind = kind, .at = at, .end = end});
    return;
  }
  for (int rail = 0; rail < script.options.link.rails; ++rail) {
    script.actions.push_back({.kind = random.below(2) ? Kind::kPortDown : Kind::kBlackHole,
                              .at = at + upTo(random, 5ms),
                              .end = static_cast<int>(random.below(2)),
                              .rail = rail,
                              .length = Action::kForGood});
  }
}

}  // namespace

Script randomScript(std::uint64_t seed) {
  Random random(seed);
  Script script;
  SimOptions& options = script.options;
  addOptions(random, options);
  addMessages(random, script);
  const auto scene = sceneOf(seed, random);
  if (scene == 4 || scene == 5) options.link.rails = 3 + static_cast<int>(random.below(2));
  if (scene == 8) {
    options.link.rails = 1;
    options.openTime = 300us;
    options.fenceTime = 100us;
  }
  if (scene == 0) {  // nothing breaks, and only acknowledgements get lost
    options.link.resilient = false;
    options.datagramLoss = 0.3 * random.unit();
    return script;
  }
  if (scene <= 2) {  // one clean fault
    options.fenceTime = 100us;
    Action fault = randomFault(random, options.link.rails, /*step=*/1ms);
    fault.phase.reset();
    fault.length = 300ms;
    if (scene == 2) {  // and only one end has something to send
      fault.kind = Kind::kBlackHole;
      const int silent = static_cast<int>(random.below(2));
      std::erase_if(script.actions, [&](const Action& action) { return action.end == silent; });
    }
    script.actions.push_back(fault);
    return script;
  }
  if (scene == 11) {  // a port goes down, and the kernel takes its time to say so
    options.fenceTime = 100us;
    options.portEventDelay = upTo(random, 250ms);
    script.actions.push_back({.kind = Kind::kPortDown,
                              .at = upTo(random, kBusy / 2),
                              .end = static_cast<int>(random.below(2)),
                              .rail = static_cast<int>(random.below(options.link.rails)),
                              .length = 300ms});
    return script;
  }
  if (scene == 12) {  // datagrams pass, payload does not, and there are other rails
    options.link.rails = 2 + static_cast<int>(random.below(3));
    script.actions.push_back({.kind = Kind::kSlow,
                              .at = upTo(random, kBusy / 2),
                              .rail = static_cast<int>(random.below(options.link.rails)),
                              .length = options.link.giveUp + 1s,
                              .rate = Action::kStuck});
    return script;
  }
  if (scene == 13) {  // all rails flap, and none may be held off
    options.link.rails = 1 + static_cast<int>(random.below(2));
    options.link.holdOff = 50ms;
    options.link.longestHoldOff = options.link.giveUp + 1s;
    options.fenceTime = options.openTime = 300us;
    addCommonResets(random, script);
    return script;
  }
  if (scene == 3) {  // nothing breaks: whatever is given up is given up wrongly
    addBusyPeer(random, script);
    return script;
  }
  if (scene == 16) {  // nothing breaks here either
    addDisorder(random, script);
    return script;
  }
  if (scene == 17) {
    addShortOutage(random, script);
    return script;
  }
  if (scene == 18) {
    addNoPayload(random, script);
    return script;
  }
  constexpr std::array<double, 5> kLosses{0, 0, 0.05, 0.3, 0.4};
  options.datagramLoss = kLosses[random.below(kLosses.size())] * random.unit();
  options.datagramDuplication = random.below(3) == 0 ? 0.3 : 0;
  options.datagramsHeld = random.below(4) == 0 ? 0.02 : 0;
  if (scene == 4 || scene == 5) {
    options.link.policy = Policy::kPull;
    options.link.tailBudget = 64 << 10;
    options.lateWrites = false;
    options.link.windowTime = 3ms;  // long tails
    options.datagramJitter = 5ms;   // the sender learns late which copy was the first
    addTail(random, script);
  } else if (random.below(2)) {
    addRates(random, script);
  }
  for (auto faults = random.below(6); faults > 0; --faults) {
    script.actions.push_back(
        randomFault(random, options.link.rails, std::max(options.fenceTime, options.openTime)));
  }
  if (scene == 6) addCrowd(random, script);
  if (scene == 7 || scene == 8) addBadReturn(random, script);
  if (scene == 8) {  // old words and receipts come in when the rail is up again
    options.link.holdOff = 1ms;
    options.link.longestHoldOff = 2ms;
    options.link.returnProbeInterval = 2ms;
    options.datagramLoss = 0;
    options.datagramsHeld = 0.4;
    options.heldFor = 10ms + upTo(random, 30ms);
    script.actions.push_back({.kind = Kind::kSlow, .rate = 4e6});
    for (int i = 0; i < 40; ++i) {
      script.actions.push_back(
          {.kind = Kind::kReset, .phase = Phase::kUp, .after = 2ms + upTo(random, 13ms)});
    }
  }
  if (scene == 9) addDeadRails(random, script);
  if (scene == 10) addEnd(random, script);
  if (scene == 14) addMissing(random, script);
  if (scene == 15) {  // nothing else breaks, and nothing misleads
    std::erase_if(script.actions, [](const Action& action) {
      return action.kind != Kind::kMessages && action.kind != Kind::kNote;
    });
    options.datagramLoss = options.datagramsHeld = 0;
    options.link.rails = std::max(options.link.rails, 2);
    addMissing(random, script);
  }
  if (scene != 15) addDoubts(seed, script);
  return script;
}

}  // namespace faultline::test
