#include "resilient_ccl/plan/planner.h"

#include <algorithm>
#include <cmath>
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
constexpr std::string_view kAmongNodes = "optcc_server";
/// More segments only cost messages, but for queues that would not hold longer ones (below).
constexpr int kMostSegments = 128;
constexpr int kMostSegmentsForQueues = 1024;
/// Messages of fewer bytes, half a chunk of the channel, are all cost and no overlap.
constexpr Bytes kLeastMessage = 32 << 10;
/// In messages of fewer bytes than a page twice as many segments can only cost.
constexpr Bytes kLeastOfTwice = 4 << 10;
/// Seconds of the model that differ by less are those of the same messages.
constexpr double kSameTime = 1e-9;
/// Where each rank sends to all others, ranks that drift apart meet at the same receiver, and one
/// of them waits for as long as a message takes. Where there are several rings their messages meet
/// at each rank, and what is long overflows its queue. The model has neither; longer messages than
/// this cost less in it, and more in reality: with 8 ranks 1 MiB each takes 1.4 to 1.6 times the
/// bound, and 512 KiB 1.08 times r2_allreduce's formula, where 64 to 128 KiB take 1.03.
constexpr Bytes kMostMessage = 64 << 10;
/// Several of them are on their way to each rank at a time, of contributions and of results
/// (schedule::allReduceWindow), and its ports queue what arrives together: of a message over
/// several rails each its part. The slowest should hold no more than it carries in kQueueTime, or
/// kLeastQueue. (Measured, docs/sweep.md: among 8 ranks at 200 Mbit 64 MiB in 128 segments takes
/// 1.05 of the bound, 1.15 over four rails, in 256 or 512 1.01 and 1.03. What is shorter than
/// kLeastMessage leaves rails idle; that is worse only as long as a port holds kFullQueue: among 16
/// ranks 32 MiB in 64 segments over four rails takes 1.29, in 128 1.03. Below the least part of a
/// message that a rail is given, kLeastPart, it costs only messages: among 32 ranks 8 KiB
/// take 1.06, 4 KiB 1.08.)
constexpr int kKindsGranted = 2;
constexpr double kQueueTime = 0.005;
constexpr Bytes kLeastQueue = 128 << 10;
constexpr Bytes kFullQueue = 2 * kLeastQueue;
constexpr Bytes kLeastPart = 8 << 10;
/// What of optcc is played, a second or two: the plan should be there for the next call or the one
/// after it (32 ranks, 128 segments, one port at 3/4 or 1/2: played in 7.4 and 1.3 s; from steps at
/// once, and 1.00 and 1.04 of that). Steps leave out what windows cost, up to 2.5 %, so twice the
/// segments seem that much better where they are the first ones that are not played.
constexpr std::int64_t kMostPlayed = std::int64_t{1} << 17;
/// A saving below this is noise of the model: the plan that needs less is kept.
constexpr double kWorthIt = 0.995;
/// Relays send to all ranks instead of one: what they must win, by the model, to be worth that. In
/// bandwidth alone, too: who has all of it needs no relays, however low the latency of one step is.
constexpr double kRelaysWorthIt = 0.95;
/// What the two rings of r2_allreduce lose on ports that they share: fair ports give each of them
/// half, so that the slow rank waits (docs/schedules.md). The model has no such ports. Measured
/// over the model (docs/sweep.md): 1.06 to 1.18 with a quarter gone, 1.08 to 1.09 among eight at
/// half, and 0.97 to 1.02 where the fast ports have slack.
constexpr double kRingsShareAPort = 1.1;
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
  add(static_cast<std::uint64_t>(request.collective));
  add(static_cast<std::uint64_t>(request.root));
  return hash;
}

