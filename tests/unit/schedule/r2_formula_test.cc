#include "resilient_ccl/schedule/r2_formula.h"

#include <gtest/gtest.h>

#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/layered_all_reduce.h"
#include "tests/support/csv_data.h"

namespace faultline::schedule {
namespace {

ScheduleRequest r2Request(const std::vector<double>& bandwidths, int segments) {
  return {.ranks = static_cast<int>(bandwidths.size()),
          .elements = std::int64_t{1} << 24,
          .segments = segments,
          .bandwidths = bandwidths};
}

TEST(R2FormulaTest, IsThatOfItsAuthors) {
  // Their table for K = 4 and without a fill time, and the K of their test of chunks.
  const auto rows = test::csvRows<int, double, double, double>("r2_formula.csv");
  EXPECT_EQ(rows.size(), 75u);
  // One in the last place: their 1.501 is 1.50049.
  constexpr double kRounding = 0.0006;
  for (const auto& [ranks, lost, chunks, published] : rows) {
    EXPECT_NEAR(r2FormulaOverRing(ranks, lost, chunks), published, kRounding)
        << ranks << " ranks, " << lost << " lost, K = " << chunks;
  }
}

TEST(R2FormulaTest, NothingLostIsTheRing) {
  const std::vector<double> whole(4, 1.0);
  const auto formula = r2Formula(r2Request(whole, 8), whole);
  ASSERT_TRUE(formula);
  EXPECT_EQ(formula->timeOverRing, 1);
  EXPECT_FALSE(formula->chunks);
}

TEST(R2FormulaTest, ChunksAreThoseOfTheSchedule) {
  // 7 fast ranks: 32 segments become five parts of each chunk of their ring, or with four turns
  // two.
  EXPECT_EQ(r2Chunks(r2Request({1, 0.75, 1, 1, 1, 1, 1, 1}, 32)), 35);
  EXPECT_EQ(r2Chunks(r2Request({1, 0.5, 1, 1, 1, 1, 1, 1}, 32)), 56);
  const std::vector<double> ports{1, 0.5, 1, 1};
  for (const int segments : {8, 16, 32, 64}) {
    const ScheduleRequest request = r2Request(ports, segments);
    const auto made = makeSchedule("r2_allreduce", request);
    // The slow rank sends and receives the chunks of a lane of the fast ring, which has turns.
    const int lane = (*made)->lanes() - 1;
    const int turns = ringLayers(4, request.elements, segments, ports, false).back().turns;
    EXPECT_EQ(*r2Chunks(request), (*made)->opCount(1, lane) / 2 * turns) << segments;
    const auto formula = r2Formula(request, ports);
    const double time = costOf(**made, ports)->timeOverRing;
    EXPECT_NEAR(time / formula->timeOverRing, 1, 0.05) << segments;
  }
}

TEST(R2FormulaTest, WhereThePipelineDoesNotPayItIsARing) {
  const std::vector<double> ports{1, 0.5, 1, 1};
  const auto formula = r2Formula(r2Request(ports, 1), ports);
  ASSERT_TRUE(formula);
  EXPECT_FALSE(formula->chunks);
  EXPECT_EQ(formula->timeOverRing, 2);
}

TEST(R2FormulaTest, APlanForWholePortsIsHeldAgainstWhatThereIs) {
  const std::vector<double> whole(4, 1.0), ports{1, 1, 0.75, 1};
  const auto formula = r2Formula(r2Request(whole, 9), ports);
  ASSERT_TRUE(formula && formula->chunks);
  EXPECT_EQ(formula->timeOverRing, r2FormulaOverRing(4, 0.25, *r2Chunks(r2Request(ports, 9))));
}

TEST(R2FormulaTest, OneDirectionIsEnough) {
  PortBandwidths left(std::vector<double>(4, 1.0));
  left.receive[2] = 0.5;
  const auto formula = r2Formula(r2Request({1, 1, 0.5, 1}, 12), left);
  ASSERT_TRUE(formula && formula->chunks);
  EXPECT_EQ(formula->timeOverRing, r2FormulaOverRing(4, 0.5, *formula->chunks));
}

TEST(R2FormulaTest, SeveralSlowRanksHaveNone) {
  const std::vector<double> ports{1, 0.5, 1, 0.75};
  EXPECT_FALSE(r2Formula(r2Request(ports, 8), ports));
  EXPECT_FALSE(r2Formula(r2Request({1}, 8), std::vector<double>{1}));
}

}  // namespace
}  // namespace faultline::schedule
