#include "harness/record/exposed_times.h"

#include "base/units.h"
#include "harness/model/training_program.h"

namespace faultline::run {

void ExposedTimes::ended(const wire::End& message) {
  ++iterations_;
  iterationsMs_ += toMilliseconds(message.took);
  Sum& iteration = iterationMs_[message.iteration];
  ++iteration.ranks;
  for (const auto& [phase, time] : message.exposed) {
    ms_[phase] += toMilliseconds(time);
    iteration.ms += toMilliseconds(time);
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
