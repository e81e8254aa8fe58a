#include "resilient_ccl/fabric/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  spdlog::warn("a warning");
  ASSERT_FALSE(log.take().empty());

  Handshake caller = call();
  TimePoint begin;
  {
    const test::NoMoreDescriptors none;
    ASSERT_TRUE(poller.wait(kEnough).ok());
    begin = now();
    acceptor.expire(begin);
    const auto woken = poller.wait(Acceptor::kRest / 4);
    ASSERT_TRUE(woken.ok());
    EXPECT_EQ(*woken, 0) << "it would be awake all the time";
    EXPECT_THAT(log.take(),
                ElementsAre(AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n"))));
    acceptor.expire(begin + 2 * Acceptor::kRest);
    const auto again = poller.wait(kEnough);
    EXPECT_TRUE(again.ok() && *again == 1) << "it is tried again";
    EXPECT_TRUE(log.take().empty()) << "it has been said";
  }
  acceptor.expire(begin + kEnough / 2);
  EXPECT_TRUE(isTaken(caller, 2));
}

}  // namespace
}  // namespace faultline::fabric