/// Finds the cheapest number of segments of one algorithm. Begins with the one that its closed form
/// says, and doubles or halves it as long as that helps: fewer than the best cost time to fill the
/// pipeline, more cost messages.
class Search {
 public:
  Search(std::string_view algorithm, schedule::ScheduleRequest request, Bytes bytes, int rails,
         const LinkModel& model)
      : algorithm_(algorithm),
        senders_(schedule::sendersOf(algorithm)),
        request_(std::move(request)) {
    unit_ = static_cast<double>(bytes) / model.bandwidth;  // S/B in seconds
    mayDouble_ = bytes / (kLeastOfTwice * request_.ranks);
    cost_ = {.alpha = model.latency / unit_,
             .ranksPerNode = request_.ranksPerNode,
             .perMessage = model.perMessage / unit_,
             .mostPlayed = kMostPlayed};
    const Bytes most = bytes / (kLeastMessage * request_.ranks);
    while (most_ < kMostSegments && 2 * most_ <= most) most_ *= 2;
    const auto isLonger = [&](Bytes message) { return bytes > message * request_.ranks * least_; };
    while (senders_ != schedule::Senders::kFew && least_ < kMostSegments &&
           isLonger(kMostMessage)) {
      least_ *= 2;
    }
    if (senders_ == schedule::Senders::kAll) shortenForQueues(bytes, rails, model);
    most_ = std::max(most_, least_);
  }

  /// `bestSoFar`: seconds, of other algorithms.
  Result<Candidate> cheapest(double bestSoFar = std::numeric_limits<double>::infinity()) {
    const int first = std::max(
        least_,
        schedule::bestSegments(algorithm_, request_,
                               {.alpha = cost_.alpha, .perMessage = cost_.perMessage}, most_));
    ASSIGN_OR_RETURN(Candidate best, play(first));
    if (best.predicted > bestSoFar * kHopeless) return best;
    bool more = false;
    for (int segments = 2 * first; segments <= most_; segments *= 2) {
      ASSIGN_OR_RETURN(const Candidate next, play(segments));
      if (next.predicted >= best.predicted * kWorthIt) break;
      best = next;
      more = true;
    }
    for (int segments = first / 2; segments >= least_ && !more; segments /= 2) {
      ASSIGN_OR_RETURN(const Candidate next, play(segments));
      // What needs less, and is as good, is better.
      if (next.predicted * kWorthIt > best.predicted) break;
      best = next;
    }
    return best;
  }

  /// Another number than the cheapest one, in case that the model is wrong about it.
  std::optional<Candidate> other(int cheapest) {
    if (2 * cheapest > std::min<Bytes>(mayDouble_, kMostSegments)) return std::nullopt;
    auto twice = play(2 * cheapest);
    if (!twice.ok()) return std::nullopt;
    return *twice;
  }

  /// Where it has too many operations to be played it takes for ever.
  Result<Candidate> play(int segments) {
    request_.segments = segments;
    Candidate played{.algorithm = std::string(algorithm_),
                     .segments = segments,
                     .predicted = std::numeric_limits<double>::infinity(),
                     .correction = senders_ == schedule::Senders::kRings ? kRingsShareAPort : 1};
    ASSIGN_OR_RETURN(const auto schedule, schedule::makeSchedule(algorithm_, request_));
    const auto cost = schedule::costOf(*schedule, request_.bandwidths, cost_);
    if (!cost.ok() && cost.status().code() == Code::kUnsupported) return played;
    RETURN_IF_ERROR(cost.status());
    played.predicted = cost->time * unit_;
    return played;
  }

 private:
  /// Those that are granted at a time fit into what a port may hold back.
  void shortenForQueues(Bytes bytes, int rails, const LinkModel& model) {
    const int granted = kKindsGranted * schedule::allReduceWindow(
                                            rails, request_.ranks / request_.ranksPerNode - 1);
    Bytes queued = queueOf(model.bandwidth / rails) * rails / granted;
    // Longer ones overflow any port.
    const Bytes most = kFullQueue * rails / granted;
    if (rails > 1) queued = std::max({queued, kLeastPart, std::min(kLeastMessage, most)});
    // Twice as many only where their messages are not too short for several rails.
    const Bytes least = most >= kLeastMessage ? kLeastMessage : kLeastPart;
    const Bytes shortest = rails > 1 ? least : 0;
    while (least_ < kMostSegmentsForQueues && bytes > queued * request_.ranks * least_ &&
           bytes >= 2 * shortest * request_.ranks * least_) {
      least_ *= 2;
    }
  }

