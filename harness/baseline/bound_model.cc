#include "harness/baseline/bound_model.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "resilient_ccl/schedule/bound.h"

namespace faultline::baseline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// When bucket `index` is ready, from the beginning of the iteration.
double readyAt(const IterationModel& model, int index) {
  const double before = model.computeMs * model.readyFrom;
  return before + (model.computeMs - before) * (index + 1) / model.buckets;
}

double leastSlowdown(std::span<const double> bandwidths) {
  if (bandwidths.size() < 2) return 1;
  if (*std::min_element(bandwidths.begin(), bandwidths.end()) <= 0) return kNever;
  return schedule::lowerBound(bandwidths, schedule::PortModel::kFluid) /
         schedule::faultFreeRingTime(static_cast<int>(bandwidths.size()));
}

/// The network of the replay: serves communication at the speed of each moment. Time only advances.
class Network {
 public:
  explicit Network(const JobModel& job)
      : rails_(job.rails),
        wireShare_(job.iteration.wireShare),
        tx_(static_cast<std::size_t>(job.nodes)),
        rx_(static_cast<std::size_t>(job.nodes)) {}

  void place(const RailDamage& damage, double iteration_begin) {
    const double begin = iteration_begin + damage.offsetMs;
    if (damage.durationMs > 0) pending_.push({begin, begin + damage.durationMs, &damage});
  }

  /// When `work`, measured in time on the healthy network and begun at `from`, is done.
  double finish(double from, double work) {
    double time = from;
    advanceTo(time);
    while (work > 0) {
      const double until = nextChange();
      const double end = time + work * slowdown_;
      if (end <= until) return end;
      work -= (until - time) / slowdown_;
      time = until;
      advanceTo(time);
    }
    return time;
  }

 private:
  struct Placed {
    double begin;
    double end;
    const RailDamage* damage;
  };
  struct LaterBegin {
    bool operator()(const Placed& a, const Placed& b) const { return a.begin > b.begin; }
  };

  double nextChange() const {
    double next = pending_.empty() ? kNever : pending_.top().begin;
    for (const Placed& placed : active_) next = std::min(next, placed.end);
    return next;
  }

  void advanceTo(double time) {
    bool changed = std::erase_if(active_, [&](const Placed& p) { return p.end <= time; }) > 0;
    for (; !pending_.empty() && pending_.top().begin <= time; pending_.pop()) {
      if (pending_.top().end <= time) continue;
      active_.push_back(pending_.top());
      changed = true;
    }
    if (changed) slowdown_ = currentSlowdown();
  }

  double currentSlowdown() {
    bandwidths(tx_, &RailDamage::lostTx);
    bandwidths(rx_, &RailDamage::lostRx);
    if (wireShare_ <= 0) return 1;
    return 1 + wireShare_ * (baseline::leastSlowdown(tx_, rx_) - 1);
  }

  /// Shares of the nodes' bandwidths that are left in one direction.
  void bandwidths(std::vector<double>& shares, double RailDamage::*lost) const {
    std::vector<double> lost_of_rail(shares.size() * static_cast<std::size_t>(rails_), 0.0);
    for (const Placed& placed : active_) {
      const RailDamage& damage = *placed.damage;
      double& entry = lost_of_rail.at(static_cast<std::size_t>(damage.node * rails_ + damage.rail));
      entry = std::max(entry, std::clamp(damage.*lost, 0.0, 1.0));
    }
    for (std::size_t node = 0; node < shares.size(); ++node) {
      double left = 0;
      for (int rail = 0; rail < rails_; ++rail) {
        left +=
            1 -
            lost_of_rail[node * static_cast<std::size_t>(rails_) + static_cast<std::size_t>(rail)];
      }
      shares[node] = left / rails_;
    }
  }

  int rails_;
  double wireShare_;
  std::vector<double> tx_;
  std::vector<double> rx_;
  std::priority_queue<Placed, std::vector<Placed>, LaterBegin> pending_;
  std::vector<Placed> active_;
  double slowdown_ = 1;
};

/// Time of all iterations, without the gaps between them.
double replay(const JobModel& job, std::span<const RailDamage> damages) {
  Network network(job);
  const IterationModel& model = job.iteration;
  std::vector<RailDamage> due(damages.begin(), damages.end());
  std::stable_sort(due.begin(), due.end(), [](const RailDamage& a, const RailDamage& b) {
    return a.iteration < b.iteration;
  });
  auto next = due.begin();
  double total = 0;
  double begin = 0;
  for (int index = 0; index < job.iterations; ++index) {
    for (; next != due.end() && next->iteration <= index; ++next) network.place(*next, begin);
    double done = begin;
    for (int bucket = 0; bucket < model.buckets; ++bucket) {
      done = network.finish(std::max(done, begin + readyAt(model, bucket)), model.bucketMs);
    }
    const double end = std::max(done, begin + model.computeMs);
    if (!std::isfinite(end)) return kNever;
    total += end - begin;
    begin = end + job.gapMs;
  }
  return total;
}

}  // namespace

IterationModel fitIteration(double computeMs, int buckets, double iterationMs, double readyFrom) {
  IterationModel model{
      .computeMs = computeMs, .readyFrom = readyFrom, .buckets = buckets, .bucketMs = 0};
  // The time of an iteration is the maximum over k of readyAt(k) + (buckets - k) * bucketMs: from
  // bucket k on, the network is busy without a break. The smallest solution is the one that fits.
  double bucket = kNever;
  for (int k = 0; k < buckets; ++k) {
    bucket = std::min(bucket, (iterationMs - readyAt(model, k)) / (buckets - k));
  }
  model.bucketMs = std::isfinite(bucket) ? std::max(0.0, bucket) : 0;
  return model;
}

double iterationTime(const IterationModel& model) {
  return replay({.nodes = 1, .rails = 1, .iterations = 1, .iteration = model, .gapMs = 0}, {});
}

double leastSlowdown(std::span<const double> tx, std::span<const double> rx) {
  return std::max(leastSlowdown(tx), leastSlowdown(rx));
}

std::optional<double> leastExtraMs(const JobModel& job, std::span<const RailDamage> damages) {
  const double faulted = replay(job, damages);
  if (!std::isfinite(faulted)) return std::nullopt;
  return faulted - replay(job, {});
}

}  // namespace faultline::baseline
