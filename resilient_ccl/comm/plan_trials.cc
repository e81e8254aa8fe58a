#include "resilient_ccl/comm/plan_trials.h"

#include <algorithm>

namespace faultline::comm {

void PlanTrials::began(std::uint64_t operation, const PlanKey& key, const plan::Plan& plan,
                       Choice choice, TimePoint now) {
  const PlanKey size = key.ofPlan();
  if (!sizes_.contains(size)) {
    if (plan.candidates.size() < 2 || sizes_.size() >= kMostSizes) return;
    std::vector<Choice> candidates;
    std::vector<double> predicted;
    for (const plan::Candidate& one : plan.candidates) {
      candidates.push_back(candidates.empty() ? Choice{} : choiceOf(one));
      predicted.push_back(overModel_ * one.expected());
    }
    sizes_.emplace(size, Size{std::move(candidates),
                              plan::CandidateTrial(std::move(predicted), overModel_ * plan.bound)});
  }
  open_[operation] = {size, choice, now};
}

void PlanTrials::ended(std::uint64_t operation, TimePoint now) {
  const auto open = open_.find(operation);
  if (open == open_.end()) return;
  Size& size = sizes_.at(open->second.key);
  const auto used = std::ranges::find(size.candidates, open->second.choice);
  if (used != size.candidates.end()) {
    size.trial.ended(static_cast<std::size_t>(used - size.candidates.begin()),
                     toSeconds(now - open->second.began), now);
  }
  open_.erase(open);
}

std::optional<PlanTrials::Wish> PlanTrials::next(const Agreement& agreement) const {
  for (const auto& [key, size] : sizes_) {
    // What nobody has said anything about is being tried: it is the first.
    const Chosen* const agreed = agreement.chosen(key);
    const Chosen now = agreed == nullptr ? Chosen{Choice{}, true} : *agreed;
    if (size.wanted() != now) return Wish{key, size.wanted()};
  }
  return std::nullopt;
}

void PlanTrials::forget(bool whole) {
  double longest = 0;
  const double before = overModel_;
  for (const auto& [key, size] : sizes_) {
    const std::optional<double> over = whole ? size.trial.overModel() : std::nullopt;
    const double bytes = static_cast<double>(key.elements) * static_cast<double>(key.elementSize);
    if (!over || bytes <= longest) continue;
    const double all = before * *over;
    if (all > kMostOff || all * kMostOff < 1) continue;
    longest = bytes;
    overModel_ = all;
  }
  sizes_.clear();
  open_.clear();
}

}  // namespace faultline::comm
