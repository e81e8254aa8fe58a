#include "harness/inference/accounting.h"

#include <gtest/gtest.h>

namespace faultline::inference {
namespace {

constexpr Objectives kObjectives{.ttft = 500ms, .tpot = 20ms};

Served served(std::optional<double> first, std::optional<double> last, int begun = 1) {
  return {.rate = 0,
          .request = {.id = 0, .arrival = 0, .prompt = 10, .output = 11},
          .arrival = 100,
          .first = first,
          .last = last,
          .begun = begun};
}

TEST(AccountingTest, TimesAreThoseOfTheField) {
  const Served one = served(300, 500);
  EXPECT_EQ(ttftOf(one), 200);
  EXPECT_EQ(tpotOf(one), 20);
  EXPECT_EQ(endToEndOf(one), 400);
  Served single = one;
  single.request.output = 1;
  EXPECT_EQ(tpotOf(single), std::nullopt);
  EXPECT_EQ(ttftOf(served({}, {})), std::nullopt);
  EXPECT_EQ(endToEndOf(served(300, {})), std::nullopt);
}

TEST(AccountingTest, FateIsByBothObjectives) {
  EXPECT_EQ(fateOf(served(600, 800), kObjectives), Fate::kFinished);
  EXPECT_EQ(fateOf(served(601, 801), kObjectives), Fate::kLate);
  EXPECT_EQ(fateOf(served(300, 501), kObjectives), Fate::kLate);
  EXPECT_EQ(fateOf(served(300, {}), kObjectives), Fate::kLost);
  EXPECT_EQ(fateOf(Served{}, kObjectives), Fate::kLost);
}

TEST(AccountingTest, TheKneeIsTheFirstRateThatIsNotKeptUpWith) {
  const auto rate = [](int finished) { return Account{.requests = 10, .finished = finished}; };
  EXPECT_EQ(rate(4).good(), 0.4);
  EXPECT_EQ(Account{}.good(), 0);
  EXPECT_EQ(kneeOf(std::vector<Account>{}), -1);
  EXPECT_EQ(kneeOf(std::vector{rate(10), rate(9)}), -1);
  EXPECT_EQ(kneeOf(std::vector{rate(10), rate(8), rate(9), rate(0)}), 1);
}

}  // namespace
}  // namespace faultline::inference
