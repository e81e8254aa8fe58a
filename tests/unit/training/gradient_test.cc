#include "harness/workload/training/job/gradient.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "harness/workload/training/job/training_job.h"

namespace faultline::workload {
namespace {

using scenario::DataKind;
using scenario::DataType;

constexpr int kSummands = 3;
constexpr DataKey kKey{.seed = 5, .iteration = 9};

scenario::Gradient options(DataType type, DataKind data) {
  return {.size = 1001 * reduction::sizeOf(type), .buckets = 4, .dtype = type, .data = data};
}

/// What the collective would do: all ranks' contributions summed into the result of `gradient`.
void reduceInto(Gradient& gradient, const scenario::Gradient& shape, const DataKey& key) {
  const Bucket all{0, gradient.elements()};
  const auto bytes = static_cast<std::size_t>(shape.size);
  for (int rank = 0; rank < kSummands; ++rank) {
    Gradient other(shape, rank, kSummands);
    other.prepare(key);
    if (rank == 0) {
      std::memcpy(gradient.result(all), other.contribution(all), bytes);
    } else {
      reduction::reduce(gradient.type(), reduction::ReduceOp::kSum, gradient.result(all),
                        other.contribution(all), gradient.elements());
    }
  }
}

TEST(ScheduleOfBucketsTest, FollowsTheBackwardPass) {
  EXPECT_EQ(bucketReadyAfter(30ms, 4, 0), 15ms);
  EXPECT_EQ(bucketReadyAfter(30ms, 4, 1), 20ms);
  EXPECT_EQ(bucketReadyAfter(30ms, 4, 2), 25ms);
  EXPECT_EQ(bucketReadyAfter(30ms, 4, 3), 30ms);
  EXPECT_EQ(bucketReadyAfter(30ms, 1, 0), 30ms);
  EXPECT_EQ(bucketReadyAfter(0ms, 2, 1), 0ms);
  // The last one is always ready exactly at the end.
  EXPECT_EQ(bucketReadyAfter(Duration(1'000'003), 7, 6), Duration(1'000'003));
}

TEST(BucketTest, TheyShareAllElements) {
  for (const std::int64_t elements : {0, 1, 3, 7, 1000, 1001}) {
    for (const int buckets : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (int index = 0; index < buckets; ++index) {
        const Bucket bucket = bucketOf(elements, buckets, index);
        EXPECT_EQ(bucket.first, next);
        EXPECT_LE(bucket.count, (elements + buckets - 1) / buckets);
        next += bucket.count;
      }
      EXPECT_EQ(next, elements);
    }
  }
}

class GradientTest : public testing::TestWithParam<DataType> {};

TEST_P(GradientTest, ARightResultIsRightAndOneOtherElementIsSeen) {
  const auto shape = options(GetParam(), DataKind::kIntegers);
  Gradient gradient(shape, 1, kSummands);
  gradient.prepare(kKey);
  reduceInto(gradient, shape, kKey);
  EXPECT_EQ(gradient.check(kKey).wrong, 0);
  EXPECT_EQ(gradient.check(kKey).checked, 1001);
  gradient.corruptResult(1);
  EXPECT_EQ(gradient.check(kKey).wrong, 1);
}

TEST_P(GradientTest, WhatWasNotWrittenIsWrong) {
  for (const DataKind data : {DataKind::kIntegers, DataKind::kRandom}) {
    const auto shape = options(GetParam(), data);
    Gradient gradient(shape, 1, kSummands);
    gradient.prepare(kKey);
    EXPECT_EQ(gradient.check(kKey).wrong, 1001);
    reduceInto(gradient, shape, kKey);
    gradient.prepare({kKey.seed, kKey.iteration + 1});  // the result of before does not stay
    EXPECT_EQ(gradient.check(kKey).wrong, 1001);
  }
}

TEST_P(GradientTest, TheDigestOfRandomDataTellsResultsApart) {
  const auto shape = options(GetParam(), DataKind::kRandom);
  Gradient one(shape, 0, kSummands), same(shape, 1, kSummands), other(shape, 2, kSummands);
  for (Gradient* gradient : {&one, &same, &other}) {
    gradient->prepare(kKey);
    reduceInto(*gradient, shape, kKey);
  }
  other.corruptResult(1);
  EXPECT_EQ(one.check(kKey).wrong, 0);
  EXPECT_EQ(one.check(kKey).digest, same.check(kKey).digest);
  EXPECT_NE(one.check(kKey).digest, other.check(kKey).digest);
}

TEST_P(GradientTest, TheStateGoesOnWhereItWasSaved) {
  const auto shape = options(GetParam(), DataKind::kRandom);
  const auto stepOf = [&](Gradient& gradient, std::uint64_t iteration) {
    gradient.prepare({kKey.seed, iteration});
    reduceInto(gradient, shape, {kKey.seed, iteration});
    gradient.step();
  };
  const auto bytesOf = [](const Gradient& gradient) {
    return std::vector<std::byte>(gradient.state().begin(), gradient.state().end());
  };
  Gradient whole(shape, 0, kSummands), restarted(shape, 0, kSummands);
  stepOf(whole, 0);
  const auto saved = bytesOf(whole);
  stepOf(whole, 1);
  ASSERT_TRUE(restarted.restoreState(saved));
  EXPECT_NE(bytesOf(restarted), bytesOf(whole));
  stepOf(restarted, 1);
  EXPECT_EQ(bytesOf(restarted), bytesOf(whole));
  EXPECT_FALSE(restarted.restoreState(std::span(saved).first(8)));
}

INSTANTIATE_TEST_SUITE_P(, GradientTest,
                         testing::Values(DataType::kF32, DataType::kF64, DataType::kI32,
                                         DataType::kI64),
                         [](const auto& type) {
                           switch (type.param) {
                             case DataType::kF32:
                               return "F32";
                             case DataType::kF64:
                               return "F64";
                             case DataType::kI32:
                               return "I32";
                             default:
                               return "I64";
                           }
                         });

TEST(EmptyGradientTest, IsFine) {
  Gradient gradient({.size = 0, .buckets = 2}, 0, 2);
  gradient.prepare(kKey);
  gradient.corruptResult(1);
  gradient.step();
  EXPECT_EQ(gradient.check(kKey).wrong, 0);
}

}  // namespace
}  // namespace faultline::workload
