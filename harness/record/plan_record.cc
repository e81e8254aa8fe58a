#include "harness/record/plan_record.h"

#include <fmt/format.h>

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
    Told& told = told_[{plan.communicator, plan.operation}];
    if (told.ranks++ == 0) {
      told.hash = plan.hash;
      told.rank = rank;
    } else if (told.hash != plan.hash && disagreement_.empty()) {
      disagreement_ = fmt::format(
          "operation {} of communicator {} was planned differently: by rank {} as {}, by rank {} "
          "as {}",
          plan.operation, plan.communicator, told.rank, told.hash, rank, plan.hash);
    }
    if (rank == 0) plans_.push_back(std::move(plan));
  }
}

void PlanRecord::cutOff() { told_.clear(); }

std::string PlanRecord::disagreement(int ranks) const {
  if (!disagreement_.empty() || ranks == 0) return disagreement_;
  for (const auto& [place, told] : told_) {
    if (told.ranks == ranks) continue;
    return fmt::format("operation {} of communicator {} had a new plan on {} of {} ranks",
                       place.second, place.first, told.ranks, ranks);
  }
  return "";
}

}  // namespace faultline::run
