#include "harness/workload/long_wait.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/poll_until.h"

namespace faultline::workload {
namespace {

TEST(LongWaitTest, TellsAgainAndAgainWhileItTakesLongAndNeverOutside) {
  std::atomic<int> told{0};
  LongWait wait(2ms, [&] { ++told; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(told, 0) << "nothing has begun";
  wait.begin();
  EXPECT_TRUE(test::pollUntil(10s, [&] { return told >= 3; }));
  wait.end();
  const int before = told;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(told, before) << "it is over";
  wait.begin();
  EXPECT_TRUE(test::pollUntil(10s, [&] { return told > before; }));
}

TEST(LongWaitTest, WhatIsShortIsNotToldOfHoweverOftenItHappens) {
  std::atomic<int> told{0};
  LongWait wait(10min, [&] { ++told; });
  for (int i = 0; i < 100'000; ++i) {
    wait.begin();
    wait.end();
  }
  EXPECT_EQ(told, 0);
}

TEST(LongWaitTest, TheEndWaitsForTheCallThatIsUnderWay) {
  std::atomic<bool> inside{false};
  std::atomic<int> wrong{0};
  LongWait wait(1ms, [&] {
    inside = true;
    std::this_thread::sleep_for(5ms);
    inside = false;
  });
  for (int i = 0; i < 20; ++i) {
    wait.begin();
    std::this_thread::sleep_for(3ms);
    wait.end();
    wrong += inside;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace faultline::workload
