#include "harness/record/exposed_times.h"

#include "base/units.h"
#include "harness/model/training_program.h"
#include "harness/record/message.h"

namespace faultline::run {

void ExposedTimes::ended(const nlohmann::json& message) {
  ++iterations_;
  iterationsMs_ += field(message, "ms", 0.0);
  const auto told = field(message, "exposed_ms", nlohmann::json::object());
  if (!message.contains("exposed_ms")) return;
  Sum& iteration = iterationMs_[field(message, "iteration", 0)];
  ++iteration.ranks;
  for (const auto& [phase, ms] : told.items()) {
    ms_[phase] += ms.get<double>();
    iteration.ms += ms.get<double>();
  }
}

std::optional<double> ExposedTimes::ofIteration(int index) const {
  const auto found = iterationMs_.find(index);
  if (ms_.empty() || found == iterationMs_.end()) return std::nullopt;
  return found->second.ms / found->second.ranks;
}

std::vector<reports::ExposedPhase> ExposedTimes::rows() const {
  std::vector<reports::ExposedPhase> rows;
  if (!(iterationsMs_ > 0)) return rows;
  for (const std::string_view phase : model::kPhaseNames) {
    const auto found = ms_.find(std::string(phase));
    if (found == ms_.end()) continue;
    rows.push_back({.phase = found->first,
                    .ms = found->second / iterations_,
                    .share_pct = kWholeInPercent * found->second / iterationsMs_});
  }
  return rows;
}

}  // namespace faultline::run
