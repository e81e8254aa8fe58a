#include "base/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// A /proc and a /sys of the test.
class LimitsTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ + file).substr(0, (root_ + file).rfind('/')));
    std::ofstream(root_ + file) << text;
  }

  const testing::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(LimitsTest, AnErrorNamesTheLimitBehindItWithItsValue) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_THAT(Status::fromErrno(EMFILE, "open x").message(),
              HasSubstr("Too many open files (ulimit -n is " + std::to_string(limit.rlim_cur)));
  EXPECT_THAT(Status::fromErrno(ENFILE, "open x").message(), HasSubstr("fs.file-max is "));
  EXPECT_THAT(Status::fromErrno(EFBIG, "write x").message(), HasSubstr("ulimit -f"));
  EXPECT_EQ(Status::fromErrno(ENOENT, "open x").message(), "open x: No such file or directory");
}

TEST_F(LimitsTest, WhatCannotBeStartedNamesAllLimitsOfProcesses) {
  write("/proc/self/cgroup", "0::/jobs/a\n");
  write("/sys/fs/cgroup/jobs/pids.max", "100\n");
  write("/sys/fs/cgroup/jobs/pids.current", "99\n");
  write("/sys/fs/cgroup/jobs/a/pids.max", "max\n");
  write("/proc/sys/kernel/threads-max", "192000\n");
  const Status status = cannotStart(EAGAIN, "start a thread", root_);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("start a thread: "), HasSubstr("ulimit -u is "),
                    HasSubstr("pids.max 100 of " + root_ + "/sys/fs/cgroup/jobs (99 in use)"),
                    HasSubstr("kernel.threads-max 192000"), Not(HasSubstr("pid_max"))));
  EXPECT_THAT(cannotStart(ENOMEM, "start a thread").message(), HasSubstr("Cannot allocate memory"));
  const std::system_error thrown(EAGAIN, std::generic_category(), "thread");
  EXPECT_THAT(statusOf(thrown).message(), HasSubstr("ulimit -u is "));
  EXPECT_EQ(statusOf(std::bad_alloc()).message(), "std::bad_alloc");
}

TEST_F(LimitsTest, NamespacesThatAreLimitedNameTheSetting) {
  write("/proc/sys/user/max_pid_namespaces", "0\n");
  write("/proc/sys/user/max_mnt_namespaces", "95000\n");
  EXPECT_THAT(cannotMakeNamespace(ENOSPC, "start a guard", "pid mnt", root_).message(),
              AllOf(HasSubstr("user.max_pid_namespaces (here 0)"),
                    HasSubstr("user.max_mnt_namespaces (here 95000)"), Not(HasSubstr("device"))));
  EXPECT_EQ(cannotMakeNamespace(EPERM, "start a guard", "net", root_).message(),
            "start a guard: Operation not permitted");
}

TEST_F(LimitsTest, ACallThatAFilterForbidsIsNamed) {
  for (const int error : {EPERM, EACCES, ENOSYS}) {
    EXPECT_THAT(callRefused(error, "pidfd_open", "watch a process").message(),
                AllOf(HasSubstr("watch a process: the system call pidfd_open is refused"),
                      HasSubstr("seccomp")));
  }
  EXPECT_THAT(callRefused(EMFILE, "pidfd_open", "watch a process").message(),
              AllOf(HasSubstr("pidfd_open"), HasSubstr("ulimit -n"), Not(HasSubstr("seccomp"))));
}

}  // namespace
}  // namespace faultline
