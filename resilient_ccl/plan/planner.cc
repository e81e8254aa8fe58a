#include "resilient_ccl/plan/planner.h"

#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/segments.h"

namespace faultline::plan {
namespace {

constexpr std::string_view kRing = "ring";
/// More segments only cost messages.
constexpr int kMostSegments = 128;
/// Messages of fewer bytes, half a chunk of the channel, are all cost and no overlap.
constexpr Bytes kLeastMessage = 32 << 10;
/// A saving below this is noise of the model: the plan that needs less is kept.
constexpr double kWorthIt = 0.995;
/// One that takes so much longer than the best so far is not looked at any further: another number
/// of segments does not win that.
constexpr double kHopeless = 1.5;

std::uint64_t hashOf(const PlanRequest& request, const Plan& plan) {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t word) { hash = Random::mix(hash + word + 1); };
  add(request.health.size());
  for (const Health& port : request.health) add(std::uint64_t{port.send} << 16 | port.receive);
  add(static_cast<std::uint64_t>(request.elements));
  add(static_cast<std::uint64_t>(request.elementSize));
  for (const char letter : plan.algorithm) add(static_cast<unsigned char>(letter));
  add(static_cast<std::uint64_t>(plan.segments));
  add(static_cast<std::uint64_t>(request.ranksPerNode));
  return hash;
}

/// Seconds of the cheapest number of segments of one algorithm. Begins with the one that its closed
/// form says, and doubles or halves it as long as that helps: fewer than the best cost time to fill
/// the pipeline, more cost messages.
struct Candidate {
  int segments = 1;
  double seconds = std::numeric_limits<double>::infinity();
};

class Search {
 public:
  Search(std::string_view algorithm, schedule::ScheduleRequest request, Bytes bytes,
         const LinkModel& model)
      : algorithm_(algorithm), request_(std::move(request)) {
    unit_ = static_cast<double>(bytes) / model.bandwidth;  // S/B in seconds
    cost_ = {.alpha = model.latency / unit_,
             .ranksPerNode = request_.ranksPerNode,
             .perMessage = model.perMessage / unit_};
    const Bytes most = bytes / (kLeastMessage * request_.ranks);
    while (most_ < kMostSegments && 2 * most_ <= most) most_ *= 2;
  }

  /// `bestSoFar`: seconds, of other algorithms.
  Result<Candidate> cheapest(double bestSoFar = std::numeric_limits<double>::infinity()) {
    const int first = schedule::bestSegments(
        algorithm_, request_, {.alpha = cost_.alpha, .perMessage = cost_.perMessage}, most_);
    ASSIGN_OR_RETURN(Candidate best, play(first));
    if (best.seconds > bestSoFar * kHopeless) return best;
    bool more = false;
    for (int segments = 2 * first; segments <= most_; segments *= 2) {
      ASSIGN_OR_RETURN(const Candidate next, play(segments));
      if (next.seconds >= best.seconds * kWorthIt) break;
      best = next;
      more = true;
    }
    for (int segments = first / 2; segments >= 1 && !more; segments /= 2) {
      ASSIGN_OR_RETURN(const Candidate next, play(segments));
      // What needs less, and is as good, is better.
      if (next.seconds * kWorthIt > best.seconds) break;
      best = next;
    }
    return best;
  }

 private:
  /// Where it has too many operations to be played it takes for ever.
  Result<Candidate> play(int segments) {
    request_.segments = segments;
    ASSIGN_OR_RETURN(const auto schedule, schedule::makeSchedule(algorithm_, request_));
    const auto cost = schedule::costOf(*schedule, request_.bandwidths, cost_);
    if (!cost.ok() && cost.status().code() == Code::kUnsupported) return Candidate{segments};
    RETURN_IF_ERROR(cost.status());
    return Candidate{segments, cost->time * unit_};
  }

  std::string_view algorithm_;
  schedule::ScheduleRequest request_;
  double unit_ = 1;
  schedule::CostOptions cost_;
  int most_ = 1;
};

}  // namespace

Result<Plan> choosePlan(const PlanRequest& request, const LinkModel& model) {
  if (!(model.bandwidth > 0 && model.latency >= 0 && model.perMessage >= 0)) {
    return errorf(Code::kInvalidArgument,
                  "a plan needs a bandwidth above 0 ({}), and a latency ({}) and a cost per "
                  "message ({}) that are not negative",
                  model.bandwidth, model.latency, model.perMessage);
  }
  if (request.health.empty() || request.elements < 0 || request.elementSize < 1 ||
      request.ranksPerNode < 1 || std::ssize(request.health) % request.ranksPerNode != 0) {
    return errorf(Code::kInvalidArgument,
                  "{} elements of {} bytes over {} ranks, {} to a node, cannot be planned",
                  request.elements, request.elementSize, request.health.size(),
                  request.ranksPerNode);
  }
  schedule::ScheduleRequest wanted{.ranks = static_cast<int>(request.health.size()),
                                   .elements = request.elements,
                                   .ranksPerNode = request.ranksPerNode};
  for (const Health& port : request.health) {
    wanted.bandwidths.send.push_back(fraction(port.send));
    wanted.bandwidths.receive.push_back(fraction(port.receive));
  }
  const Bytes bytes = request.elements * request.elementSize;
  Plan plan;
  if (wanted.ranks > 1 && bytes > 0) {
    ASSIGN_OR_RETURN(Candidate best, Search(kRing, wanted, bytes, model).cheapest());
    plan.segments = best.segments;
    plan.ring = best.seconds;
    for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
      if (algorithm.name == kRing || !request.algorithm.empty()) continue;
      const auto candidate = Search(algorithm.name, wanted, bytes, model).cheapest(best.seconds);
      // One that cannot serve these ranks, or is no AllReduce, says so.
      if (!candidate.ok() || candidate->seconds >= best.seconds * kWorthIt) continue;
      best = *candidate;
      plan.algorithm = algorithm.name;
      plan.segments = best.segments;
    }
    if (!request.algorithm.empty()) {
      ASSIGN_OR_RETURN(best, Search(request.algorithm, wanted, bytes, model).cheapest());
      plan.algorithm = request.algorithm;
      plan.segments = best.segments;
    }
    plan.predicted = best.seconds;
    const schedule::PortBandwidths ports =
        schedule::nodeBandwidths(wanted.bandwidths, request.ranksPerNode);
    if (ports.size() > 1) {
      plan.bound = schedule::lowerBound(ports, schedule::PortModel::kFluid) *
                   static_cast<double>(bytes) / model.bandwidth;
    }
  }
  plan.hash = hashOf(request, plan);
  return plan;
}

}  // namespace faultline::plan
