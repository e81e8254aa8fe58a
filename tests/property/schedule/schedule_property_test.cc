#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/replay.h"
#include "resilient_ccl/schedule/split.h"
#include "resilient_ccl/schedule/verifier.h"
#include "tests/support/recorded_schedule.h"

namespace faultline::schedule {
namespace {

constexpr int kMaxRanks = 17;

std::unique_ptr<Schedule> make(std::string_view algorithm, const ScheduleRequest& request) {
  auto schedule = makeSchedule(algorithm, request);
  EXPECT_TRUE(schedule.ok()) << schedule.status().toString();
  return std::move(*schedule);
}

/// Some ranks slower than the others, in one direction or both.
PortBandwidths randomBandwidths(int ranks, Random& random) {
  PortBandwidths bandwidths = std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
  const auto slow = [&] { return (1 + static_cast<double>(random.below(8))) / 8; };
  for (std::uint64_t stragglers = random.below(4); stragglers > 0; --stragglers) {
    const auto rank = random.below(static_cast<std::uint64_t>(ranks));
    bandwidths.send[rank] = slow();
    bandwidths.receive[rank] = random.below(2) == 0 ? slow() : bandwidths.send[rank];
  }
  return bandwidths;
}

ScheduleRequest randomRequest(Random& random, int minRanks, int maxRanks,
                              std::int64_t minElements) {
  ScheduleRequest request;
  request.ranks = minRanks + static_cast<int>(
                                 random.below(static_cast<std::uint64_t>(maxRanks - minRanks + 1)));
  for (const int perNode : {2, 3, 4}) {
    if (request.ranks % perNode == 0 && random.below(2) == 0) request.ranksPerNode = perNode;
  }
  request.elements = minElements + static_cast<std::int64_t>(random.below(200));
  request.segments = 1 + static_cast<int>(random.below(8));
  request.window = static_cast<int>(random.below(4));
  request.bandwidths = randomBandwidths(request.ranks, random);
  request.shares = random.below(4) == 0 ? PortModel::kOnePort : PortModel::kFluid;
  return request;
}

std::string describe(const ScheduleRequest& request) {
  std::string text = fmt::format(
      "ranks {} in nodes of {} elements {} segments {} window {}, send/receive", request.ranks,
      request.ranksPerNode, request.elements, request.segments, request.window);
  for (std::size_t i = 0; i < request.bandwidths.size(); ++i) {
    text += fmt::format(" {}/{}", request.bandwidths.send[i], request.bandwidths.receive[i]);
  }
  return text;
}

std::string firstProblem(const Schedule& schedule) {
  const auto report = verifySchedule(schedule);
  if (!report.ok()) return report.status().toString();
  if (report->ok()) return "";
  const Problem& problem = report->problems.front();
  return fmt::format("rank {} lane {} op {}: {}", problem.rank, problem.lane, problem.op,
                     problem.text);
}

/// Executes the schedule on real numbers, transfers completing in an order drawn from the seed.
template <typename T>
void execute(const Schedule& schedule, std::vector<std::vector<T>>& buffers, std::uint64_t seed) {
  Problems problems;
  const auto table = OpTable::load(schedule, problems);
  ASSERT_TRUE(table.ok());
  ASSERT_TRUE(problems.empty()) << problems.kept().front().text;
  Random random(seed);
  Replay replay(*table, 1 + static_cast<int>(random.below(3)));
  std::vector<int> movable;
  std::unordered_map<int, std::vector<T>> arrived;
  while (true) {
    for (const int op : replay.takeMovable()) movable.push_back(op);
    if (movable.empty()) break;
    std::swap(movable[random.below(movable.size())], movable.back());
    const int send = movable.back();
    movable.pop_back();
    const OpTable::Entry& from = (*table)[send];
    if (from.kind == OpKind::kCopy) {
      std::copy_n(buffers[from.rank].begin() + from.source.offset, from.source.count,
                  buffers[from.rank].begin() + from.piece.offset);
      replay.complete(send);
      continue;
    }
    const auto begin = buffers[from.rank].begin() + from.piece.offset;
    arrived[from.partner].assign(begin, begin + from.piece.count);
    replay.complete(send);
    for (const int receive : replay.takeReceived()) {
      const OpTable::Entry& into = (*table)[receive];
      for (std::int64_t i = 0; i < into.piece.count; ++i) {
        T& target = buffers[into.rank][into.piece.offset + i];
        const T value = arrived[receive][i];
        target = into.kind == OpKind::kRecvReduce ? target + value : value;
      }
      arrived.erase(receive);
    }
  }
  ASSERT_TRUE(replay.finished());
}

using Words = std::vector<std::uint64_t>;

/// Executes the schedule on random words and compares every element that its collective promises.
void resultsAreRight(const Schedule& schedule, std::uint64_t seed) {
  Random random(seed);
  const int ranks = schedule.ranks();
  const std::int64_t count = dataElements(schedule.collective(), schedule.elements());
  std::vector<Words> input(ranks);
  Words sum(count, 0);
  for (Words& words : input) {
    for (std::int64_t i = 0; i < count; ++i) {
      words.push_back(random());
      sum[i] += words.back();
    }
  }
  const auto copy = [](const Words& from, Piece piece, Words& to, std::int64_t offset) {
    std::copy_n(from.begin() + piece.offset, piece.count, to.begin() + offset);
  };
  const auto block = [&](int rank) { return split({0, count}, ranks, rank); };
  // Where a rank has no data in the beginning there is garbage.
  std::vector<Words> buffers(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < schedule.elements(); ++i) buffers[rank].push_back(random());
    const bool all = schedule.collective() != Collective::kAllGather &&
                     (schedule.collective() != Collective::kBroadcast || rank == 0);
    if (all) copy(input[rank], {0, count}, buffers[rank], 0);
    if (schedule.collective() == Collective::kAllGather) {
      copy(input[rank], block(rank), buffers[rank], block(rank).offset);
    }
  }
  execute(schedule, buffers, seed);
  for (int rank = 0; rank < ranks; ++rank) {
    Words expected = buffers[rank];
    switch (schedule.collective()) {
      case Collective::kAllReduce:
        expected = sum;
        break;
      case Collective::kReduceScatter:
        copy(sum, block(rank), expected, block(rank).offset);
        break;
      case Collective::kAllGather:
        for (int r = 0; r < ranks; ++r) copy(input[r], block(r), expected, block(r).offset);
        break;
      case Collective::kBroadcast:
        expected = input[0];
        break;
      case Collective::kReduce:
        if (rank == 0) expected = sum;
        break;
      case Collective::kAllToAll:
        for (int r = 0; r < ranks; ++r) {
          copy(input[r], block(rank), expected, count + block(r).offset);
        }
        break;
      case Collective::kSendRecv:
        copy(input[(rank + ranks - 1) % ranks], {0, count}, expected, count);
        break;
    }
    ASSERT_EQ(buffers[rank], expected) << "rank " << rank;
  }
}

class EveryAlgorithm : public testing::TestWithParam<std::string> {};

TEST_P(EveryAlgorithm, AwkwardSizesAreCorrect) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13}) {
    for (const int segments : {1, 3, 8}) {
      for (const std::int64_t elements :
           {0, 1, 2, ranks - 1, ranks, ranks + 1, 2 * ranks + 3, 97, 240}) {
        const ScheduleRequest request = {
            .ranks = ranks, .elements = elements, .segments = segments};
        ASSERT_EQ(firstProblem(*make(GetParam(), request)), "") << describe(request);
      }
    }
  }
}

