#include "harness/scenario/scenario.h"

#include "harness/baseline/strategy_table.h"

namespace faultline::scenario {

TelemetryMode telemetryMode(std::string_view word) {
  if (word == "on") return TelemetryMode::kOn;
  return word == "null" ? TelemetryMode::kNull : TelemetryMode::kOff;
}

TelemetryMode Scenario::telemetryOf(const Strategy& strategy) const {
  if (!strategy.options.has(baseline::kTelemetry)) return telemetry;
  const std::string& word = strategy.options.get<std::string>(baseline::kTelemetry);
  return word == baseline::kAsTheScenario ? telemetry : telemetryMode(word);
}

}  // namespace faultline::scenario
