#include "harness/control/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"

namespace faultline::run {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// One node with one rail that has sent a byte for each 10 us since `begin`.
class SamplerTest : public ::testing::Test {
 protected:
  /// What it has sent so long after the begin.
  static std::uint64_t sentAfter(Duration time) {
    return static_cast<std::uint64_t>(time / std::chrono::microseconds(10));
  }
  /// Asks for the series to be kept up each millisecond from `from` on, until `to`.
  void keepUp(Duration from, Duration to) {
    for (now_ = from; now_ <= to; now_ += 1ms) {
      EXPECT_TRUE(sampler_.keepUp(begin_ + now_).ok());
    }
  }
  std::vector<std::int64_t> sent() const { return sampler_.series().at(0).tx_bytes; }

  const TimePoint begin_ = TimePoint(1h);
  Duration now_{};
  int read_ = 0;
  bool broken_ = false;
  bool gone_ = false;  // its interface is
  Sampler sampler_{1, 1, [this](std::vector<site::RailCounters>& counters) {
                     ++read_;
                     if (broken_) return Status(Code::kIo, "no counters");
                     counters.assign(1, {.tx_bytes = gone_ ? 0 : sentAfter(now_), .rx_bytes = 0});
                     return okStatus();
                   }};
};

TEST_F(SamplerTest, CountersAreReadOnceForEachBin) {
  sampler_.start(begin_);
  keepUp(1ms, 10 * Sampler::kBin);
  EXPECT_EQ(read_, 1 + 10);
  EXPECT_THAT(sent(), SizeIs(10));
  EXPECT_THAT(sent(), Each(static_cast<std::int64_t>(sentAfter(Sampler::kBin))));
}

TEST_F(SamplerTest, WhoLooksALittleLateLosesNoBinOfItsBytes) {
  sampler_.start(begin_);
  keepUp(Sampler::kBin + 1ms, Sampler::kBin + 1ms);
  keepUp(2 * Sampler::kBin + 3ms, 2 * Sampler::kBin + 3ms);
  EXPECT_THAT(sent(), ElementsAre(2100, 2200));
}

TEST_F(SamplerTest, AnInterfaceThatIsGoneHasSentNothingMore) {
  sampler_.start(begin_);
  keepUp(1ms, Sampler::kBin);
  const std::int64_t before = sampler_.totals().at(0).tx_bytes;
  EXPECT_GT(before, 0);
  gone_ = true;
  keepUp(Sampler::kBin + 1ms, 2 * Sampler::kBin);
  EXPECT_THAT(sent(), ElementsAre(before, 0));
  EXPECT_EQ(sampler_.totals().at(0).tx_bytes, before);
}

TEST_F(SamplerTest, ReadInBetweenItIsTheSame) {
  sampler_.start(begin_);
  for (now_ = 1ms; now_ <= 3 * Sampler::kBin; now_ += 1ms) {
    ASSERT_TRUE(sampler_.sample(begin_ + now_).ok());
    ASSERT_TRUE(sampler_.keepUp(begin_ + now_).ok());
  }
  EXPECT_EQ(read_, 1 + 60) << "just read counters are not read again";
  EXPECT_THAT(sent(), ElementsAre(2000, 2000, 2000));
}

TEST_F(SamplerTest, WhatWasBeforeTheStartDoesNotCount) {
  now_ = 5ms;
  ASSERT_TRUE(sampler_.sample(begin_ + now_).ok());
  keepUp(6ms, 50ms);
  EXPECT_EQ(read_, 1) << "nobody wants the series yet";
  now_ = 60ms;
  sampler_.start(begin_ + now_);
  now_ = 70ms;
  ASSERT_TRUE(sampler_.sample(begin_ + now_).ok());
  EXPECT_THAT(sent(), ElementsAre(1000));
  EXPECT_EQ(sampler_.totals().at(0).tx_bytes, 1000);
  EXPECT_EQ(sampler_.nodeBytes(0), 7000u) << "since the cluster exists";
}

TEST_F(SamplerTest, CountersThatCannotBeReadAreAnErrorAlsoAtTheStart) {
  ASSERT_TRUE(sampler_.sample(begin_).ok());
  broken_ = true;
  sampler_.start(begin_);
  EXPECT_EQ(sampler_.keepUp(begin_ + 1ms).code(), Code::kIo);
  broken_ = false;
  EXPECT_TRUE(sampler_.keepUp(begin_ + 1ms).ok());
}

}  // namespace
}  // namespace faultline::run
