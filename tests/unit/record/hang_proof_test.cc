#include "harness/record/hang_proof.h"

#include <gtest/gtest.h>

namespace faultline::run {
namespace {

constexpr TimePoint kBroken{100s};

TEST(HangProofTest, TheFaultAfterWhichNothingMovedIsTheOne) {
  HangProof proof;
  EXPECT_FALSE(proof.latest());
  proof.damaged(kBroken);  // a throttle: the job goes on
  EXPECT_FALSE(proof.wantsPayload(kBroken + 99ms));
  EXPECT_TRUE(proof.wantsPayload(kBroken + 100ms));
  proof.payload(kBroken + 100ms, 5000);
  EXPECT_FALSE(proof.wantsPayload(kBroken + 200ms));
  proof.damaged(kBroken + 1s);  // a port
  proof.damaged(kBroken + 1s);
  proof.payload(kBroken + 1110ms, 9000);
  proof.damaged(kBroken + 2s);  // another one, while it hangs already
  proof.payload(kBroken + 2100ms, 9000);
  proof.damaged(kBroken + 3s);
  EXPECT_EQ(*proof.latest(), kBroken + 3s);
  const HangProof::Hang hang = proof.judge(9000);
  EXPECT_EQ(hang.fault, kBroken + 1s);
  EXPECT_EQ(hang.payload, 0u);
  EXPECT_EQ(hang.watchedFrom, kBroken + 1110ms);
}

TEST(HangProofTest, AJobThatIsOnlySlowIsNotHung) {
  HangProof proof;
  proof.damaged(kBroken);
  EXPECT_EQ(proof.judge(7000).payload, std::nullopt) << "too early to tell";
  proof.payload(kBroken + 100ms, 5000);
  EXPECT_EQ(proof.judge(7000).payload, 2000u);
  EXPECT_EQ(proof.judge(7000).fault, kBroken);
}

TEST(HangProofTest, ARestartForgetsTheFaultsThatHadTheirEffect) {
  HangProof proof;
  proof.damaged(kBroken);
  proof.restarted();
  proof.damaged(kBroken);
  EXPECT_FALSE(proof.latest()) << "told again, but not new";
  proof.damaged(kBroken + 5s);
  EXPECT_EQ(proof.latest(), kBroken + 5s);
  proof.payload(kBroken + 6s, 100);
  EXPECT_EQ(proof.judge(100).payload, 0u);
}

}  // namespace
}  // namespace faultline::run
