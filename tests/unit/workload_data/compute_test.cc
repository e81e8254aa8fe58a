#include "harness/workload/compute.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <thread>

namespace faultline::workload {
namespace {

TEST(ComputeTest, ItTakesUntilTheMomentAndSleepsWithoutSlack) {
  for (const bool burn : {true, false}) {
    // A thread of its own: slack stays as it is.
    std::thread([burn] {
      const int before = prctl(PR_GET_TIMERSLACK);
      const TimePoint moment = now() + 2ms;
      computeUntil(moment, burn);
      EXPECT_GE(now(), moment);
      EXPECT_EQ(prctl(PR_GET_TIMERSLACK), burn ? before : 1);
    }).join();
  }
}

TEST(ComputeTest, AMomentThatIsOverIsNotWaitedFor) {
  const TimePoint before = now();
  for (const bool burn : {true, false}) computeUntil(before - 1h, burn);
  EXPECT_LT(now() - before, 1min);
}

}  // namespace
}  // namespace faultline::workload
