// Clients that do what none of ours does: whoever may connect must not keep others from a strike.
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "tests/netns/service/service_fixture.h"

namespace faultline::safety {
namespace {

using ::testing::Not;
using wire::FaultCall;

std::string header(std::uint32_t length) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string framed(const std::string& text) {
  return header(static_cast<std::uint32_t>(text.size())) + text;
}

class StrangerTest : public ServiceTest {
 protected:
  /// Why bytes of this kind end a connection.
  std::string whyNot(const std::string& bytes) {
    TestClient one = client();
    EXPECT_EQ(::send(one.channel().fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return one.whyDropped();
  }
};

TEST_F(StrangerTest, WhatIsNoMessageEndsTheConnectionWithTheReason) {
  const std::string before = state();
  EXPECT_THAT(whyNot(framed("hello")), HasSubstr("a message: "));
  EXPECT_THAT(whyNot(framed("{\"type\": \"strike\"}")), HasSubstr("version: is missing"));
  EXPECT_THAT(whyNot("GET / HTTP/1.1\r\n\r\n"), HasSubstr("a message announces"));
  EXPECT_THAT(whyNot(header(64 * 1024 + 1)), HasSubstr("a message announces 65537 bytes"));
  EXPECT_THAT(whyNot(framed(std::string(60'000, '['))), HasSubstr("a message: "));
  wire::ServiceStrike later = portDown();
  later.version = wire::kAgentVersion + 1;
  EXPECT_THAT(whyNot(framed(wire::toJson(wire::ToService(later)).dump())),
              HasSubstr(fmt::format("version {} of the messages", wire::kAgentVersion + 1)));
  EXPECT_THAT(whyNot(framed(wire::toJson(wire::ToService(portDown())).dump() + "}")),
              HasSubstr("a message: "));
  EXPECT_EQ(state(), before);
  EXPECT_TRUE(entries().empty());
}

TEST_F(StrangerTest, ASecondStrikeOrACallTooEarlyEndsTheFirst) {
  const std::string before = state();
  const auto one = striking();
  ASSERT_TRUE(one->say(portDown()));
  EXPECT_THAT(one->whyDropped(), HasSubstr("one connection is for one strike"));
  EXPECT_TRUE(undone(before));
  TestClient two = client();
  ASSERT_TRUE(two.say(portDown()));
  ASSERT_TRUE(two.say(wire::CallFault{FaultCall::kPrepare}));
  ASSERT_TRUE(two.say(wire::CallFault{FaultCall::kApply}));
  EXPECT_THAT(two.whyDropped(), HasSubstr("before the answer to the one before"));
  EXPECT_TRUE(undone(before));
}

TEST_F(StrangerTest, WhatAClientSaysIsNoLineOfTheLog) {
  wire::ServiceStrike wanted = portDown();
  wanted.kind = "x\nfaultd: all is well\x1b[2J";
  EXPECT_NE(refusal(wanted), "");
  const std::string log = endService().err;
  EXPECT_THAT(log, HasSubstr("all is well"));
  EXPECT_THAT(log, Not(HasSubstr("\nfaultd: all is well")));
  EXPECT_THAT(log, Not(HasSubstr("\x1b")));
}

TEST_F(StrangerTest, WhoSaysNothingIsDropped) {
  TestClient one = client();
  EXPECT_THAT(one.whyDropped(), HasSubstr("nothing was said for 5s"));
  TestClient slow = client();
  const std::string half = framed(wire::toJson(wire::ToService(portDown())).dump()).substr(0, 40);
  ::send(slow.channel().fd(), half.data(), half.size(), MSG_NOSIGNAL);
  EXPECT_THAT(slow.whyDropped(), HasSubstr("nothing was said for 5s"));
}

TEST_F(StrangerTest, TenThousandThatSayNothingDoNotStopAStrike) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr std::size_t kFlood = 10'000;
  if (files.rlim_cur < kFlood + 500) GTEST_SKIP() << "needs " << kFlood << " open files";
  const std::string before = state();
  const sockaddr_un address = addressOf(socket_path_);
  std::vector<UniqueFd> flood;
  bool struck = false;
  while (flood.size() < kFlood) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(fd);
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    flood.push_back(std::move(fd));
    if (flood.size() == kFlood / 2) {  // in the middle of it
      const auto one = striking();
      struck = true;
      one->leave();
      ASSERT_TRUE(undone(before));
    }
  }
  EXPECT_TRUE(struck);
  const auto one = striking();
  EXPECT_TRUE(one->call(FaultCall::kEvidence).evidence.ok);
  EXPECT_EQ(one->call(FaultCall::kRevert).outcome.message, "");
  EXPECT_TRUE(undone(before));
  const auto count = [](const std::string& folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  EXPECT_LT(count(fmt::format("/proc/{}/fd", service_->pid())), 600) << "it keeps few of them";
}

/// Strikes, and then asks for evidence again and again, as soon as the answer before is there, and
/// reads none of them. Until the connection ends.
int neverReads() {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&clientProcess.address),
                sizeof clientProcess.address) != 0) {
    return 3;
  }
  const auto say = [&](const wire::ToService& message) {
    const std::string bytes = framed(wire::toJson(message).dump());
    return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  };
  if (!say(wire::ServiceStrike{
          .kind = "port_down", .interface = "eth1", .longest = 60s, .lease = 60s})) {
    return 4;
  }
  int there = 0;
  for (int i = 0;; ++i) {
    if (!say(wire::CallFault{i == 0   ? FaultCall::kPrepare
                             : i == 1 ? FaultCall::kApply
                                      : FaultCall::kEvidence})) {
      return 0;
    }
    for (int before = there; there == before; ::usleep(500)) {
      pollfd end{socket.get(), POLLRDHUP, 0};
      if (::poll(&end, 1, 0) > 0 || ::ioctl(socket.get(), FIONREAD, &there) != 0) return 0;
    }
  }
}

TEST_F(StrangerTest, OneThatNeverReadsIsDroppedAndItsStrikeUndone) {
  const std::string before = state();
  const TestClient one(socket_path_, host_.get(), 0, neverReads);
  ASSERT_TRUE(held());
  EXPECT_TRUE(undone(before));
  EXPECT_THAT(endService().err, HasSubstr("it does not read what it is told"));
}

TEST_F(StrangerTest, HeartbeatsWithoutEndKeepNobodyWaiting) {
  const std::string before = state();
  const auto one = striking();
  std::string beats;
  for (int i = 0; i < 500; ++i) {
    beats += framed(wire::toJson(wire::ToService(wire::StillThere{})).dump());
  }
  for (int i = 0; i < 40; ++i) {
    ASSERT_GT(::send(one->channel().fd(), beats.data(), beats.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_THAT(refusal(portDown()), HasSubstr("eth1 is struck already"));
  one->leave();
  EXPECT_TRUE(undone(before));
}

/// Asks for 64 strikes over as many connections, and says again and again that it is there.
int asksForMany() {
  if (::setgroups(0, nullptr) != 0 || ::setgid(clientProcess.uid) != 0 ||
      ::setuid(clientProcess.uid) != 0) {
    return 2;
  }
  const auto say = [](int socket, const wire::ToService& message) {
    const std::string bytes = framed(wire::toJson(message).dump());
    return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  };
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 64; ++i) {
    sockets.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(sockets.back().get(), reinterpret_cast<const sockaddr*>(&clientProcess.address),
                  sizeof clientProcess.address) != 0) {
      return 3;
    }
    say(sockets.back().get(),
        wire::ServiceStrike{
            .kind = "port_down", .interface = "eth1", .longest = 60s, .lease = 60s});
    say(sockets.back().get(), wire::CallFault{FaultCall::kPrepare});
  }
  for (pollfd end{launch::kMessagesFd, POLLRDHUP, 0}; ::poll(&end, 1, 200) == 0;) {
    for (const UniqueFd& socket : sockets) say(socket.get(), wire::StillThere{});
  }
  return 0;
}

TEST_F(StrangerTest, UsersWhoAreRefusedKeepNobodyOut) {
  constexpr uid_t kFirst = 20'000;
  constexpr uid_t kUsers = 5;
  std::ifstream map("/proc/self/uid_map");
  uid_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  if (count <= kFirst + kUsers) GTEST_SKIP() << "there is no user but root in this user namespace";
  writePolicy("users: [nobody]\n");
  const std::string before = state();
  std::vector<std::unique_ptr<TestClient>> users;
  for (uid_t user = kFirst; user < kFirst + kUsers; ++user) {
    users.push_back(std::make_unique<TestClient>(socket_path_, host_.get(), user, asksForMany));
  }
  const std::string full = "too many strikes and questions at once";
  ASSERT_TRUE(pollUntil(60s, [&] { return service_->errors().find(full) != std::string::npos; }));
  {
    const auto one = striking();
    EXPECT_EQ(one->call(FaultCall::kRevert).outcome.message, "");
  }
  EXPECT_TRUE(undone(before));
  TestClient let = client(65'534);  // nobody
  ASSERT_TRUE(let.say(portDown()));
  EXPECT_EQ(let.call(FaultCall::kPrepare).outcome.message, "");
}

TEST_F(StrangerTest, ManyQuestionsAtOnceAreAllAnswered) {
  constexpr int kRounds = 12;
  constexpr int kAtOnce = 40;
  const sockaddr_un address = addressOf(socket_path_);
  int answered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<launch::MessageChannel> all;
    for (int i = 0; i < kAtOnce; ++i) {
      UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                0);
      all.emplace_back(std::move(fd));
      ASSERT_TRUE(all.back().send(wire::toJson(wire::ToService(wire::AskService{}))).ok());
    }
    for (launch::MessageChannel& one : all) {
      const auto answer = one.receiveWithin(60s);
      ASSERT_TRUE(answer.ok()) << answer.status().message();
      const bool facts = (*answer)["type"] == wire::ServiceFacts::kType;
      EXPECT_TRUE(facts) << *answer;
      answered += facts ? 1 : 0;
    }
  }
  EXPECT_EQ(answered, kRounds * kAtOnce);
}

TEST_F(StrangerTest, DescriptorsAreNotTaken) {
  const sockaddr_un address = addressOf(socket_path_);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  launch::MessageChannel channel(std::move(fd));
  const int passed[] = {STDIN_FILENO};
  ASSERT_TRUE(channel.send(wire::toJson(wire::ToService(portDown())), passed).ok());
  const auto answer = channel.receiveWithin(20s);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer)["type"], wire::HolderBroken::kType) << *answer;
}

}  // namespace
}  // namespace faultline::safety
