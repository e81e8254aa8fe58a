#include "resilient_ccl/channel/grant_pacing.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

class GrantPacingTest : public ::testing::Test {
 protected:
  static constexpr StreamKey kOne{1, 7}, kTwo{1, 8};
  static constexpr Duration kPatience = 1ms;

  static MessageKey key(const StreamKey& stream, std::uint32_t sequence) {
    return {stream.communicator, sequence, stream.stream};
  }
  bool add(const StreamKey& stream, TimePoint time) {
    return pacing_.add({.key = key(stream, sequence_++)}, kPatience, time);
  }
  /// The peer has so many unused ones.
  void grant(const StreamKey& stream, int count) {
    for (int i = 0; i < count; ++i) add(stream, time_);
    pacing_.take();
  }
  /// ... of which it has used some since.
  bool use(const StreamKey& stream, int count, std::optional<bool> byShort) {
    bool must = false;
    for (int i = 0; i < count; ++i) must = pacing_.taken(stream, byShort);
    return must;
  }

  GrantPacing pacing_;
  std::uint32_t sequence_ = 0;
  TimePoint time_{1h};
};

TEST_F(GrantPacingTest, WhoHasNoneGetsOneAtOnce) {
  EXPECT_TRUE(add(kOne, time_));
  EXPECT_EQ(pacing_.take().size(), 1u);
  EXPECT_FALSE(add(kOne, time_)) << "it has one";
  EXPECT_TRUE(add(kTwo, time_)) << "another stream has none";
  EXPECT_EQ(pacing_.take().size(), 2u) << "and those that wait go along";
  EXPECT_FALSE(pacing_.waits());
  EXPECT_EQ(pacing_.due(), TimePoint::max());
}

TEST_F(GrantPacingTest, HowLongTheyWaitDependsOnWhatThePeerHasAndOnItsMessages) {
  grant(kOne, GrantPacing::kInHand);
  add(kOne, time_);
  EXPECT_EQ(pacing_.due(), time_ + kPatience) << "it has enough";
  EXPECT_FALSE(use(kOne, 1, /*byShort=*/true));
  add(kOne, time_);
  EXPECT_EQ(pacing_.due(), time_ + GrantPacing::kNextOfShort);
  EXPECT_FALSE(use(kOne, 1, /*byShort=*/true));
  EXPECT_TRUE(use(kOne, 1, /*byShort=*/true)) << "it has one left";
  EXPECT_EQ(pacing_.take().size(), 2u);
  EXPECT_FALSE(use(kOne, 1, std::nullopt)) << "nothing waits";
  add(kOne, time_);
  EXPECT_EQ(pacing_.due(), time_ + GrantPacing::kNextOfShort) << "withdrawn: says nothing of them";
  pacing_.take();
  use(kOne, 2, /*byShort=*/true);
  add(kOne, time_);
  EXPECT_EQ(pacing_.due(), time_ + GrantPacing::kNext) << "it has one left";
  pacing_.take();

  grant(kTwo, GrantPacing::kInHand);
  EXPECT_FALSE(use(kTwo, 1, /*byShort=*/false)) << "nothing waits";
  add(kTwo, time_);
  EXPECT_EQ(pacing_.due(), time_ + GrantPacing::kNext);
  EXPECT_TRUE(use(kTwo, 1, /*byShort=*/false)) << "long ones: it has two left";
}

TEST_F(GrantPacingTest, TheFirstThatIsDueTakesTheOthersAlong) {
  grant(kOne, GrantPacing::kInHand);
  grant(kTwo, 1);
  add(kTwo, time_);
  add(kOne, time_ + 1us);
  EXPECT_EQ(pacing_.due(), time_ + GrantPacing::kNext);
  EXPECT_EQ(pacing_.take().size(), 2u);
}

TEST_F(GrantPacingTest, ThoseOfAStreamAreBesideEachOther) {
  grant(kOne, 1);
  grant(kTwo, 1);
  for (int i = 0; i < 3; ++i) {
    add(kTwo, time_);
    add(kOne, time_);
  }
  const auto grants = pacing_.take();
  ASSERT_EQ(grants.size(), 6u);
  for (std::size_t i = 1; i < 6; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(streamOf(grants[i].key), streamOf(grants[i - 1].key));
    EXPECT_GT(grants[i].key.sequence, grants[i - 1].key.sequence);
  }
}

TEST_F(GrantPacingTest, SoManyGoTogether) {
  grant(kOne, GrantPacing::kInHand);
  for (std::size_t i = 1; i < GrantPacing::kTogether; ++i) ASSERT_FALSE(add(kOne, time_)) << i;
  EXPECT_TRUE(add(kOne, time_));
}

TEST_F(GrantPacingTest, AnotherGrantForWhatDidNotFitGoesAtOnce) {
  grant(kOne, GrantPacing::kInHand);
  pacing_.refused(key(kOne, sequence_));
  EXPECT_TRUE(add(kOne, time_));
  EXPECT_FALSE(add(kOne, time_));
}

TEST_F(GrantPacingTest, AStreamThatEndsLeavesNothing) {
  grant(kOne, 1);
  add(kOne, time_);
  pacing_.forget(kOne);
  EXPECT_FALSE(pacing_.waits());
  EXPECT_EQ(pacing_.due(), TimePoint::max());
  EXPECT_FALSE(pacing_.taken(kOne, true)) << "of a stream that is not known";
  EXPECT_TRUE(add(kOne, time_)) << "begins anew";
}

}  // namespace
}  // namespace faultline::channel
