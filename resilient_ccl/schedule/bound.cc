#include "resilient_ccl/schedule/bound.h"

#include <algorithm>
#include <numeric>

namespace faultline::schedule {

double faultFreeRingTime(int ranks) { return 2.0 * (ranks - 1) / ranks; }

double faultFreeTime(Collective collective, int ranks, int ranksPerNode) {
  const int nodes = ranks / ranksPerNode;
  if (nodes < 2) return 0;
  switch (collective) {
    case Collective::kAllReduce:
      return faultFreeRingTime(ranks);
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return faultFreeRingTime(ranks) / 2;
    case Collective::kAllToAll:
      return ranksPerNode * faultFreeRingTime(nodes) / 2;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kSendRecv:
      return 1;
  }
  return 0;
}

namespace {

/// What a rank has to move one way at least, and all ranks together.
struct Load {
  double root = 0;
  double other = 0;
  double all = 0;
};

double leastTime(const std::vector<double>& bandwidths, const Load& load) {
  double slowest = load.root / bandwidths.front();
  double total = bandwidths.front();
  for (std::size_t rank = 1; rank < bandwidths.size(); ++rank) {
    slowest = std::max(slowest, load.other / bandwidths[rank]);
    total += bandwidths[rank];
  }
  // A root that has nothing to move this way does not help the others.
  if (load.root == 0) total -= bandwidths.front();
  return std::max(slowest, load.all / total);
}

}  // namespace

double lowerBound(Collective collective, const PortBandwidths& bandwidths, PortModel model,
                  int ranksPerNode) {
  if (bandwidths.size() < 2) return 0;
  const auto p = static_cast<double>(bandwidths.size());
  const auto most = [&](const Load& send, const Load& receive) {
    return std::max(leastTime(bandwidths.send, send), leastTime(bandwidths.receive, receive));
  };
  const double share = (p - 1) / p;
  switch (collective) {
    case Collective::kAllReduce:
      return lowerBound(bandwidths, model);
    case Collective::kReduceScatter:
      return most({share, share, p - 1}, {1 / p, 1 / p, p - 1});
    case Collective::kAllGather:
      return most({1 / p, 1 / p, p - 1}, {share, share, p - 1});
    case Collective::kBroadcast:
      // Whoever passes on may be anybody; only the root's data has to leave it.
      return std::max(leastTime(bandwidths.send, {1, 0, p - 1}),
                      leastTime(bandwidths.receive, {0, 1, p - 1}));
    case Collective::kReduce:
      return std::max(leastTime(bandwidths.send, {0, 1, p - 1}),
                      leastTime(bandwidths.receive, {1, 0, p - 1}));
    case Collective::kAllToAll:
      return ranksPerNode * most({share, share, p - 1}, {share, share, p - 1});
    case Collective::kSendRecv:
      return most({1, 1, p}, {1, 1, p});
  }
  return 0;
}

double lowerBound(const PortBandwidths& bandwidths, PortModel model) {
  const auto p = static_cast<double>(bandwidths.size());
  if (bandwidths.size() < 2) return 0;
  double bound = 0;
  for (const std::vector<double>* side : {&bandwidths.send, &bandwidths.receive}) {
    const double slowest = *std::min_element(side->begin(), side->end());
    const double total = std::accumulate(side->begin(), side->end(), 0.0);
    bound = std::max({bound, 1 / slowest, 2 * (p - 1) / total});
  }
  if (model == PortModel::kFluid) return bound;
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    // What the straggler sends in x >= 1 occupies its partners for x(1/r - 1) beyond the data, and
    // spares the others x of 2(p-1) transfers. Both ways: (p-1) 2T >= 4(p-1) + sum (1/r - 2) x,
    // where x is best 1 for r <= 1/2, and r T above.
    double work = 4 * (p - 1);
    double ports = 2 * (p - 1);
    for (const double r : {bandwidths.send[rank], bandwidths.receive[rank]}) {
      if (r <= 0.5) {
        work += 1 / r - 2;
      } else {
        ports += 2 * r - 1;
      }
    }
    // A healthy rank says 4(p-1) / (2(p-1) + 2), the fault-free time.
    bound = std::max(bound, work / ports);
  }
  return bound;
}

}  // namespace faultline::schedule