TEST_P(EveryAlgorithm, ExecutionGivesTheRightResults) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const ScheduleRequest request = randomRequest(random, 1, kMaxRanks, 0);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, describe(request)));
    const auto schedule = make(GetParam(), request);
    ASSERT_EQ(firstProblem(*schedule), "");
    resultsAreRight(*schedule, seed);
  }
}

TEST_P(EveryAlgorithm, FloatsAreBitIdenticalOnAllRanksAndInAllInterleavings) {
  const auto schedule =
      make(GetParam(),
           {.ranks = 7, .elements = 100, .segments = 3, .bandwidths = {1, 0.75, 1, 1, 0.5, 1, 1}});
  if (schedule->collective() != Collective::kAllReduce) return;
  std::vector<std::vector<float>> first;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(1);  // the same data each time; only the interleaving changes
    std::vector<std::vector<float>> buffers(7);
    for (auto& buffer : buffers) {
      for (int i = 0; i < 100; ++i) buffer.push_back(static_cast<float>(random.unit() - 0.5));
    }
    execute(*schedule, buffers, seed);
    if (first.empty()) first = buffers;
    ASSERT_EQ(buffers, first) << "seed " << seed;
    for (const auto& buffer : buffers) ASSERT_EQ(buffer, first[0]) << "seed " << seed;
  }
}

