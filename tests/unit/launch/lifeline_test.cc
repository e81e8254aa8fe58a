#include "harness/launch/lifeline.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace faultline::launch {
namespace {

TEST(LifelineTest, EndsTheProcessWhenTheControllersEndIsClosed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[1]);
    const Lifeline lifeline{UniqueFd(ends[0])};
    ::alarm(20);  // ends a child that the lifeline has not ended, by another status
    while (true) ::pause();
  }
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), Lifeline::kExitOrphaned);
}

TEST(LifelineTest, DestroyingItEndsTheWatchOnly) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  { const Lifeline lifeline{UniqueFd(ends[0])}; }
  ::close(ends[1]);  // nobody watches any more: this test goes on
}

}  // namespace
}  // namespace faultline::launch
