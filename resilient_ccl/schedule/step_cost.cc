#include "resilient_ccl/schedule/step_cost.h"

#include <algorithm>

#include "resilient_ccl/schedule/index.h"

namespace faultline::schedule {
namespace {

class StepPlayer {
 public:
  StepPlayer(const StepView& steps, std::int64_t elements, const PortBandwidths& bandwidths,
             const CostOptions& options)
      : steps_(steps),
        unit_(1.0 / static_cast<double>(elements)),
        options_(options),
        ranks_(bandwidths.size()),
        counts_(ranks_),
        contributions_(ranks_),
        results_(ranks_),
        sent_(ranks_, 0),
        received_(ranks_, 0) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      sendCost_.push_back(1 / bandwidths.send[rank]);
      receiveCost_.push_back(1 / bandwidths.receive[rank]);
    }
  }

  Cost play() {
    Cost cost;
    std::vector<double> sendFree(ranks_, 0), receiveFree(ranks_, 0);
    std::vector<double> finished(ranks_, 0), ready(ranks_, 0);
    for (std::int64_t cycle = 0; cycle < steps_.cycles(); ++cycle) {
      load(cycle, cost);
      if (options_.portModel == PortModel::kFluid) {
        cost.time += freelySharedCycle();
        continue;
      }
      std::fill(ready.begin(), ready.end(), 0.0);
      for (std::size_t shift = 1; shift < ranks_; ++shift) {
        // Rank i to i + shift, first without and then with wrapping around.
        const std::size_t unwrapped = ranks_ - shift;
        contribute(0, shift, unwrapped, sendFree, receiveFree, ready);
        contribute(unwrapped, 0, shift, sendFree, receiveFree, ready);
        spread(0, shift, unwrapped, sendFree, receiveFree, finished);
        spread(unwrapped, 0, shift, sendFree, receiveFree, finished);
      }
      finished.swap(ready);
    }
    if (options_.portModel == PortModel::kOnePort) {
      cost.time = *std::max_element(receiveFree.begin(), receiveFree.end());
      if (cost.time > 0) cost.time += options_.alpha;
    }
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      cost.messagesPerRankMax = std::max({cost.messagesPerRankMax, sent_[rank], received_[rank]});
    }
    return cost;
  }

 private:
  /// Reads the sizes of a cycle and counts its messages.
  void load(std::int64_t cycle, Cost& cost) {
    const auto peers = static_cast<std::int64_t>(ranks_) - 1;
    std::int64_t contributors = 0, sources = 0;
    steps_.contributions(cycle, counts_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      contributions_[rank] = static_cast<double>(counts_[rank]) * unit_;
      if (counts_[rank] == 0) continue;
      ++contributors;
      received_[rank] += peers;
      --sent_[rank];  // a rank does not send to itself
    }
    steps_.results(cycle, counts_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      results_[rank] = static_cast<double>(counts_[rank]) * unit_;
      if (counts_[rank] == 0) continue;
      ++sources;
      sent_[rank] += peers;
      --received_[rank];
    }
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      sent_[rank] += contributors;
      received_[rank] += sources;
    }
    cost.depth = std::max(cost.depth, (contributors > 0 ? 1 : 0) + (sources > 0 ? 1 : 0));
  }

  /// Contributions of the ranks [from, from + count) to the ranks from `to` on.
  void contribute(std::size_t from, std::size_t to, std::size_t count,
                  std::vector<double>& sendFree, std::vector<double>& receiveFree,
                  std::vector<double>& ready) const {
    for (std::size_t i = 0; i < count; ++i) {
      const double size = contributions_[to + i];
      if (size == 0) continue;
      const double begin = std::max(sendFree[from + i], receiveFree[to + i]);
      const double end =
          begin + options_.perMessage + size * std::max(sendCost_[from + i], receiveCost_[to + i]);
      sendFree[from + i] = receiveFree[to + i] = end;
      ready[to + i] = std::max(ready[to + i], end + options_.alpha);
    }
  }

  /// Results of the ranks [from, from + count) to the ranks from `to` on.
  void spread(std::size_t from, std::size_t to, std::size_t count, std::vector<double>& sendFree,
              std::vector<double>& receiveFree, const std::vector<double>& finished) const {
    for (std::size_t i = 0; i < count; ++i) {
      const double size = results_[from + i];
      if (size == 0) continue;
      const double begin = std::max({sendFree[from + i], receiveFree[to + i], finished[from + i]});
      const double end =
          begin + options_.perMessage + size * std::max(sendCost_[from + i], receiveCost_[to + i]);
      sendFree[from + i] = receiveFree[to + i] = end;
    }
  }

  /// The busiest port of the cycle, and one latency.
  double freelySharedCycle() const {
    const auto peers = static_cast<double>(ranks_ - 1);
    double allContributions = 0, allResults = 0;
    double contributors = 0, sources = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      allContributions += contributions_[rank];
      allResults += results_[rank];
      if (contributions_[rank] > 0) ++contributors;
      if (results_[rank] > 0) ++sources;
    }
    double busiest = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const double own = contributions_[rank], result = results_[rank];
      const double ownMessages = own > 0 ? 1 : 0, resultMessages = result > 0 ? 1 : 0;
      const double sends =
          (allContributions - own + peers * result) * sendCost_[rank] +
          (contributors - ownMessages + peers * resultMessages) * options_.perMessage;
      const double receives =
          (allResults - result + peers * own) * receiveCost_[rank] +
          (sources - resultMessages + peers * ownMessages) * options_.perMessage;
      busiest = std::max({busiest, sends, receives});
    }
    return busiest > 0 ? busiest + options_.alpha : 0;
  }

  const StepView& steps_;
  const double unit_;
  const CostOptions& options_;
  const std::size_t ranks_;
  std::vector<double> sendCost_, receiveCost_;
  std::vector<std::int64_t> counts_;
  std::vector<double> contributions_, results_;  ///< of the cycle, in units of S
  std::vector<std::int64_t> sent_, received_;    ///< messages
};

}  // namespace

Cost costOfSteps(const StepView& steps, std::int64_t elements, const PortBandwidths& bandwidths,
                 const CostOptions& options) {
  return StepPlayer(steps, elements, bandwidths, options).play();
}

}  // namespace faultline::schedule
