#include <algorithm>

#include "tests/support/script_parts.h"

// Streams that are closed while whatever happens.

namespace faultline::test {

using Kind = Action::Kind;

namespace {

/// Streams of messages in both directions, each of which is closed at both ends, now or then: while
/// its messages wait, are under way or are being sent again, or when all have arrived.
void addClosedStreams(Random& random, Script& script) {
  for (int stream = 1 + static_cast<int>(random.below(3)); stream > 0; --stream) {
    const int from = static_cast<int>(random.below(2));
    // Both soon after each other, or one of them much later.
    const Duration first = upTo(random, 2 * kBusy);
    const Duration second = first + upTo(random, random.below(2) ? 2ms : 4 * kBusy);
    const bool sendsFirst = random.below(2);
    const Duration sends = sendsFirst ? first : second;
    const Duration receives = sendsFirst ? second : first;
    for (int i = static_cast<int>(random.below(12)); i >= 0; --i) {
      Action message{.kind = Kind::kMessages,
                     .at = upTo(random, std::min(kBusy, sends)),
                     .end = from,
                     .length = upTo(random, std::min(kBusy, receives)),
                     .bytes = static_cast<Bytes>(random.below(random.below(2) ? 200'000 : 10'000)),
                     .stream = stream};
      if (random.below(8) == 0) message.room = static_cast<Bytes>(random.below(400'000));
      if (random.below(8) == 0) (random.below(2) ? message.sent : message.received) = false;
      script.actions.push_back(message);
    }
    script.actions.push_back(
        {.kind = Kind::kCloseSends, .at = sends, .end = from, .stream = stream});
    script.actions.push_back(
        {.kind = Kind::kCloseReceives, .at = receives, .end = 1 - from, .stream = stream});
  }
  for (int i = static_cast<int>(random.below(3)); i > 0; --i) {
    const auto bytes = 1 + static_cast<Bytes>(random.below(100'000));
    script.actions.push_back({.kind = Kind::kMessages,
                              .at = upTo(random, kBusy),
                              .end = static_cast<int>(random.below(2)),
                              .length = upTo(random, kBusy),
                              .bytes = bytes,
                              .room = static_cast<Bytes>(random.below(bytes))});
  }
}

/// The receiver closes as soon as it has everything, while a rail over which the last of it came is
/// being fenced: what the sender hears last is what has arrived.
void addEarlyClose(Random& random, Script& script) {
  constexpr int kStream = 10;
  SimOptions& options = script.options;
  options.fenceTime = 2ms + upTo(random, 5ms);
  const int from = static_cast<int>(random.below(2));
  const Duration at = kBusy + upTo(random, kBusy);
  const Duration reset = at + upTo(random, 400us);
  script.actions.push_back({.kind = Kind::kMessages,
                            .at = at,
                            .end = from,
                            .length = at,
                            .bytes = 1 + static_cast<Bytes>(random.below(2000)),
                            .count = 1 + static_cast<int>(random.below(8)),
                            .stream = kStream});
  for (int rail = 0; rail < options.link.rails; ++rail) {
    script.actions.push_back({.kind = Kind::kReset, .at = reset, .rail = rail});
  }
  script.actions.push_back({.kind = Kind::kCloseReceives,
                            .at = reset + upTo(random, options.fenceTime),
                            .end = 1 - from,
                            .stream = kStream});
  script.actions.push_back(
      {.kind = Kind::kCloseSends, .at = 3 * kBusy, .end = from, .stream = kStream});
}

}  // namespace

Script closingScript(std::uint64_t seed) {
  Random random(Random::mix(Random::mix(Random::mix(seed))));
  Script script;
  SimOptions& options = script.options;
  addOptions(random, options);
  const bool small = random.below(2);
  if (small) options.link.smallMessage = static_cast<Bytes>(random.below(20'000));
  options.eager = small && Random::mix(seed) % 2 == 0;
  options.firstChoices = seed % 3 == 0;
  if (random.below(2)) options.datagramLoss = 0.2 * random.unit();
  if (random.below(3) == 0) options.datagramDuplication = 0.3;
  if (random.below(4) == 0) options.datagramsHeld = 0.05;
  addMessages(random, script);
  addClosedStreams(random, script);
  if (random.below(4) == 0) {
    addEarlyClose(random, script);
  } else {
    addRates(random, script);
  }
  for (auto faults = random.below(4); faults > 0; --faults) {
    script.actions.push_back(
        randomFault(random, options.link.rails, std::max(options.fenceTime, options.openTime)));
  }
  return script;
}

}  // namespace faultline::test
