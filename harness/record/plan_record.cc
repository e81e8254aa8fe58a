#include "harness/record/plan_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace faultline::run {
namespace {

reports::AppliedPlan planOf(const wire::Plan& told, TimePoint t0) {
  reports::AppliedPlan plan;
  plan.at_ms = toMilliseconds(told.at - t0);
  plan.communicator = told.communicator;
  plan.epoch = told.epoch;
  plan.operation = told.operation;
  plan.elements = told.elements;
  plan.bytes = told.bytes;
  plan.collective = told.collective;
  plan.algorithm = told.algorithm;
  plan.segments = told.segments;
  plan.tried = told.tried;
  for (const auto& [send, receive] : told.health) plan.health.push_back({send, receive});
  plan.predicted_ms = told.predictedMs.value_or(0);
  plan.ring_ms = told.ringMs.value_or(0);
  plan.bound_ms = told.boundMs.value_or(0);
  plan.hash = told.hash;
  plan.link.latency_us = told.latencyUs;
  plan.link.per_message_us = told.perMessageUs;
  plan.link.bandwidth = told.bandwidth;
  return plan;
}

}  // namespace

reports::PortTest portTestOf(const wire::PortTest& told, TimePoint t0) {
  reports::PortTest test;
  test.at_ms = toMilliseconds(told.at - t0);
  test.communicator = told.communicator;
  test.operation = told.operation;
  test.ms = toMilliseconds(told.took);
  test.rounds = told.rounds;
  if (told.lateness && *told.lateness > 0) test.lateness = told.lateness;
  test.complete = told.complete;
  test.changed = told.changed;
  for (const wire::SlowPath& path : told.slowPaths) {
    test.slow_paths.push_back({.from = path.from, .to = path.to, .share = path.share});
  }
  return test;
}

void PlanRecord::told(int rank, const std::vector<wire::Plan>& plans, TimePoint t0) {
  for (const wire::Plan& one : plans) {
    reports::AppliedPlan plan = planOf(one, t0);
    told_[{plan.communicator, plan.operation}].try_emplace(rank, plan.hash);
    if (rank == 0) plans_.push_back(std::move(plan));
  }
}

std::string PlanRecord::difference(const Told& told) {
  for (const auto& [place, hashes] : told) {
    const auto& [first, hash] = *hashes.begin();
    const auto other =
        std::ranges::find_if(hashes, [&](const auto& one) { return one.second != hash; });
    if (other == hashes.end()) continue;
    return fmt::format(
        "operation {} of communicator {} was planned differently: by rank {} as {}, by rank {} "
        "as {}",
        place.second, place.first, first, hash, other->first, other->second);
  }
  return "";
}

void PlanRecord::cutOff() {
  if (disagreement_.empty()) disagreement_ = difference(told_);
  told_.clear();
}

std::string PlanRecord::disagreement(int ranks) const {
  if (!disagreement_.empty()) return disagreement_;
  if (std::string wrong = difference(told_); !wrong.empty() || ranks == 0) return wrong;
  for (const auto& [place, hashes] : told_) {
    if (std::ssize(hashes) == ranks) continue;
    return fmt::format("operation {} of communicator {} had a new plan on {} of {} ranks",
                       place.second, place.first, hashes.size(), ranks);
  }
  return "";
}

}  // namespace faultline::run
