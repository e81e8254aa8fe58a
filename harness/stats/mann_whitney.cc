#include "harness/stats/mann_whitney.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace faultline::stats {
namespace {

constexpr std::size_t kExactBelow = 50;

struct Ranked {
  double value;
  bool of_a;
};

/// Rank sums need the order of all values, and the correction for ties how many share a rank.
struct RankSums {
  double ranks_of_a = 0;
  double tie_term = 0;  ///< sum of t^3 - t over groups of t equal values
};

RankSums rankSums(std::span<const double> a, std::span<const double> b) {
  std::vector<Ranked> all;
  for (const double value : a) all.push_back({value, true});
  for (const double value : b) all.push_back({value, false});
  std::ranges::sort(all, {}, &Ranked::value);
  RankSums sums;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && all[end].value == all[begin].value) ++end;
    const auto group = static_cast<double>(end - begin);
    const double rank = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    for (; begin < end; ++begin) sums.ranks_of_a += all[begin].of_a ? rank : 0;
    sums.tie_term += group * group * group - group;
  }
  return sums;
}

/// In how many of the orders of n + m different values U is exactly u, for u = 0 .. n m. Each of
/// the n values of a is greater than some number of b's, and U is their sum: the partitions of u
/// into at most n parts of at most m. Only sums of positive terms, so that doubles do not lose
/// digits.
std::vector<double> ordersByU(std::size_t n, std::size_t m) {
  const std::size_t size = n * m + 1;
  // ways[k][u]: k values of a have been placed, and u is their sum.
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(size, 0));
  ways[0][0] = 1;
  for (std::size_t part = 0; part <= m; ++part) {
    for (std::size_t k = 1; k <= n; ++k) {
      for (std::size_t u = part; u < size; ++u) ways[k][u] += ways[k - 1][u - part];
    }
  }
  return ways[n];
}

double exactP(double u, std::size_t n, std::size_t m) {
  const std::vector<double> orders = ordersByU(n, m);
  const auto tail = static_cast<std::size_t>(std::min(u, static_cast<double>(n * m) - u));
  const auto end_of_tail = orders.begin() + static_cast<std::ptrdiff_t>(tail) + 1;
  const double beyond = std::accumulate(orders.begin(), end_of_tail, 0.0);
  return std::min(1.0, 2 * beyond / std::accumulate(orders.begin(), orders.end(), 0.0));
}

double normalP(double u, double n, double m, double tie_term) {
  const double all = n + m;
  const double variance = n * m / 12 * (all + 1 - tie_term / (all * (all - 1)));
  if (!(variance > 0)) return 1;  // all values are equal
  constexpr double kContinuity = 0.5;
  const double distance = std::max(0.0, std::abs(u - n * m / 2) - kContinuity);
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

bool hasNan(std::span<const double> values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

}  // namespace

std::optional<MannWhitney> mannWhitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty() || hasNan(a) || hasNan(b)) return std::nullopt;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const RankSums sums = rankSums(a, b);
  MannWhitney test;
  test.u = sums.ranks_of_a - n * (n + 1) / 2;
  test.exact = sums.tie_term == 0 && std::max(a.size(), b.size()) < kExactBelow;
  test.p = test.exact ? exactP(test.u, a.size(), b.size()) : normalP(test.u, n, m, sums.tie_term);
  return test;
}

}  // namespace faultline::stats