  /// What the slowest port may hold back.
  Bytes queueOf(double bandwidth) const {
    const std::vector<double>& receive = request_.bandwidths.receive;
    const double slowest = receive.empty() ? 1 : std::ranges::min(receive);
    return std::max(kLeastQueue, static_cast<Bytes>(kQueueTime * slowest * bandwidth));
  }

  std::string_view algorithm_;
  schedule::Senders senders_;
  schedule::ScheduleRequest request_;
  double unit_ = 1;
  schedule::CostOptions cost_;
  int least_ = 1, most_ = 1;
  Bytes mayDouble_ = 0;
};

/// Of all algorithms, `ring` among them; the cheapest first, which is the ring where no other one
/// is worth it.
std::vector<Candidate> candidatesOf(const schedule::ScheduleRequest& wanted, Bytes bytes, int rails,
                                    const LinkModel& model, const Candidate& ring) {
  std::vector<Candidate> all;
  Candidate best = ring;
  const auto add = [&](const Candidate& one) {
    const bool known = std::ranges::any_of(all, [&](const Candidate& other) {
      return other.segments == one.segments &&
             std::abs(other.predicted - one.predicted) <= kSameTime * one.predicted;
    });
    if (!known && std::isfinite(one.predicted)) all.push_back(one);
  };
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    // Among nodes of one rank it is optcc.
    if (algorithm.name == kAmongNodes && wanted.ranksPerNode == 1) continue;
    Search search(algorithm.name, wanted, bytes, rails, model);
    const auto found = algorithm.name == kRing ? ring : search.cheapest(best.predicted);
    // One that cannot serve these ranks says so.
    if (!found.ok()) continue;
    add(*found);
    if (found->expected() < best.expected() * kWorthIt) best = *found;
    if (found->predicted > best.predicted * kHopeless) continue;
    if (const auto other = search.other(found->segments)) add(*other);
  }
  std::ranges::stable_sort(all, {}, &Candidate::expected);
  const auto chosen = std::ranges::find_if(all, [&](const Candidate& one) {
    return one.algorithm == best.algorithm && one.segments == best.segments;
  });
  if (chosen == all.end()) {
    all.insert(all.begin(), best);
  } else {
    std::rotate(all.begin(), chosen, chosen + 1);
  }
  return all;
}

/// The ports of the nodes, that of the root (of a Broadcast or Reduce) first.
schedule::PortBandwidths rootFirst(const schedule::ScheduleRequest& wanted) {
  schedule::PortBandwidths ports = schedule::nodeBandwidths(wanted.bandwidths, wanted.ranksPerNode);
  const auto root = static_cast<std::size_t>(wanted.root / wanted.ranksPerNode);
  std::swap(ports.send.front(), ports.send[root]);
  std::swap(ports.receive.front(), ports.receive[root]);
  return ports;
}

/// The first algorithm of another collective than AllReduce, or one that is worth it.
Result<Plan> planOther(const PlanRequest& request, const schedule::ScheduleRequest& wanted,
                       Bytes bytes, const LinkModel& model) {
  const std::string_view first = schedule::algorithmOf(request.collective).name;
  Search search(first, wanted, bytes, request.rails, model);
  Plan plan;
  plan.segments = std::max(1, request.segments);
  // The model passes on whole segments.
  constexpr std::int64_t kMostSlices = 64;
  const auto slices = static_cast<int>(std::min(bytes / request.slice, kMostSlices));
  const bool chain = first.starts_with("chain_");
  ASSIGN_OR_RETURN(const Candidate usual,
                   search.play(chain ? std::max(plan.segments, slices) : plan.segments));
  plan.algorithm = first;
  plan.predicted = plan.ring = usual.predicted;
  const LinkModel wire{.latency = 0, .perMessage = 0, .bandwidth = model.bandwidth};
  const auto moved = [&](const Candidate& one) {
    const auto played =
        Search(one.algorithm, wanted, bytes, request.rails, wire).play(one.segments);
    return played.ok() ? played->predicted : std::numeric_limits<double>::infinity();
  };
  // Where nobody is between two ranks there is nobody to relay.
  for (const schedule::Algorithm& other : schedule::allAlgorithms()) {
    if (other.collective != request.collective || other.name == first || wanted.ranks < 3) continue;
    const auto found =
        Search(other.name, wanted, bytes, request.rails, model).cheapest(plan.predicted);
    if (!found.ok() || found->predicted >= plan.predicted * kRelaysWorthIt ||
        moved(*found) >= moved(usual) * kRelaysWorthIt) {
      continue;
    }
    plan.algorithm = found->algorithm;
    plan.segments = found->segments;
    plan.predicted = found->predicted;
  }
  return plan;
}

}  // namespace

