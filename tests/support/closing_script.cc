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
                     .bytes = static_cast<Bytes>(random.below(200'000)),
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

}  // namespace

Script closingScript(std::uint64_t seed) {
  Random random(Random::mix(Random::mix(Random::mix(seed))));
  Script script;
  SimOptions& options = script.options;
  addOptions(random, options);
  if (random.below(2)) options.datagramLoss = 0.2 * random.unit();
  if (random.below(3) == 0) options.datagramDuplication = 0.3;
  if (random.below(4) == 0) options.datagramsHeld = 0.05;
  addMessages(random, script);
  addClosedStreams(random, script);
  addRates(random, script);
  for (auto faults = random.below(4); faults > 0; --faults) {
    script.actions.push_back(
        randomFault(random, options.link.rails, std::max(options.fenceTime, options.openTime)));
  }
  return script;
}

}  // namespace faultline::test
