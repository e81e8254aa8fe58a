#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "harness/launch/privileges.h"
#include "harness/site/netns/cluster.h"

namespace faultline::netns {
namespace {

constexpr uid_t kNobody = 65534;

/// What an unprivileged user would do, in a process of its own because there is no way back.
enum Outcome : int { kMade = 0, kRefused = 1, kFailed = 2, kNotUnprivileged = 3 };

Outcome makeClusterUnprivileged() {
  if (::geteuid() == 0 && (::setresgid(kNobody, kNobody, kNobody) != 0 ||
                           ::setresuid(kNobody, kNobody, kNobody) != 0)) {
    return kNotUnprivileged;
  }
  // Giving up root makes /proc/self root's own until the next exec; a user's program has its own.
  ::prctl(PR_SET_DUMPABLE, 1);
  const auto privileges = launch::enterPrivileges();
  if (!privileges.ok()) {
    std::fprintf(stderr, "%s\n", privileges.status().message().c_str());
    return kRefused;
  }
  if (*privileges != launch::Privileges::kUserNamespace) return kNotUnprivileged;
  const auto cluster = netns::Cluster::create({.nodes = 2, .rails = 2, .rail_rate = 100'000'000});
  if (!cluster.ok()) std::fprintf(stderr, "%s\n", cluster.status().message().c_str());
  return cluster.ok() ? kMade : kFailed;
}

TEST(RootlessTest, AnUnprivilegedUserMakesAClusterInAUserNamespace) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(makeClusterUnprivileged());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kRefused) {
    GTEST_SKIP() << "this machine gives no user namespaces to unprivileged users (reason above)";
  }
  EXPECT_EQ(WEXITSTATUS(status), kMade);
}

}  // namespace
}  // namespace faultline::netns