bool plannable(schedule::Collective collective) {
  using enum schedule::Collective;
  return collective != kAllToAll && collective != kSendRecv;
}

Result<Plan> choosePlan(const PlanRequest& request, const LinkModel& model) {
  if (!(model.bandwidth > 0 && model.latency >= 0 && model.perMessage >= 0)) {
    return errorf(Code::kInvalidArgument,
                  "a plan needs a bandwidth above 0 ({}), and a latency ({}) and a cost per "
                  "message ({}) that are not negative",
                  model.bandwidth, model.latency, model.perMessage);
  }
  if (request.health.empty() || request.elements < 0 || request.elementSize < 1 ||
      request.segments < 0 || request.ranksPerNode < 1 ||
      std::ssize(request.health) % request.ranksPerNode != 0) {
    return errorf(Code::kInvalidArgument,
                  "{} elements of {} bytes over {} ranks, {} to a node, cannot be planned",
                  request.elements, request.elementSize, request.health.size(),
                  request.ranksPerNode);
  }
  if (!plannable(request.collective) || request.root < 0 ||
      request.root >= std::ssize(request.health) || request.slice < 1) {
    return errorf(Code::kInvalidArgument,
                  "{} with root {} of {} ranks, in slices of {} bytes, cannot be planned",
                  schedule::collectiveName(request.collective), request.root, request.health.size(),
                  request.slice);
  }
  schedule::ScheduleRequest wanted{.ranks = static_cast<int>(request.health.size()),
                                   .elements = request.elements,
                                   .root = request.root,
                                   .ranksPerNode = request.ranksPerNode};
  for (const Health& port : request.health) {
    wanted.bandwidths.send.push_back(fraction(port.send));
    wanted.bandwidths.receive.push_back(fraction(port.receive));
  }
  const Bytes bytes = request.elements * request.elementSize;
  const bool reducesAll = request.collective == schedule::Collective::kAllReduce;
  Plan plan;
  if (!reducesAll) plan.algorithm = schedule::algorithmOf(request.collective).name;
  if (!reducesAll && wanted.ranks > 1 && bytes > 0) {
    ASSIGN_OR_RETURN(plan, planOther(request, wanted, bytes, model));
  }
  if (reducesAll && wanted.ranks > 1 && bytes > 0) {
    ASSIGN_OR_RETURN(const Candidate ring,
                     Search(kRing, wanted, bytes, request.rails, model).cheapest());
    plan.ring = ring.predicted;
    Candidate best = ring;
    if (request.algorithm.empty()) {
      plan.candidates = candidatesOf(wanted, bytes, request.rails, model, ring);
      best = plan.candidates.front();
    } else {
      Search search(request.algorithm, wanted, bytes, request.rails, model);
      ASSIGN_OR_RETURN(best,
                       request.segments > 0 ? search.play(request.segments) : search.cheapest());
      const bool equal = std::ranges::all_of(
          request.health, [&](const Health& port) { return port == request.health.front(); });
      if (request.ringWhereEqual && equal && ring.predicted < best.predicted) best = ring;
    }
    plan.algorithm = best.algorithm;
    plan.segments = best.segments;
    plan.predicted = best.predicted;
  }
  const schedule::PortBandwidths ports = rootFirst(wanted);
  if (ports.size() > 1) {
    plan.bound = schedule::lowerBound(request.collective, ports, schedule::PortModel::kFluid) *
                 static_cast<double>(bytes) / model.bandwidth;
  }
  plan.hash = hashOf(request, plan);
  return plan;
}

}  // namespace faultline::plan
