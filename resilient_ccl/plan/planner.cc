#include "resilient_ccl/plan/planner.h"

#include <limits>
#include <optional>
#include <string_view>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"

namespace faultline::plan {
namespace {

constexpr std::string_view kRing = "ring";
/// More segments only cost messages.
constexpr int kMostSegments = 128;
/// Messages of fewer bytes are all cost and no overlap.
constexpr Bytes kLeastMessage = 4 << 10;
/// A saving below this is noise of the model: the plan that needs less is kept.
constexpr double kWorthIt = 0.995;

std::uint64_t hashOf(const PlanRequest& request, const Plan& plan) {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t word) { hash = Random::mix(hash + word + 1); };
  add(request.health.size());
  for (const Health& port : request.health) add(std::uint64_t{port.send} << 16 | port.receive);
  add(static_cast<std::uint64_t>(request.elements));
  add(static_cast<std::uint64_t>(request.elementSize));
  for (const char letter : plan.algorithm) add(static_cast<unsigned char>(letter));
  add(static_cast<std::uint64_t>(plan.segments));
  return hash;
}

/// Seconds of the cheapest number of segments of one algorithm. Doubled as long as that helps:
/// fewer than the best cost time to fill the pipeline, more cost messages.
struct Candidate {
  int segments = 1;
  double seconds = std::numeric_limits<double>::infinity();
};

Result<Candidate> cheapest(std::string_view algorithm, schedule::ScheduleRequest request,
                           Bytes bytes, const LinkModel& model) {
  const double unit = static_cast<double>(bytes) / model.bandwidth;  // S/B in seconds
  Candidate best;
  for (int segments = 1; segments <= kMostSegments; segments *= 2) {
    if (segments > 1 && bytes / (Bytes{segments} * request.ranks) < kLeastMessage) break;
    request.segments = segments;
    ASSIGN_OR_RETURN(const auto schedule, schedule::makeSchedule(algorithm, request));
    const auto cost =
        schedule::costOf(*schedule, request.bandwidths,
                         {.alpha = model.latency / unit, .perMessage = model.perMessage / unit});
    if (!cost.ok() && cost.status().code() == Code::kUnsupported) break;  // too many to play
    RETURN_IF_ERROR(cost.status());
    const double seconds = cost->time * unit;
    if (seconds > best.seconds) break;
    if (seconds < best.seconds * kWorthIt) best = {segments, seconds};
  }
  return best;
}

}  // namespace

Result<Plan> choosePlan(const PlanRequest& request, const LinkModel& model) {
  if (!(model.bandwidth > 0 && model.latency >= 0 && model.perMessage >= 0)) {
    return errorf(Code::kInvalidArgument,
                  "a plan needs a bandwidth above 0 ({}), and a latency ({}) and a cost per "
                  "message ({}) that are not negative",
                  model.bandwidth, model.latency, model.perMessage);
  }
  if (request.health.empty() || request.elements < 0 || request.elementSize < 1) {
    return errorf(Code::kInvalidArgument, "{} elements of {} bytes over {} ranks cannot be planned",
                  request.elements, request.elementSize, request.health.size());
  }
  schedule::ScheduleRequest wanted{.ranks = static_cast<int>(request.health.size()),
                                   .elements = request.elements};
  for (const Health& port : request.health) {
    wanted.bandwidths.send.push_back(fraction(port.send));
    wanted.bandwidths.receive.push_back(fraction(port.receive));
  }
  const Bytes bytes = request.elements * request.elementSize;
  Plan plan;
  if (wanted.ranks > 1 && bytes > 0) {
    ASSIGN_OR_RETURN(Candidate best, cheapest(kRing, wanted, bytes, model));
    plan.segments = best.segments;
    plan.ring = best.seconds;
    for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
      if (algorithm.name == kRing) continue;
      const auto candidate = cheapest(algorithm.name, wanted, bytes, model);
      // One that cannot serve these ranks, or is no AllReduce, says so.
      if (!candidate.ok() || candidate->seconds >= best.seconds * kWorthIt) continue;
      best = *candidate;
      plan.algorithm = algorithm.name;
      plan.segments = best.segments;
    }
    plan.predicted = best.seconds;
    plan.bound = schedule::lowerBound(wanted.bandwidths, schedule::PortModel::kFluid) *
                 static_cast<double>(bytes) / model.bandwidth;
  }
  plan.hash = hashOf(request, plan);
  return plan;
}

}  // namespace faultline::plan