/// One random way of breaking one message of a schedule; its name.
std::string breakOnce(RecordedSchedule& schedule, Random& random) {
  while (true) {
    const int rank = static_cast<int>(random.below(schedule.ranks()));
    const int lane = static_cast<int>(random.below(schedule.lanes()));
    auto& ops = schedule.at(rank, lane);
    if (ops.empty()) continue;
    const auto index = random.below(ops.size());
    Op& op = ops[index];
    if (op.piece.count == 0) continue;  // without elements nothing can go wrong
    switch (random.below(6)) {
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
        op.piece.offset += random.below(2) == 0 ? 1 : -1;
        return "piece shifted by one";
      case 5:
        op.piece.count += random.below(2) == 0 ? 1 : -1;
        return "piece longer or shorter by one";
    }
  }
}

TEST_P(EveryAlgorithm, TheVerifierObjectsToEveryMutation) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const ScheduleRequest request = randomRequest(random, 2, 7, 40);
    RecordedSchedule schedule(*make(GetParam(), request));
    const std::string mutation = breakOnce(schedule, random);
    if (firstProblem(schedule) != "") continue;
    SCOPED_TRACE(fmt::format("seed {}: {}; {}", seed, mutation, describe(request)));
    // What is overwritten or left as scratch may be anything: R2 rings pass on sums that the
    // pipeline replaces. Of the other AllReduces every element of every message counts.
    ASSERT_TRUE(GetParam().starts_with("r2_") ||
                make(GetParam(), request)->collective() != Collective::kAllReduce)
        << "was not noticed";
    resultsAreRight(schedule, seed);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Algorithm& algorithm : allAlgorithms()) all.emplace_back(algorithm.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Schedules, EveryAlgorithm, testing::ValuesIn(names()),
                         [](const auto& instance) { return instance.param; });

/// Removes waits, or a part of them, of one random operation among those that `matters` names.
template <typename Matters>
std::string loosenOnce(RecordedSchedule& schedule, Random& random, Matters matters) {
  while (true) {
    const int rank = static_cast<int>(random.below(schedule.ranks()));
    const int lane = static_cast<int>(random.below(schedule.lanes()));
    auto& ops = schedule.at(rank, lane);
    if (ops.empty()) continue;
    Op& op = ops[random.below(ops.size())];
    if (op.piece.count == 0 || !matters(lane, op)) continue;
    if (op.after >= 0) {
      op.after = -1;
      return "reduced in any order";
    }
    if (op.waitCount == 0) continue;
    if (random.below(2) == 0) {
      op.waitCount = 0;
      return "no wait";
    }
    --op.waits[0].count;
    return "wait for one element too few";
  }
}

TEST(RingProperty, EveryWaitMatters) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const int ranks = 2 + static_cast<int>(random.below(6));
    RecordedSchedule schedule(
        *make("ring", {.ranks = ranks, .elements = 60, .segments = 1 + int(random.below(3))}));
    const std::string loosened = loosenOnce(schedule, random, [](int, const Op&) { return true; });
    ASSERT_NE(firstProblem(schedule), "") << "seed " << seed << ": " << loosened;
  }
}

TEST(RingProperty, SwappedSendsOfOneLaneAreNoticed) {
  for (int rank = 0; rank < 4; ++rank) {
    RecordedSchedule schedule(*make("ring", {.ranks = 4, .elements = 16}));
    std::swap(schedule.at(rank, 0)[1], schedule.at(rank, 0)[3]);
    EXPECT_NE(firstProblem(schedule), "");
  }
}

TEST(HalvingDoublingProperty, TheOrderOfReductionsAndTheWaitsOfSendsMatter) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const int ranks = 2 + static_cast<int>(random.below(6));
    RecordedSchedule schedule(
        *make("halving_doubling",
              {.ranks = ranks, .elements = 60, .segments = 1 + int(random.below(3))}));
    const std::string loosened =
        loosenOnce(schedule, random, [](int, const Op& op) { return op.kind == OpKind::kSend; });
    ASSERT_NE(firstProblem(schedule), "") << "seed " << seed << ": " << loosened;
  }
}

TEST(OptccProperty, TheOrderOfReductionsAndTheWaitsOfResultsMatter) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    ScheduleRequest request = randomRequest(random, 2, 7, 100);
    request.window = 0;  // a window of one orders the reductions already
    RecordedSchedule schedule(*make("optcc", request));
    constexpr int kResults = 1;
    const std::string loosened = loosenOnce(schedule, random, [&](int lane, const Op& op) {
      return op.after >= 0 || (lane == kResults && op.kind == OpKind::kSend);
    });
    ASSERT_NE(firstProblem(schedule), "")
        << "seed " << seed << ": " << loosened << "; " << describe(request);
  }
}

}  // namespace
}  // namespace faultline::schedule
