#include "resilient_ccl/nccl/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/run_program.h"

namespace faultline::nccl {
namespace {

namespace fs = std::filesystem;

/// A /proc and a /sys with cgroups of the test.
class ProcessorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
    all_ = CPU_COUNT(&mask);
  }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ + file).substr(0, (root_ + file).rfind('/')));
    std::ofstream(root_ + file) << text;
  }
  int usable() const { return usableProcessors(root_); }

  const testing::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
  int all_ = 0;
};

TEST_F(ProcessorsTest, WithoutAQuotaAreThoseOfTheAffinityMask) {
  EXPECT_EQ(usable(), all_) << "no cgroups at all";
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(usable(), all_);
  write("/proc/self/cgroup", "nonsense\n\n:\n");
  EXPECT_EQ(usable(), all_);
  EXPECT_GE(usableProcessors(), 1) << "of this process";
}

TEST_F(ProcessorsTest, AContainersQuotaIsRoundedUp) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable(), 1);
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable(), 1);
  write("/sys/fs/cgroup/cpu.max", "100001 100000\n");
  EXPECT_EQ(usable(), std::min(2, all_));
  write("/sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(usable(), all_);
}

TEST_F(ProcessorsTest, TheLeastOfAllCgroupsAboveCounts) {
  write("/proc/self/cgroup", "0::/jobs/a/worker\n");
  write("/sys/fs/cgroup/jobs/cpu.max", "100000 100000\n");
  write("/sys/fs/cgroup/jobs/a/worker/cpu.max", "900000 100000\n");
  EXPECT_EQ(usable(), 1);
}

TEST_F(ProcessorsTest, ThePathMayBeThatOutsideOfTheContainer) {
  write("/proc/self/cgroup", "0::/docker/0123\n");
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable(), 1);
}

TEST_F(ProcessorsTest, CgroupsOfVersion1Too) {
  write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable(), 1);
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable(), all_);
}

}  // namespace
}  // namespace faultline::nccl
