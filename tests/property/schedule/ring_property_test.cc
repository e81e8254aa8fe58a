#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "resilient_ccl/schedule/replay.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "resilient_ccl/schedule/verifier.h"
#include "tests/support/recorded_schedule.h"

namespace faultline::schedule {
namespace {

constexpr int kMaxRanks = 17;

std::vector<std::int64_t> awkwardSizes(std::int64_t ranks) {
  return {0, 1, 2, ranks - 1, ranks, ranks + 1, 2 * ranks + 3, 97, 240};
}

std::string firstProblem(const VerifyReport& report) {
  if (report.ok()) return "";
  const Problem& problem = report.problems.front();
  return fmt::format("rank {} lane {} op {}: {}", problem.rank, problem.lane, problem.op,
                     problem.text);
}

TEST(RingProperty, EveryRankCountSegmentCountAndSizeIsCorrect) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const int lanes : {1, 2, 3, 5, 8}) {
      for (const std::int64_t elements : awkwardSizes(ranks)) {
        const auto report = verifyAllReduce(*ringAllReduce(ranks, elements, lanes));
        ASSERT_TRUE(report.ok());
        ASSERT_TRUE(report->ok()) << "ranks " << ranks << " lanes " << lanes << " elements "
                                  << elements << ": " << firstProblem(*report);
      }
    }
  }
}

/// Executes the schedule on real numbers, transfers completing in an order drawn from the seed.
template <typename T>
void execute(const Schedule& schedule, std::vector<std::vector<T>>& buffers, std::uint64_t seed) {
  std::vector<Problem> problems;
  const auto table = OpTable::load(schedule, problems);
  ASSERT_TRUE(table.ok());
  ASSERT_TRUE(problems.empty()) << problems.front().text;
  Random random(seed);
  Replay replay(*table, 1 + static_cast<int>(random.below(3)));
  std::vector<int> movable;
  while (true) {
    for (const int op : replay.takeMovable()) movable.push_back(op);
    if (movable.empty()) break;
    std::swap(movable[random.below(movable.size())], movable.back());
    const int send = movable.back();
    movable.pop_back();
    const OpTable::Entry& from = (*table)[send];
    const OpTable::Entry& into = (*table)[from.partner];
    for (std::int64_t i = 0; i < from.piece.count; ++i) {
      const T value = buffers[from.rank][from.piece.offset + i];
      T& target = buffers[into.rank][into.piece.offset + i];
      target = into.kind == OpKind::kRecvReduce ? target + value : value;
    }
    replay.complete(send);
  }
  ASSERT_TRUE(replay.finished());
}

TEST(RingProperty, ExecutionGivesTheDirectSumOnEveryRank) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const int ranks = 1 + static_cast<int>(random.below(kMaxRanks));
    const int lanes = 1 + static_cast<int>(random.below(6));
    const auto elements = static_cast<std::int64_t>(random.below(200));
    std::vector<std::vector<std::uint64_t>> buffers(ranks);
    std::vector<std::uint64_t> sum(elements, 0);
    for (auto& buffer : buffers) {
      for (std::int64_t i = 0; i < elements; ++i) {
        buffer.push_back(random());
        sum[i] += buffer.back();
      }
    }
    execute(*ringAllReduce(ranks, elements, lanes), buffers, seed);
    for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(buffers[rank], sum) << "rank " << rank;
  }
}

TEST(RingProperty, FloatsAreBitIdenticalOnAllRanksAndInAllInterleavings) {
  const auto ring = ringAllReduce(7, 100, 3);
  std::vector<std::vector<float>> first;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(1);  // the same data each time; only the interleaving changes
    std::vector<std::vector<float>> buffers(7);
    for (auto& buffer : buffers) {
      for (int i = 0; i < 100; ++i) buffer.push_back(static_cast<float>(random.unit() - 0.5));
    }
    execute(*ring, buffers, seed);
    if (first.empty()) first = buffers;
    ASSERT_EQ(buffers, first) << "seed " << seed;
    for (const auto& buffer : buffers) ASSERT_EQ(buffer, first[0]) << "seed " << seed;
  }
}

/// One random way of breaking one operation of a schedule; its name.
std::string breakOnce(RecordedSchedule& schedule, Random& random) {
  while (true) {
    const int rank = static_cast<int>(random.below(schedule.ranks()));
    const int lane = static_cast<int>(random.below(schedule.lanes()));
    auto& ops = schedule.at(rank, lane);
    if (ops.empty()) continue;
    const auto index = random.below(ops.size());
    Op& op = ops[index];
    if (op.piece.count == 0) continue;  // without elements nothing can go wrong
    switch (random.below(8)) {
      case 0:
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(index));
        return "drop";
      case 1:
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(index), op);
        return "duplicate";
      case 2:
        op.peer = (op.peer + 1) % schedule.ranks();
        return "other peer";
      case 3:
        if (op.kind == OpKind::kSend) continue;
        op.kind = op.kind == OpKind::kRecv ? OpKind::kRecvReduce : OpKind::kRecv;
        return "reduce instead of overwrite or the reverse";
      case 4:
        if (op.waitCount == 0) continue;
        op.waitCount = 0;
        return "no wait";
      case 5:
        if (op.waitCount == 0) continue;
        --op.waits[0].count;
        return "wait for one element too few";
      case 6:
        op.piece.offset += random.below(2) == 0 ? 1 : -1;
        return "piece shifted by one";
      case 7:
        op.piece.count += random.below(2) == 0 ? 1 : -1;
        return "piece longer or shorter by one";
    }
  }
}

TEST(RingProperty, TheVerifierObjectsToEveryMutation) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const int ranks = 2 + static_cast<int>(random.below(6));
    const int lanes = 1 + static_cast<int>(random.below(3));
    const auto elements = static_cast<std::int64_t>(ranks * lanes + random.below(40));
    RecordedSchedule schedule(*ringAllReduce(ranks, elements, lanes));
    const std::string mutation = breakOnce(schedule, random);
    const auto report = verifyAllReduce(schedule);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->ok()) << "seed " << seed << ": " << mutation << " was not noticed";
  }
}

TEST(RingProperty, SwappedSendsOfOneLaneAreNoticed) {
  for (int rank = 0; rank < 4; ++rank) {
    RecordedSchedule schedule(*ringAllReduce(4, 16, 1));
    std::swap(schedule.at(rank, 0)[1], schedule.at(rank, 0)[3]);
    const auto report = verifyAllReduce(schedule);
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->ok());
  }
}

}  // namespace
}  // namespace faultline::schedule
