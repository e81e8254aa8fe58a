#include "resilient_ccl/auth/job_key.h"

#include <gtest/gtest.h>

namespace faultline::auth {
namespace {

TEST(JobKeyTest, TwoJobsHaveTwoKeys) { EXPECT_NE(JobKey::random(), JobKey::random()); }

TEST(JobKeyTest, ItsDigitsAreReadBack) {
  const JobKey key = JobKey::random();
  const auto read = JobKey::fromHex(key.hex());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, key);
}

TEST(JobKeyTest, NonsenseIsRefusedAndNotRepeatedInTheMessage) {
  const std::string good(32, 'a');
  ASSERT_TRUE(JobKey::fromHex(good).ok());
  for (const std::string& text :
       {std::string(), good.substr(1), good + "a", std::string(31, 'a') + "g",
        std::string(30, 'a') + "+1", std::string(30, 'a') + " 1"}) {
    const auto read = JobKey::fromHex(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message().find("aaaa"), std::string::npos);
  }
}

}  // namespace
}  // namespace faultline::auth
