#include "injector/netlink/needed_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/run_program.h"

namespace faultline::netlink {
namespace {

using ::testing::HasSubstr;

TEST(NeededPeersTest, TheClientOfAnSshSessionIsTheFirstOfFour) {
  EXPECT_EQ(sshClient("203.0.113.7 50000 10.0.0.1 22"), "203.0.113.7");
  EXPECT_EQ(sshClient("fe80::1%eth0 50000 fe80::2%eth0 22"), "fe80::1%eth0");
  EXPECT_EQ(sshClient("203.0.113.7 50000"), std::nullopt);
  EXPECT_EQ(sshClient(""), std::nullopt);
  EXPECT_EQ(sshServer("203.0.113.7 50000 10.0.0.1 22"), "10.0.0.1");
  EXPECT_EQ(sshServer("203.0.113.7 50000 10.0.0.1"), std::nullopt);
}

TEST(NeededPeersTest, ServersOfNetworkFileSystemsAreThoseThatTheirMountsName) {
  const auto servers = fileServers(
      "/dev/sda1 / ext4 rw,addr=1.1.1.1 0 0\n"
      "nas:/home /home nfs4 rw,vers=4.2,clientaddr=10.0.0.1,addr=10.0.0.9 0 0\n"
      "nas:/old /old nfs rw,mountaddr=10.0.0.7,addr=10.0.0.8,proto=rdma 0 0\n"
      "//win/share /share cifs rw,addr=fd00::9 0 0\n"
      "nas:/x /x nfs rw 0 0\n"
      "broken\n");
  ASSERT_EQ(servers.size(), 3u);
  EXPECT_EQ(servers[0].address, "10.0.0.9");
  EXPECT_EQ(servers[0].from, "10.0.0.1");
  EXPECT_EQ(servers[1].from, "");
  EXPECT_EQ(servers[0].what, "the server of /home (nfs4)");
  EXPECT_EQ(servers[1].address, "10.0.0.8");
  EXPECT_EQ(servers[2].address, "fd00::9");
  EXPECT_THAT(servers[2].remedy, HasSubstr("unmount it"));
}

bool needs(const std::string& address) {
  const auto peers = neededPeers();
  return std::ranges::find(peers, address, &NeededPeer::address) != peers.end();
}

constexpr const char* kOwn = "203.0.113.7";
constexpr const char* kFirst = "203.0.113.8";

/// What is started by `sudo` has lost the variable; what has started sudo has it.
TEST(NeededPeersTest, ServersOfBlockDevices) {
  const faultline::testing::TemporaryFolder sys;
  const auto device = [&](const std::string& name, const std::string& file,
                          const std::string& text) {
    std::filesystem::create_directories(sys.path() / "class" / name);
    (void)sys.write("class/" + name + "/" + file, text + "\n");
  };
  device("nvme/nvme0", "transport", "tcp");
  device("nvme/nvme0", "address", "traddr=10.3.0.7,trsvcid=4420,src_addr=10.3.0.1");
  device("nvme/nvme1", "transport", "pcie");
  device("nvme/nvme1", "address", "0000:01:00.0");
  device("iscsi_connection/connection1:0", "persistent_address", "10.3.0.8");
  auto servers = blockServers(sys.path().string());
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_EQ(servers[0].address, "10.3.0.7");
  EXPECT_EQ(servers[0].from, "10.3.0.1");
  EXPECT_EQ(servers[0].what, "the server of the block device nvme0");
  EXPECT_EQ(servers[1].address, "10.3.0.8");
  EXPECT_EQ(servers[1].what, "the server of the block device connection1:0");
  EXPECT_TRUE(blockServers((sys.path() / "none").string()).empty());
}

int childOfSudo() {
  ::unsetenv("SSH_CONNECTION");
  const bool own = needs(kOwn);
  ::setenv("SSH_CONNECTION", "203.0.113.7 50000 10.0.0.1 22", 1);
  return !own && needs(kOwn) && needs(kFirst) ? 0 : 1;
}

// The environment that /proc shows is the one that a program was started with: it is the shell's.
TEST(NeededPeersTest, SshSessionsAreThoseOfTheProcessAndOfAllAboveIt) {
  if (std::getenv("FAULTLINE_TEST_CHILD") != nullptr) ::_exit(childOfSudo());
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::setenv("SSH_CONNECTION", "203.0.113.8 50000 10.0.0.1 22", 1);
    ::setenv("FAULTLINE_TEST_CHILD", "1", 1);
    // Another shell in between, which has lost the variable too.
    const std::string again =
        "env -u SSH_CONNECTION sh -c '\"$0\" "
        "--gtest_filter=NeededPeersTest.SshSessionsAreThoseOfTheProcessAndOfAllAboveIt; exit $?' "
        "\"$0\"; exit $?";
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    ::execl("/bin/sh", "sh", "-c", again.c_str(), self.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(shell, &status, 0), shell);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace faultline::netlink
