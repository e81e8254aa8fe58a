#include "harness/scenario/scenario.h"

#include <algorithm>

#include "harness/baseline/strategy_table.h"

namespace faultline::scenario {

TelemetryMode telemetryMode(std::string_view word) {
  if (word == "on") return TelemetryMode::kOn;
  return word == "null" ? TelemetryMode::kNull : TelemetryMode::kOff;
}

const Strategy* Scenario::secondFaultFree() const {
  const Strategy* const first = find(std::string(baseline::kReferenceRow));
  if (first == nullptr) return nullptr;
  const auto found = std::ranges::find_if(strategies, [&](const Strategy& strategy) {
    return &strategy != first && strategy.kind() == first->kind() &&
           strategy.options == first->options && strategy.environment == first->environment;
  });
  return found == strategies.end() ? nullptr : &*found;
}

TelemetryMode Scenario::telemetryOf(const Strategy& strategy) const {
  if (!strategy.options.has(baseline::kTelemetry)) return telemetry;
  const std::string& word = strategy.options.get<std::string>(baseline::kTelemetry);
  return word == baseline::kAsTheScenario ? telemetry : telemetryMode(word);
}

}  // namespace faultline::scenario
