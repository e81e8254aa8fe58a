#include "harness/record/exposed_times.h"

#include "base/units.h"
#include "harness/model/training_program.h"

namespace faultline::run {

void ExposedTimes::ended(const wire::End& message) {
  ++iterations_;
  iterationsTime_ += message.took;
  Sum& iteration = byIteration_[message.iteration];
  ++iteration.ranks;
  for (const auto& [phase, time] : message.exposed) {
    times_[phase] += time;
    iteration.time += time;
  }
}

std::optional<double> ExposedTimes::ofIteration(int index) const {
  const auto found = byIteration_.find(index);
  if (times_.empty() || found == byIteration_.end()) return std::nullopt;
  return toMilliseconds(found->second.time) / found->second.ranks;
}

std::vector<reports::ExposedPhase> ExposedTimes::rows() const {
  std::vector<reports::ExposedPhase> rows;
  if (iterationsTime_ <= Duration::zero()) return rows;
  for (const std::string_view phase : model::kPhaseNames) {
    const auto found = times_.find(std::string(phase));
    if (found == times_.end()) continue;
    const double ms = toMilliseconds(found->second);
    rows.push_back({.phase = found->first,
                    .ms = ms / iterations_,
                    .share_pct = kWholeInPercent * ms / toMilliseconds(iterationsTime_)});
  }
  return rows;
}

}  // namespace faultline::run
