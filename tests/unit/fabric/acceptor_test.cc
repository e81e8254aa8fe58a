#include "resilient_ccl/fabric/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
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

}  // namespace
}  // namespace faultline::fabric
