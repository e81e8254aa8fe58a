#include "harness/control/capacity.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/run_program.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

/// A /proc and a /sys of the test.
class CapacityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write("/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 100 kB\nMemAvailable: 4000000 kB\n");
    write("/proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
    write("/proc/sys/kernel/threads-max", "1080\n");
    write("/proc/sys/fs/file-nr", "1000 0 101000\n");
    write("/proc/sys/user/max_net_namespaces", "17\n");
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ + file).substr(0, (root_ + file).rfind('/')));
    std::ofstream(root_ + file) << text;
  }
  Capacity read() const { return readCapacity(root_); }

  const testing::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(CapacityTest, IsWhatTheMachineHasLeft) {
  const Capacity capacity = read();
  EXPECT_EQ(capacity.memory->left, 4000000.0 * 1024);
  EXPECT_EQ(capacity.threads->left, 1000);
  EXPECT_EQ(capacity.threads->limit, "kernel.threads-max");
  EXPECT_EQ(capacity.files->left, 100000);
  EXPECT_EQ(capacity.networkNamespaces->left, 17);
  EXPECT_FALSE(capacity.processNamespaces);
  EXPECT_GE(capacity.processors, 1);
}

TEST_F(CapacityTest, ALimitOfACgroupThatIsTighterCounts) {
  write("/proc/self/cgroup", "0::/jobs/a\n");
  write("/sys/fs/cgroup/jobs/memory.max", "1000000\n");
  write("/sys/fs/cgroup/jobs/memory.current", "700000\n");
  write("/sys/fs/cgroup/jobs/memory.stat", "anon 500000\ninactive_file 200000\n");
  write("/sys/fs/cgroup/jobs/a/memory.max", "max\n");
  write("/sys/fs/cgroup/jobs/a/pids.max", "64\n");
  write("/sys/fs/cgroup/jobs/a/pids.current", "60\n");
  const Capacity capacity = read();
  EXPECT_EQ(capacity.memory->left, 500000) << "files that were read may be forgotten";
  EXPECT_EQ(capacity.memory->limit, "memory.max of " + root_ + "/sys/fs/cgroup/jobs");
  EXPECT_EQ(capacity.threads->left, 4);
}

TEST_F(CapacityTest, SoDoesOneOfVersion1) {
  write("/proc/self/cgroup", "3:memory:/a\n5:pids:/b\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900000\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000000\n");
  write("/sys/fs/cgroup/pids/b/pids.max", "500\n");
  write("/sys/fs/cgroup/pids/b/pids.current", "100\n");
  const Capacity capacity = read();
  EXPECT_EQ(capacity.memory->left, 0) << "more is used than may be";
  EXPECT_EQ(capacity.threads->left, 400);
}

TEST_F(CapacityTest, OfThisMachineIsKnown) {
  const Capacity capacity = readCapacity();
  ASSERT_TRUE(capacity.memory);
  EXPECT_GT(capacity.memory->left, 0);
  ASSERT_TRUE(capacity.threads);
  EXPECT_GT(capacity.threads->left, 0);
}

}  // namespace
}  // namespace faultline::run
