#include "resilient_ccl/schedule/rerank.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "resilient_ccl/schedule/index.h"

namespace faultline::schedule {
namespace {

/// Looks for a cycle of links with at least `rails` rails in common, from one rank.
class CycleSearch {
 public:
  CycleSearch(const LiveRails& rails, int needed) : rails_(rails), needed_(needed) {}

  /// Empty when it gets stuck.
  std::vector<int> from(int start) const {
    std::vector<int> cycle{start};
    std::vector<bool> used(at(rails_.ranks()), false);
    used[at(start)] = true;
    while (static_cast<int>(cycle.size()) < rails_.ranks()) {
      int best = -1, fewest = 0;
      for (int next = 0; next < rails_.ranks(); ++next) {
        if (used[at(next)] || !linked(cycle.back(), next)) continue;
        const int choices = choicesOf(next, used);
        if (best >= 0 && choices >= fewest) continue;
        best = next;
        fewest = choices;
      }
      if (best < 0) return {};
      cycle.push_back(best);
      used[at(best)] = true;
    }
    if (!linked(cycle.back(), start)) return {};
    return cycle;
  }

 private:
  bool linked(int a, int b) const {
    return std::popcount(rails_.live[at(a)] & rails_.live[at(b)]) >= needed_;
  }
  int choicesOf(int rank, const std::vector<bool>& used) const {
    int count = 0;
    for (int other = 0; other < rails_.ranks(); ++other) {
      if (!used[at(other)] && other != rank && linked(rank, other)) ++count;
    }
    return count;
  }

  const LiveRails& rails_;
  int needed_;
};

class Reordered final : public Schedule {
 public:
  Reordered(std::unique_ptr<Schedule> schedule, std::vector<int> order)
      : schedule_(std::move(schedule)), order_(std::move(order)), place_(order_.size()) {
    for (std::size_t i = 0; i < order_.size(); ++i) place_[at(order_[i])] = static_cast<int>(i);
  }

  std::string_view algorithm() const override { return schedule_->algorithm(); }
  Collective collective() const override { return schedule_->collective(); }
  int ranks() const override { return schedule_->ranks(); }
  int lanes() const override { return schedule_->lanes(); }
  std::int64_t elements() const override { return schedule_->elements(); }
  std::int64_t opCount(int rank, int lane) const override {
    return schedule_->opCount(place_[at(rank)], lane);
  }
  Op op(int rank, int lane, std::int64_t index) const override {
    Op op = schedule_->op(place_[at(rank)], lane, index);
    if (op.kind != OpKind::kCopy) op.peer = order_[at(op.peer)];
    return op;
  }
  std::span<const int> layers() const override { return schedule_->layers(); }

 private:
  std::unique_ptr<Schedule> schedule_;
  std::vector<int> order_;
  std::vector<int> place_;
};

}  // namespace

double LiveRails::port(int rank) const {
  return static_cast<double>(std::popcount(live[at(rank)])) / rails;
}

double LiveRails::link(int a, int b) const {
  return static_cast<double>(std::popcount(live[at(a)] & live[at(b)])) / rails;
}

std::vector<double> LiveRails::links() const {
  std::vector<double> all;
  for (int a = 0; a < ranks(); ++a) {
    for (int b = 0; b < ranks(); ++b) all.push_back(link(a, b));
  }
  return all;
}

double worstLink(const LiveRails& rails, const std::vector<int>& order) {
  double worst = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    worst = std::min(worst, rails.link(order[i], order[(i + 1) % order.size()]));
  }
  return worst;
}

std::vector<int> rerank(const LiveRails& rails) {
  std::vector<int> order(at(rails.ranks()));
  std::iota(order.begin(), order.end(), 0);
  const double given = worstLink(rails, order);
  for (int needed = rails.rails; needed > given * rails.rails; --needed) {
    const CycleSearch search(rails, needed);
    for (int start = 0; start < rails.ranks(); ++start) {
      std::vector<int> cycle = search.from(start);
      if (cycle.empty()) continue;
      std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), 0), cycle.end());
      return cycle;
    }
  }
  return order;
}

std::unique_ptr<Schedule> reordered(std::unique_ptr<Schedule> schedule, std::vector<int> order) {
  return std::make_unique<Reordered>(std::move(schedule), std::move(order));
}

}  // namespace faultline::schedule
