#include "harness/stats/mann_whitney.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace faultline::stats {
namespace {

using Values = std::vector<double>;

TEST(MannWhitneyTest, PublishedValues) {
  // Hollander and Wolfe 1973, p. 69, permeability of human chorioamnion: one-sided p = 0.1272 (the
  // example of R's wilcox.test).
  const auto permeability =
      mannWhitney(Values{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
                  Values{1.15, 0.88, 0.90, 0.74, 1.21});
  EXPECT_EQ(permeability->u, 35);
  EXPECT_TRUE(permeability->exact);
  EXPECT_NEAR(permeability->p, 2 * 0.1272061, 1e-6);

  // The example of scipy.stats.mannwhitneyu: U1 = 17, exact p = 0.1111.
  const auto age = mannWhitney(Values{19, 22, 16, 29, 24}, Values{20, 11, 17, 12});
  EXPECT_EQ(age->u, 17);
  EXPECT_NEAR(age->p, 0.1111111111111111, 1e-12);
}

TEST(MannWhitneyTest, TiesAndManyValuesUseTheNormalDistribution) {
  // Both computed by scipy 1.10.1, mannwhitneyu(a, b, method="asymptotic").
  const auto ties = mannWhitney(Values{1, 2, 2, 3, 5, 5, 5, 8}, Values{2, 4, 5, 6, 6, 7, 9});
  EXPECT_EQ(ties->u, 15.5);
  EXPECT_FALSE(ties->exact);
  EXPECT_NEAR(ties->p, 0.15921654578553635, 1e-12);

  Values a(60);
  Values b(55);
  std::iota(a.begin(), a.end(), 1);
  std::iota(b.begin(), b.end(), 8.5);
  const auto many = mannWhitney(a, b);
  EXPECT_EQ(many->u, 1378);
  EXPECT_FALSE(many->exact);
  EXPECT_NEAR(many->p, 0.12848379227750423, 1e-12);
}

/// p by its definition: all ways of giving `a.size()` of the values to a, those that split as
/// unevenly or more.
double byEnumeration(const Values& a, const Values& b) {
  Values all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::vector<bool> of_a(all.size(), false);
  std::fill(of_a.end() - static_cast<std::ptrdiff_t>(a.size()), of_a.end(), true);
  const double middle = static_cast<double>(a.size() * b.size()) / 2;
  const auto unevenness = [&](const auto& is_a) {
    double u = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < all.size(); ++k) u += is_a(i) && !is_a(k) && all[i] > all[k];
    }
    return std::abs(u - middle);
  };
  const double seen = unevenness([&](std::size_t i) { return i < a.size(); });
  int orders = 0;
  int as_uneven = 0;
  do {
    ++orders;
    as_uneven += unevenness([&](std::size_t i) { return bool{of_a[i]}; }) >= seen;
  } while (std::next_permutation(of_a.begin(), of_a.end()));
  return static_cast<double>(as_uneven) / orders;
}

TEST(MannWhitneyTest, IsTheShareOfAllOrders) {
  for (std::size_t n = 1; n <= 5; ++n) {
    for (std::size_t m = 1; m <= 6; ++m) {
      for (std::size_t step = 1; step <= 3; ++step) {
        Values a;
        Values b;
        for (std::size_t i = 0; i < n; ++i) a.push_back(static_cast<double>(i * step * 2));
        for (std::size_t i = 0; i < m; ++i) b.push_back(static_cast<double>(i * 2 + 3));
        const auto test = mannWhitney(a, b);
        ASSERT_TRUE(test->exact);
        EXPECT_NEAR(test->p, byEnumeration(a, b), 1e-12) << n << " against " << m << ", " << step;
        EXPECT_EQ(mannWhitney(b, a)->p, test->p);
      }
    }
  }
}

TEST(MannWhitneyTest, FiveAgainstFiveCanBeSignificantAndFourAgainstFourCannot) {
  const Values low{1, 2, 3, 4, 5};
  const Values high{6, 7, 8, 9, 10};
  EXPECT_NEAR(mannWhitney(low, high)->p, 2.0 / 252, 1e-12);
  EXPECT_LT(mannWhitney(low, high)->p, kSignificance);
  const std::span<const double> four(low.begin(), 4);
  EXPECT_GT(mannWhitney(four, std::span<const double>(high.begin(), 4))->p, kSignificance);
  EXPECT_EQ(low.size(), kMinValuesToCompare);
}

TEST(MannWhitneyTest, NothingNanAndEqualValues) {
  EXPECT_EQ(mannWhitney({}, Values{1}), std::nullopt);
  EXPECT_EQ(mannWhitney(Values{1}, {}), std::nullopt);
  EXPECT_EQ(mannWhitney(Values{1, NAN}, Values{1}), std::nullopt);
  EXPECT_EQ(mannWhitney(Values{3, 3, 3, 3, 3}, Values{3, 3, 3, 3, 3})->p, 1);
  EXPECT_EQ(mannWhitney(Values{3}, Values{3})->p, 1);
}

}  // namespace
}  // namespace faultline::stats
