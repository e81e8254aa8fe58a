#include "harness/record/plan_record.h"

#include <fmt/format.h>

#include "harness/record/message.h"

namespace faultline::run {
namespace {

using nlohmann::json;

reports::AppliedPlan planOf(const json& told, TimePoint t0) {
  reports::AppliedPlan plan;
  plan.at_ms = toMilliseconds(momentOf(told, "at") - t0);
  plan.communicator = field(told, "communicator", std::uint32_t{0});
  plan.epoch = field(told, "epoch", std::uint64_t{0});
  plan.operation = field(told, "operation", std::uint64_t{0});
  plan.elements = field(told, "elements", std::int64_t{0});
  plan.bytes = field(told, "bytes", std::int64_t{0});
  plan.collective = field(told, "collective", plan.collective);
  plan.algorithm = field(told, "algorithm", std::string());
  plan.segments = field(told, "segments", 1);
  plan.tried = field(told, "tried", false);
  for (const auto& [send, receive] :
       field(told, "health", std::vector<std::pair<double, double>>())) {
    plan.health.push_back({send, receive});
  }
  plan.predicted_ms = field(told, "predicted_ms", 0.0);
  plan.ring_ms = field(told, "ring_ms", 0.0);
  plan.bound_ms = field(told, "bound_ms", 0.0);
  plan.hash = field(told, "hash", std::string());
  plan.link.latency_us = field(told, "latency_us", 0.0);
  plan.link.per_message_us = field(told, "per_message_us", 0.0);
  plan.link.bandwidth = field(told, "bandwidth", 0.0);
  return plan;
}

}  // namespace

reports::PortTest portTestOf(const json& told, TimePoint t0) {
  reports::PortTest test;
  test.at_ms = toMilliseconds(momentOf(told, "at") - t0);
  test.communicator = field(told, "communicator", std::uint32_t{0});
  test.operation = field(told, "operation", std::uint64_t{0});
  test.ms = field(told, "ms", 0.0);
  test.rounds = field(told, "rounds", 0);
  if (const double lateness = field(told, "lateness", 0.0); lateness > 0) test.lateness = lateness;
  test.complete = field(told, "complete", false);
  test.changed = field(told, "changed", false);
  for (const json& path : field(told, "slow_paths", json::array())) {
    test.slow_paths.push_back({.from = field(path, "from", 0),
                               .to = field(path, "to", 0),
                               .share = field(path, "share", 0.0)});
  }
  return test;
}

void PlanRecord::told(int rank, const json& plans, TimePoint t0) {
  for (const json& one : plans) {
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
