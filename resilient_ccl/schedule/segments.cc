#include "resilient_ccl/schedule/segments.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "resilient_ccl/schedule/layered_all_reduce.h"

namespace faultline::schedule {
namespace {

/// Of the time: what twice the segments must bring at least, where they cost nothing.
constexpr double kNegligibleGain = 0.01;

/// The time of an algorithm with k segments, without what does not depend on k.
class Pipeline {
 public:
  Pipeline(std::string_view algorithm, const ScheduleRequest& request, const MessageCost& message,
           PortModel ports)
      : algorithm_(algorithm), request_(request), message_(message), ports_(ports) {
    if (request_.bandwidths.size() == 0) {
      request_.bandwidths = std::vector<double>(static_cast<std::size_t>(request.ranks), 1.0);
    }
  }

  /// Nothing where segments are lanes.
  std::optional<double> time(double k) const {
    const double o = message_.perMessage;
    if (algorithm_ == "optcc") return shift(request_.bandwidths, 1, k);
    if (algorithm_ == "optcc_server") {
      return shift(nodeBandwidths(request_.bandwidths, request_.ranksPerNode),
                   request_.ranksPerNode, k);
    }
    if (algorithm_ == "optcc_r2") {
      // Macro steps of the ring of the others, one after the other, with two messages each way.
      const double n = request_.ranks - 1;
      const double load = std::max(2.0, 1 / slowest());
      const double moved = load / (k * n) + 2 * o;
      // On one-port ports the slack of the schedule hides a latency that is less than a step.
      const double step =
          ports_ == PortModel::kOnePort ? std::max(moved, message_.alpha) : moved + message_.alpha;
      return (k * n + 2 * n + 1) * step;
    }
    if (algorithm_ == "r2_allreduce" || algorithm_ == "r2_recursive") {
      // R2CCL: the part Y of the buffer that goes through the slow rank.
      const double p = request_.ranks, n = p - 1, r = slowest();
      const double y = (1 - r) * n, rest = r * p * (n - 1) / n;
      return y / (y + rest) / r * (1 + 1 / (k * (takesTurns(k) ? kHidden : 1))) + k * o;
    }
    if (algorithm_.starts_with("chain_")) {
      // A receive is granted one segment ahead: two segments per latency at most.
      const double hop = 1 / (k * slowest()) + o;
      return (k + request_.ranks - 2) * std::max(hop, (hop + message_.alpha) / 2);
    }
    return std::nullopt;
  }

 private:
  double slowest() const {
    const std::vector<double> all = request_.bandwidths.slower();
    return *std::min_element(all.begin(), all.end());
  }

  /// Whether a layer's rings run in turns: then most of the time to fill the pipelines is hidden
  /// behind the rings of the others (to a quarter, by the cost model).
  bool takesTurns(double k) const {
    const auto layers =
        ringLayers(request_.ranks, request_.elements, static_cast<int>(k),
                   request_.bandwidths.slower(), algorithm_ == std::string_view("r2_recursive"));
    return std::ranges::any_of(layers, [](const RingLayer& layer) { return layer.turns > 1; });
  }
  static constexpr double kHidden = 4;

  /// Cyclic shift (OptCC): k+1 cycles for k segments.
  double shift(const PortBandwidths& ports, double perPort, double k) const {
    const double load = lowerBound(ports, ports_);
    const std::vector<double> all = ports.slower();
    // A port that its own data fill owns no shard, and so has the messages of others' only.
    const bool owns = load * *std::min_element(all.begin(), all.end()) > 1 + kNothing;
    const double messages = (owns ? 2 : 1) * (static_cast<double>(ports.size()) - 1) * perPort;
    if (ports_ == PortModel::kOnePort) {
      // The cycles do not overlap (facts of schedule D: k+1 times the latency).
      const double steps = 2 * (static_cast<double>(ports.size()) - 1) * perPort;
      return load * (1 + 1 / k) + (k + 1) * (message_.alpha + steps * message_.perMessage);
    }
    return load * (1 + 1 / k) + k * messages * message_.perMessage;
  }
  static constexpr double kNothing = 1e-9;

  std::string_view algorithm_;
  ScheduleRequest request_;
  MessageCost message_;
  PortModel ports_;
};

}  // namespace

int bestSegments(std::string_view algorithm, const ScheduleRequest& request,
                 const MessageCost& message, int most, PortModel ports) {
  const Pipeline pipeline(algorithm, request, message, ports);
  std::vector<double> times;  // of 1, 2, 4 ... segments, until it gets worse
  for (int k = 1; k <= most; k *= 2) {
    const std::optional<double> time = pipeline.time(k);
    if (!time || (!times.empty() && *time >= times.back())) break;
    times.push_back(*time);
  }
  if (times.empty()) return 1;
  // Where messages cost nothing, more segments are always better, and soon not by much.
  const bool costly = message.alpha > 0 || message.perMessage > 0;
  const double enough = times.back() * (costly ? 1 : 1 + kNegligibleGain);
  const auto first = std::ranges::find_if(times, [&](double time) { return time <= enough; });
  return 1 << (first - times.begin());
}

}  // namespace faultline::schedule
