#include "harness/launch/local_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness/launch/message_channel.h"
#include "tests/support/run_program.h"

namespace faultline::launch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class LocalSocketTest : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  /// Both ends of a connection.
  std::pair<UniqueFd, UniqueFd> connection() {
    auto listening = listenAt(path("socket"), 0600);
    EXPECT_TRUE(listening.ok()) << listening.status().message();
    auto client = connectTo(path("socket"), 1s);
    EXPECT_TRUE(client.ok()) << client.status().message();
    UniqueFd server(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(server);
    return {*std::move(client), std::move(server)};
  }
  testing::TemporaryFolder folder_;
};

TEST_F(LocalSocketTest, TheKernelSaysWhoIsThere) {
  const auto [client, server] = connection();
  const auto peer = localPeer(server.get());
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_THAT(peer->groups, Contains(::getegid()));
}

TEST_F(LocalSocketTest, WhereNobodyListensThatIsSaid) {
  EXPECT_EQ(connectTo(path("none"), 1s).status().code(), Code::kNotFound);
  listenAt(path("left"), 0600).value().reset();  // its file stays
  EXPECT_EQ(connectTo(path("left"), 1s).status().code(), Code::kNotFound);
  EXPECT_TRUE(listenAt(path("left"), 0600).ok()) << "it is replaced";
  EXPECT_EQ(connectTo(std::string(200, 'x'), 1s).status().code(), Code::kInvalidArgument);
}

TEST_F(LocalSocketTest, AFileThatIsNoSocketIsNotReplaced) {
  std::ofstream(path("file")) << "mine";
  EXPECT_THAT(listenAt(path("file"), 0600).status().message(), HasSubstr("no socket"));
  EXPECT_EQ(::access(path("file").c_str(), F_OK), 0);
}

TEST_F(LocalSocketTest, OneAtATimeHasAFileAndTheOtherIsTold) {
  auto first = claimFile(path("claim"));
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto second = claimFile(path("claim"));
  EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr("process " + std::to_string(::getpid())));
  first->reset();
  EXPECT_TRUE(claimFile(path("claim")).ok());
}

TEST_F(LocalSocketTest, OfAStrangerNoMessageIsLargerThanAllowed) {
  auto [left, right] = connection();
  MessageChannel stranger(std::move(left));
  MessageChannel channel(std::move(right));
  channel.distrust(1000);
  ASSERT_TRUE(stranger.send({{"text", std::string(900, 'x')}}).ok());
  EXPECT_TRUE(channel.receiveWithin(5s).ok());
  ASSERT_TRUE(stranger.send({{"text", std::string(1000, 'x')}}).ok());
  EXPECT_THAT(channel.receiveWithin(5s).status().message(),
              AllOf(HasSubstr("a message announces 1011 bytes"), HasSubstr("1000 are possible")));
}

TEST_F(LocalSocketTest, OfAStrangerNoDescriptorIsTaken) {
  const auto open = [] {
    int count = 0;
    for (int fd = 0; fd < 200; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  auto [left, right] = connection();
  MessageChannel stranger(std::move(left));
  MessageChannel channel(std::move(right));
  channel.distrust(1000);
  const int before = open();
  const int passed[] = {STDIN_FILENO};
  ASSERT_TRUE(stranger.send({{"text", "x"}}, passed).ok());
  EXPECT_FALSE(channel.receiveWithin(5s).ok());
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace faultline::launch
