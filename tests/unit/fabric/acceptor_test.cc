#include "resilient_ccl/fabric/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "loopback.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/support/log_lines.h"
#include "tests/support/no_more_descriptors.h"
#include "tests/support/poll_until.h"

namespace faultline::fabric {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kEnough = 20s;

TEST(AcceptorTest, WithoutDescriptorsItDoesNotKeepThePollerAwakeAndTakesWhoWaitedLater) {
  Poller poller;
  ASSERT_TRUE(poller.open().ok());
  auth::Authenticator authenticator(auth::JobKey::random());
  int hellos = 0;
  Acceptor acceptor(poller, authenticator, kEnough,
                    {.configure = [](int) { return okStatus(); },
                     .wanted = [](const Hello&) { return true; },
                     .accepted = [&](const Hello&, UniqueFd) { ++hellos; }});
  auto listener = transport::tcp::openListener({kLoopback, "", 0});
  ASSERT_TRUE(listener.ok());
  const auto door = transport::tcp::localEndpoint(listener->get());
  ASSERT_TRUE(door.ok());
  ASSERT_TRUE(acceptor.listen(std::move(*listener)).ok());

  test::LogLines log;
  const auto call = [&] {
    auto socket = transport::tcp::beginConnect({kLoopback, "", 0}, *door);
    EXPECT_TRUE(socket.ok());
    Hello hello;
    hello.rail = 1;
    return Handshake::connecting(std::move(*socket), hello, now() + kEnough);
  };
  const auto isTaken = [&](Handshake& caller, int which) {
    return test::pollUntil(kEnough, [&] {
      (void)caller.advance(authenticator);
      return poller.wait(1ms).ok() && hellos == which;
    });
  };
  // Also because a sanitizer needs a descriptor for what it sees for the first time.
  Handshake first = call();
  ASSERT_TRUE(isTaken(first, 1));
  spdlog::warn("{}", std::generic_category().message(EMFILE));
  ASSERT_FALSE(log.take().empty());

  Handshake caller = call();
  std::optional<Result<int>> atFirst, resting, afterwards;
  std::vector<std::string> said, saidAgain;
  {
    const test::NoMoreDescriptors none;
    const TimePoint before = now();
    atFirst = poller.wait(kEnough);
    acceptor.expire(before);
    resting = poller.wait(Acceptor::kRest / 4);
    said = log.take();
    acceptor.expire(now() + Acceptor::kRest);
    afterwards = poller.wait(kEnough);
    saidAgain = log.take();
  }
  EXPECT_TRUE(atFirst->ok() && **atFirst == 1);
  EXPECT_TRUE(resting->ok() && **resting == 0) << "it would be awake all the time";
  EXPECT_TRUE(afterwards->ok() && **afterwards == 1) << "it is tried again";
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n"))));
  EXPECT_THAT(saidAgain, IsEmpty()) << "it has been said";
  acceptor.expire(now() + Acceptor::kRest);
  EXPECT_TRUE(isTaken(caller, 2));
}

/// An acceptor over loopback; nobody who calls proves anything.
class StrangersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller_.open().ok());
    auto listener = transport::tcp::openListener({kLoopback, "", 0});
    ASSERT_TRUE(listener.ok());
    door_ = *transport::tcp::localEndpoint(listener->get());
    ASSERT_TRUE(acceptor_.listen(std::move(*listener)).ok());
  }
  UniqueFd call() {
    auto socket = transport::tcp::beginConnect({kLoopback, "", 0}, door_);
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    return std::move(*socket);
  }
  bool waitUntil(const std::function<bool()>& condition) {
    return test::pollUntil(kEnough, [&] { return poller_.wait(1ms).ok() && condition(); });
  }
  static bool hungUpOn(const UniqueFd& socket) {
    std::array<std::byte, 64> challenge;
    const ssize_t got = recv(socket.get(), challenge.data(), challenge.size(), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

  Poller poller_;
  auth::Authenticator authenticator_{auth::JobKey::random()};
  int hellos_ = 0;
  transport::tcp::Endpoint door_;
  Acceptor acceptor_{poller_,
                     authenticator_,
                     kEnough,
                     {.configure = [](int) { return okStatus(); },
                      .wanted = [](const Hello&) { return true; },
                      .accepted = [this](const Hello&, UniqueFd) { ++hellos_; }}};
};

TEST_F(StrangersTest, ThereAreSoManyAndTheOldestGoes) {
  constexpr std::size_t kMore = 7;
  std::vector<UniqueFd> strangers;
  while (strangers.size() < Acceptor::kMostStrangers) strangers.push_back(call());
  ASSERT_TRUE(waitUntil([&] { return acceptor_.strangers() == Acceptor::kMostStrangers; }));
  EXPECT_EQ(acceptor_.rejected(), 0U);
  for (std::size_t i = 0; i < kMore; ++i) strangers.push_back(call());
  ASSERT_TRUE(waitUntil([&] {
    EXPECT_LE(acceptor_.strangers(), Acceptor::kMostStrangers);
    return acceptor_.rejected() == kMore;
  })) << acceptor_.rejected();
  for (std::size_t i = 0; i < kMore; ++i) {
    EXPECT_TRUE(waitUntil([&] { return hungUpOn(strangers[i]); })) << i;
  }
  EXPECT_FALSE(hungUpOn(strangers[kMore]));
  // And one of the job among them.
  Handshake caller = Handshake::connecting(call(), Hello{.rail = 1}, now() + kEnough);
  EXPECT_TRUE(waitUntil([&] {
    (void)caller.advance(authenticator_);
    return hellos_ == 1;
  }));
}

TEST_F(StrangersTest, WhoDoesNotEndItsHelloIsCountedAndWhoSaysNothingIsNot) {
  const UniqueFd mute = call(), slow = call();
  ASSERT_TRUE(waitUntil([&] { return acceptor_.strangers() == 2; }));
  const SignedHello hello;
  const auto* const bytes = reinterpret_cast<const char*>(&hello);
  for (std::size_t i = 0; i + 1 < sizeof(hello); ++i) {
    ASSERT_EQ(send(slow.get(), bytes + i, 1, MSG_NOSIGNAL), 1);
    ASSERT_TRUE(poller_.wait(1ms).ok());
  }
  acceptor_.expire(now());
  EXPECT_EQ(acceptor_.strangers(), 2U) << "they have their time";
  EXPECT_EQ(acceptor_.rejected(), 0U);
  acceptor_.expire(now() + kEnough);
  EXPECT_EQ(acceptor_.strangers(), 0U);
  EXPECT_EQ(acceptor_.rejected(), 1U);
  EXPECT_TRUE(waitUntil([&] { return hungUpOn(mute) && hungUpOn(slow); }));
}

}  // namespace
}  // namespace faultline::fabric
