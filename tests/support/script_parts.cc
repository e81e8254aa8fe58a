#include "tests/support/script_parts.h"

#include <array>

namespace faultline::test {

using channel::Policy;
using Kind = Action::Kind;
using Phase = channel::Link::Phase;

namespace {

constexpr Bytes kSmallChunk = 4 << 10;

}  // namespace

void addOptions(Random& random, SimOptions& options) {
  options.seed = random();
  options.link.rails = 1 + static_cast<int>(random.below(4));
  options.link.policy = random.below(2) ? Policy::kPull : Policy::kPinned;
  options.link.chunkBytes = kSmallChunk;
  options.link.windowTime = 300us;  // eight chunks
  options.link.tailBudget = random.below(4) == 0 ? 0 : 64 << 10;
  options.link.suspectAfter = random.below(3) == 0 ? 8ms : 20ms;
  options.link.holdOff = random.below(2) ? 10ms : 50ms;
  options.link.longestHoldOff = 1s;
  options.link.giveUp = 3s;
  options.lateWrites = random.below(2);
  options.mixed = random.below(2);
  options.backsOff = random.below(2);
  options.lateDelivery = upTo(random, 50ms);
  options.fenceTime = random.below(4) == 0 ? upTo(random, 30ms) : 100us;
  options.openTime = random.below(3) == 0 ? upTo(random, 20ms) : 300us;
  options.datagramJitter = random.below(2) ? 100us : 2ms;
  options.portsSeen = random.below(2);
  options.portEventDelay = random.below(4) == 0 ? upTo(random, 100ms) : Duration{};
}

void addMessages(Random& random, Script& script) {
  const int count = 1 + static_cast<int>(random.below(30));
  for (int i = 0; i < count; ++i) {
    script.actions.push_back({.kind = Kind::kMessages,
                              .at = upTo(random, kBusy / 2),
                              .end = static_cast<int>(random.below(2)),
                              .length = upTo(random, kBusy / 2),
                              .bytes = static_cast<Bytes>(random.below(200'000))});
  }
  if (random.below(8) == 0) {
    script.actions.push_back({.kind = Kind::kMessages,
                              .at = upTo(random, kBusy / 2),
                              .end = static_cast<int>(random.below(2)),
                              .length = upTo(random, kBusy / 2),
                              .bytes = static_cast<Bytes>(random.below(64)),
                              .count = 200});
  }
  for (int notes = static_cast<int>(random.below(4)); notes > 0; --notes) {
    script.actions.push_back(
        {.kind = Kind::kNote, .at = upTo(random, kBusy), .end = static_cast<int>(random.below(2))});
  }
}

void addRates(Random& random, Script& script) {
  for (int rail = 0; rail < script.options.link.rails; ++rail) {
    for (const Duration at : {Duration::zero(), upTo(random, kBusy), upTo(random, 2 * kBusy)}) {
      const double rate = 100e6 / static_cast<double>(1 << random.below(9));
      script.actions.push_back({.kind = Kind::kSlow, .at = at, .rail = rail, .rate = rate});
    }
  }
}

Action randomFault(Random& random, int rails, Duration step) {
  Action action{.at = upTo(random, kBusy),
                .end = static_cast<int>(random.below(2)),
                .rail = static_cast<int>(random.below(rails))};
  switch (random.below(9)) {
    case 0:
    case 1:
      action.kind = Kind::kPortDown;
      break;
    case 2:
    case 3:
      action.kind = Kind::kBlackHole;
      break;
    case 4:
      action.kind = Kind::kBlackHole;
      action.fromEnd0 = action.end == 0;
      action.fromEnd1 = action.end == 1;
      break;
    case 5:
      action.kind = Kind::kReset;
      break;
    case 6:
      action.kind = Kind::kPause;
      break;
    case 7:
      action.kind = Kind::kManagementDown;
      break;
    case 8:
      action.kind = Kind::kSlow;  // a chunk needs longer than a rail may be silent
      action.rate = 30e3 + 70e3 * random.unit();
      break;
  }
  // Some are over before a verdict, some in the middle of the repair, most long after it.
  const std::array<Duration, 4> lengths{2ms, 45ms, 100ms, 400ms};
  action.length = upTo(random, lengths[random.below(lengths.size())]);
  if (action.kind == Kind::kPause) action.length = upTo(random, 100ms);
  if (action.kind == Kind::kReset) action.length = {};
  if (random.below(3) == 0) {
    constexpr std::array<Phase, 4> kPhases{Phase::kDown, Phase::kOpening, Phase::kUp,
                                           Phase::kFencing};
    action.phase = kPhases[random.below(kPhases.size())];
    // Most of these within the time in which a rail is closed or opened.
    action.after = upTo(random, random.below(3) ? 2 * step : 20ms);
  }
  return action;
}

}  // namespace faultline::test
