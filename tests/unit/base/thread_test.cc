#include "base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <string>

namespace faultline {
namespace {

using ::testing::HasSubstr;

TEST(ThreadTest, TakesNoSignalsAndHasItsName) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::array<char, 16> name{};
  auto thread = startThread("faultline-test", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    // Whoever starts it names it, perhaps only after it has begun.
    while (std::string(name.data()) != "faultline-test") {
      pthread_getname_np(pthread_self(), name.data(), name.size());
    }
  });
  ASSERT_TRUE(thread.ok()) << thread.status().message();
  thread->join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGUSR1, SIGPIPE}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

TEST(ThreadTest, OneThatCannotBeStartedIsAnErrorAndNotTheEndOfTheProgram) {
  // No machine has memory for such a stack.
  pthread_attr_t before, impossible;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&impossible), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
  const auto thread = startThread("faultline-test", [] {});
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  ASSERT_FALSE(thread.ok());
  EXPECT_EQ(thread.status().code(), Code::kUnavailable);
  EXPECT_THAT(thread.status().message(), HasSubstr("faultline-test"));
  EXPECT_THAT(thread.status().message(), HasSubstr("ulimit -u is "));
}

}  // namespace
}  // namespace faultline
