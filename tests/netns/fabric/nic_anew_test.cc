#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "harness/cluster/cluster_plan.h"
#include "harness/launch/process.h"
#include "injector/netlink/namespace.h"
#include "tests/netns/fabric/job.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

// A NIC of a running job whose device is taken away and made anew, or renamed.

namespace faultline::test {
namespace {

constexpr std::int64_t kAnewElements = 1 << 17;
constexpr int kNode = 1;

class NicAnewTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(cluster_, cluster::NetnsCluster::create(
                                       {.nodes = 3, .rails = 2, .rail_rate = 400'000'000}));
    ASSERT_OK_AND_ASSIGN(elsewhere_, netlink::newNamespace());
  }

  static std::string place(int fd) { return fmt::format("/proc/{}/fd/{}", getpid(), fd); }

  void run(int namespaceFd, const std::string& commands) {
    const UniqueFd said(::memfd_create("said", MFD_CLOEXEC));
    launch::SpawnOptions options;
    options.executable = "/bin/sh";
    options.arguments = {"sh", "-ec", commands};
    options.environment = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
    options.namespace_fd = namespaceFd;
    options.stdout_fd = options.stderr_fd = said.get();
    ASSERT_OK_AND_ASSIGN(launch::Process shell, launch::Process::spawn(options));
    ASSERT_OK_AND_ASSIGN(const launch::ExitStatus ended, shell.waitFor(kLong));
    std::array<char, 1024> text{};
    (void)!::pread(said.get(), text.data(), text.size() - 1, 0);
    ASSERT_TRUE(ended.ok()) << commands << ": " << text.data();
  }

  /// All links over the rail, at both ends.
  static bool all(const Job& job, std::size_t links, bool back) {
    std::size_t count = 0;
    for (int rank = 0; rank < job.size(); ++rank) {
      const auto events = job.events(rank);
      count += back ? events.failbacks.size() : events.failovers.size();
    }
    return count >= links;
  }
  static constexpr std::size_t kLinkEnds = 4;  // of node 1's rail: to two others, at both ends

  static void expectSound(Job& job) {
    const std::int64_t reached = job.iterations();
    EXPECT_TRUE(pollUntil(kLong, [&] { return job.iterations() > reached + 3; }));
    job.stop();
    EXPECT_EQ(job.wrongElements(), 0);
    for (const std::string& problem : job.problems()) ADD_FAILURE() << problem;
  }

  std::unique_ptr<cluster::NetnsCluster> cluster_;
  UniqueFd elsewhere_;
};

TEST_F(NicAnewTest, ADeviceThatIsGoneAndComesBackWithAnotherNameIsTakenBack) {
  Job job(*cluster_, kAnewElements);
  ASSERT_TRUE(job.awaitConnected()) << (job.problems().empty() ? "" : job.problems()[0]);
  const int node = cluster_->nodeNamespace(kNode);
  run(node, "ip link set rail0 netns " + place(elsewhere_.get()));
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/false); }));
  run(elsewhere_.get(), "ip link set rail0 name other0; ip link set other0 netns " + place(node));
  run(node, fmt::format("ip addr add {}/16 dev other0; ip link set other0 up",
                        cluster::railAddress(kNode, 0)));
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/true); }));
  expectSound(job);
}

TEST_F(NicAnewTest, ADeviceThatIsRenamedIsFollowed) {
  Job job(*cluster_, kAnewElements);
  ASSERT_TRUE(job.awaitConnected()) << (job.problems().empty() ? "" : job.problems()[0]);
  run(cluster_->nodeNamespace(kNode),
      "ip link set rail1 down; ip link set rail1 name net1; ip link set net1 up");
  EXPECT_TRUE(pollUntil(kLong, [&] { return all(job, kLinkEnds, /*back=*/true); }));
  expectSound(job);
}

}  // namespace
}  // namespace faultline::test
