#include "resilient_ccl/schedule/algorithms.h"

#include <gtest/gtest.h>

#include <cmath>

namespace faultline::schedule {
namespace {

TEST(AlgorithmsTest, RingIsRegistered) {
  const auto ring = makeSchedule("ring", {.ranks = 4, .elements = 10, .segments = 2});
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ((*ring)->algorithm(), "ring");
  EXPECT_EQ((*ring)->ranks(), 4);
  EXPECT_EQ((*ring)->lanes(), 2);
}

TEST(AlgorithmsTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const Status status = makeSchedule("rign", {}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("ring"), std::string::npos);
}

TEST(AlgorithmsTest, ImpossibleNumbersAreRefused) {
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 0}).ok());
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 2, .elements = -1}).ok());
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 2, .segments = 0}).ok());
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 2, .bandwidths = {1}}).ok());
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 2, .bandwidths = {1, 0}}).ok());
  EXPECT_FALSE(makeSchedule("ring", {.ranks = 2, .bandwidths = {1, NAN}}).ok());
}

}  // namespace
}  // namespace faultline::schedule
