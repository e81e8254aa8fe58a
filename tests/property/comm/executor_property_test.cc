// The executor over a network that does everything in a random order: whatever the order, windows
// and slices, all ranks of all runs get the same bits.

#include <gtest/gtest.h>

#include <span>

#include "base/random.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "tests/support/fake_job.h"
#include "tests/support/star_schedule.h"

namespace faultline::comm {
namespace {

using reduction::kAllDataTypes;
using reduction::kAllReduceOps;

using Buffers = std::vector<std::vector<std::byte>>;

template <typename T>
T valueAt(const std::vector<std::byte>& buffer, std::int64_t i) {
  T value;
  std::memcpy(&value, buffer.data() + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Random bits; for floats without infinities and NaNs, of which there are several.
Buffers randomInputs(DataType type, int ranks, std::int64_t elements, Random& random) {
  Buffers inputs(ranks, std::vector<std::byte>(elements * reduction::sizeOf(type)));
  for (auto& input : inputs) {
    for (std::byte& byte : input) byte = static_cast<std::byte>(random());
    const auto clear = [&](std::int64_t size, std::uint8_t mask) {
      for (std::size_t at = size - 1; at < input.size(); at += size) {
        input[at] &= static_cast<std::byte>(mask);
      }
    };
    // Without the upper exponent bit sums of many do not overflow.
    const bool isFloat =
        type == DataType::kF32 || type == DataType::kF64 || reduction::isHalf(type);
    if (isFloat) clear(reduction::sizeOf(type), 0xbf);
  }
  return inputs;
}

std::unique_ptr<schedule::Schedule> randomSchedule(Random& random) {
  const int ranks = 1 + static_cast<int>(random.below(6));
  const auto elements = static_cast<std::int64_t>(random.below(200));
  const auto algorithms = schedule::algorithms();
  const std::size_t which = random.below(algorithms.size() + 1);
  if (which == algorithms.size()) return starAllReduce(ranks, elements);
  schedule::ScheduleRequest request{
      .ranks = ranks, .elements = elements, .segments = 1 + static_cast<int>(random.below(4))};
  for (int rank = 0; rank < ranks && random.below(2) == 0; ++rank) {
    if (rank == 0) request.bandwidths = std::vector<double>(ranks, 1.0);
    request.bandwidths.send[rank] = request.bandwidths.receive[rank] = 0.2 + 0.8 * random.unit();
  }
  auto made = schedule::makeSchedule(algorithms[which].name, request);
  return made.ok() ? std::move(*made) : nullptr;
}

TEST(ExecutorProperty, AnyOrderWindowAndSliceGivesTheSameBitsOnAllRanks) {
  constexpr std::uint64_t kSeeds = 600;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto schedule = randomSchedule(random);
    ASSERT_NE(schedule, nullptr);
    const DataType type = kAllDataTypes[random.below(kAllDataTypes.size())];
    const ReduceOp op = kAllReduceOps[random.below(kAllReduceOps.size())];
    SCOPED_TRACE(std::string(schedule->algorithm()) + " " + std::string(nameOf(type)) + " " +
                 std::string(nameOf(op)));
    const Buffers inputs = randomInputs(type, schedule->ranks(), schedule->elements(), random);
    std::vector<std::byte> expected;
    for (int round = 0; round < 6; ++round) {
      FakeJob job(*schedule,
                  {.type = type,
                   .op = op,
                   .inPlace = round % 2 == 0,
                   .window = std::array{1, 2, 64}[random.below(3)],
                   .sliceBytes = std::array<Bytes, 4>{8, 16, 64, 4096}[random.below(4)],
                   .seed = random()},
                  inputs);
      ASSERT_TRUE(job.run()) << "nothing moves any more";
      ASSERT_TRUE(job.complaints().empty()) << job.complaints().front();
      if (round == 0) expected = job.result(0);
      for (int rank = 0; rank < schedule->ranks(); ++rank) {
        ASSERT_EQ(job.result(rank), expected) << "rank " << rank << " round " << round;
        if (round % 2 == 1) {
          ASSERT_EQ(job.input(rank), inputs[rank]) << "a source was written";
        }
      }
    }
  }
}

// Scratch, too, is the same whatever the order, but not on all ranks.
TEST(ExecutorProperty, OtherCollectivesDoNotDependOnTheOrderEither) {
  constexpr std::uint64_t kSeeds = 200;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto algorithms = schedule::allAlgorithms().subspan(schedule::algorithms().size());
    const schedule::Algorithm& algorithm = algorithms[random.below(algorithms.size())];
    SCOPED_TRACE(algorithm.name);
    const auto schedule =
        schedule::makeSchedule(algorithm.name, {.ranks = 1 + static_cast<int>(random.below(6)),
                                                .elements = std::int64_t(random.below(200)),
                                                .segments = 1 + static_cast<int>(random.below(4))});
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    const Buffers inputs =
        randomInputs(DataType::kF32, (*schedule)->ranks(), (*schedule)->elements(), random);
    FakeJob orderly(**schedule, {.orderly = true}, inputs);
    ASSERT_TRUE(orderly.run());
    for (const int window : {1, 2, 64}) {
      FakeJob job(**schedule, {.window = window, .sliceBytes = 16, .seed = random()}, inputs);
      ASSERT_TRUE(job.run()) << "nothing moves any more";
      ASSERT_TRUE(job.complaints().empty()) << job.complaints().front();
      for (int rank = 0; rank < (*schedule)->ranks(); ++rank) {
        ASSERT_EQ(job.result(rank), orderly.result(rank)) << "rank " << rank;
      }
    }
  }
}

/// Small integers: exact in all types, whatever the order.
TEST(ExecutorProperty, EveryOperationOfEveryTypeIsRight) {
  constexpr std::uint64_t kSeeds = 300;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto schedule = randomSchedule(random);
    const std::int64_t count = schedule->elements();
    Buffers inputs(schedule->ranks(), std::vector<std::byte>(count * sizeof(std::int32_t)));
    std::vector<std::vector<std::int32_t>> values(schedule->ranks(),
                                                  std::vector<std::int32_t>(count));
    for (int rank = 0; rank < schedule->ranks(); ++rank) {
      for (auto& value : values[rank]) value = static_cast<std::int32_t>(random.below(9)) - 4;
      std::ranges::copy(std::as_bytes(std::span(values[rank])), inputs[rank].begin());
    }
    for (const ReduceOp op : kAllReduceOps) {
      FakeJob job(*schedule, {.type = DataType::kI32, .op = op, .sliceBytes = 16, .seed = random()},
                  inputs);
      ASSERT_TRUE(job.run());
      for (std::int64_t i = 0; i < count; ++i) {
        std::int32_t expected = values[0][i];
        for (int rank = 1; rank < schedule->ranks(); ++rank) {
          const std::int32_t other = values[rank][i];
          expected = op == ReduceOp::kProd  ? expected * other
                     : op == ReduceOp::kMin ? std::min(expected, other)
                     : op == ReduceOp::kMax ? std::max(expected, other)
                                            : expected + other;
        }
        if (op == ReduceOp::kAvg) expected /= schedule->ranks();
        for (int rank = 0; rank < schedule->ranks(); ++rank) {
          ASSERT_EQ(valueAt<std::int32_t>(job.result(rank), i), expected)
              << nameOf(op) << " of " << schedule->algorithm();
        }
      }
    }
  }
}

}  // namespace
}  // namespace faultline::comm
