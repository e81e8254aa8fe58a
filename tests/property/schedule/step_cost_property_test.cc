#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/step_cost.h"

namespace faultline::schedule {
namespace {

/// The cost of a cyclic shift from its operations: ports serve messages in the order of the macro
/// steps, a message waits for what brought its data. Independent of StepView.
Cost costFromOperations(const Schedule& schedule, const PortBandwidths& bandwidths,
                        const CostOptions& options) {
  Problems problems;
  const auto table = OpTable::load(schedule, problems);
  EXPECT_TRUE(table.ok() && problems.empty());
  // Results run one cycle behind the contributions of their segment.
  const auto place = [&](int op) {
    const std::int64_t step = table->positionOf(op) / 2;
    const int lane = (*table)[op].lane;
    return 2 * (step + (lane == 1 ? schedule.ranks() - 1 : 0)) + lane;
  };
  std::vector<int> sends;
  for (int op = 0; op < table->size(); ++op) {
    if ((*table)[op].kind == OpKind::kSend && (*table)[op].piece.count > 0) sends.push_back(op);
  }
  std::stable_sort(sends.begin(), sends.end(), [&](int a, int b) { return place(a) < place(b); });
  std::vector<double> sendFree(schedule.ranks(), 0), receiveFree(schedule.ranks(), 0);
  std::vector<std::int64_t> sent(schedule.ranks(), 0), received(schedule.ranks(), 0);
  std::vector<double> done(table->size(), 0);
  Cost cost;
  for (const int op : sends) {
    const OpTable::Entry& entry = (*table)[op];
    const OpTable::Entry& target = (*table)[entry.partner];
    double begin = std::max(sendFree[entry.rank], receiveFree[entry.peer]);
    for (int i = 0; i < entry.waitCount; ++i) {
      const Piece waited = (*table)[entry.waitOp[i]].piece;
      if (waited.offset == entry.piece.offset) begin = std::max(begin, done[entry.waitOp[i]]);
    }
    const double size =
        static_cast<double>(entry.piece.count) / static_cast<double>(schedule.elements());
    const double end = begin + options.perMessage +
                       size / std::min(bandwidths.send[entry.rank], bandwidths.receive[entry.peer]);
    sendFree[entry.rank] = receiveFree[entry.peer] = end;
    done[entry.partner] = end + options.alpha;
    if (target.after >= 0) {
      done[entry.partner] = std::max(done[entry.partner], done[target.after]);
    }
    cost.time = std::max(cost.time, end + options.alpha);
    cost.messagesPerRankMax =
        std::max({cost.messagesPerRankMax, ++sent[entry.rank], ++received[entry.peer]});
  }
  return cost;
}

TEST(StepCostProperty, StepsCostWhatTheirOperationsCost) {
  constexpr int kMostRanks = 64;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    ScheduleRequest request;
    // Each number of ranks once, then small ones.
    request.ranks =
        seed < kMostRanks ? static_cast<int>(seed) + 1 : 2 + static_cast<int>(random.below(15));
    request.elements = static_cast<std::int64_t>(1 + random.below(100000));
    request.segments = 1 + static_cast<int>(random.below(8));
    request.shares = random.below(2) == 0 ? PortModel::kOnePort : PortModel::kFluid;
    request.bandwidths = std::vector<double>(request.ranks, 1.0);
    for (int i = static_cast<int>(random.below(4)); i > 0; --i) {
      request.bandwidths.send[random.below(request.ranks)] = 0.1 + 0.9 * random.unit();
      request.bandwidths.receive[random.below(request.ranks)] = 0.1 + 0.9 * random.unit();
    }
    const CostOptions options = {.portModel = PortModel::kOnePort,
                                 .alpha = random.below(2) * 0.01 * random.unit(),
                                 .perMessage = random.below(2) * 0.001 * random.unit()};
    const auto schedule = makeSchedule("optcc", request);
    ASSERT_TRUE(schedule.ok());
    const Cost expected = costFromOperations(**schedule, request.bandwidths, options);
    const auto cost = costOf(**schedule, request.bandwidths, options);
    ASSERT_TRUE(cost.ok());
    ASSERT_TRUE(cost->fromSteps);
    ASSERT_NEAR(cost->time, expected.time, 1e-9 * expected.time) << "seed " << seed;
    ASSERT_EQ(cost->messagesPerRankMax, expected.messagesPerRankMax) << "seed " << seed;
  }
}

TEST(StepCostProperty, CyclesOneAfterTheOtherAreNearFreelySharedOperations) {
  constexpr int kSegments = 16;
  for (const int ranks : {3, 4, 8}) {
    for (const double r : {1.0, 0.875, 0.75, 0.5, 0.25}) {
      std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
      bandwidths[1] = r;
      const ScheduleRequest request = {
          .ranks = ranks, .elements = 1 << 22, .segments = kSegments, .bandwidths = bandwidths};
      const auto schedule = makeSchedule("optcc", request);
      const auto operations = costOf(**schedule, bandwidths);
      ASSERT_TRUE(operations.ok());
      ASSERT_FALSE(operations->fromSteps);
      const Cost steps = costOfSteps(*(*schedule)->stepView(), 1 << 22, bandwidths, {});
      EXPECT_NEAR(steps.time / operations->time, 1, 0.05) << ranks << " " << r;
      EXPECT_EQ(steps.depth, operations->depth);
      EXPECT_EQ(steps.messagesPerRankMax, operations->messagesPerRankMax);
      // The closed form: the busiest port is at the bound, and the pipeline has to be filled.
      const double bound = lowerBound(bandwidths, PortModel::kFluid);
      EXPECT_GE(steps.time, bound * (1 - 1e-4));
      EXPECT_LE(steps.time, bound * (1 + 1.0 / kSegments) * (1 + 1e-4));
    }
  }
}

}  // namespace
}  // namespace faultline::schedule
