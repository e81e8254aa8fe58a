#include "harness/inference/accounting.h"

#include <algorithm>

namespace faultline::inference {

std::optional<double> ttftOf(const Served& served) {
  if (!served.first || !served.arrival) return std::nullopt;
  return *served.first - *served.arrival;
}

std::optional<double> tpotOf(const Served& served) {
  if (!served.first || !served.last || served.request.output < 2) return std::nullopt;
  return (*served.last - *served.first) / (served.request.output - 1);
}

std::optional<double> endToEndOf(const Served& served) {
  if (!served.last || !served.arrival) return std::nullopt;
  return *served.last - *served.arrival;
}

Fate fateOf(const Served& served, const Objectives& objectives) {
  const auto ttft = ttftOf(served);
  if (!served.last || !ttft) return Fate::kLost;
  const bool late = *ttft > toMilliseconds(objectives.ttft) ||
                    tpotOf(served).value_or(0) > toMilliseconds(objectives.tpot);
  return late ? Fate::kLate : Fate::kFinished;
}

int kneeOf(std::span<const Account> rates) {
  const auto knee =
      std::ranges::find_if(rates, [](const Account& rate) { return rate.good() < kKeepsUp; });
  return knee == rates.end() ? -1 : static_cast<int>(knee - rates.begin());
}

}  // namespace faultline::inference
