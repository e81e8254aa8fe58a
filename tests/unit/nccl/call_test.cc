#include "resilient_ccl/nccl/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration kAMoment = 20s;

/// Who calls; the other end, and the time, are the test's.
class CallTest : public ::testing::Test {
 protected:
  CallTest() : listener_(*transport::tcp::openListener({INADDR_LOOPBACK, "", 0})) {}

  Call begin() { return beginCall(listener_, "node1:7", start_); }
  /// The next one that calls, once it has said its greeting; nothing: nobody does.
  std::optional<Frames> hearGreeting(Call& call, TimePoint time) {
    std::optional<Frames> caller;
    std::string said;
    (void)test::pollUntil(kAMoment, [&] {
      EXPECT_TRUE(call.advance(time).ok());
      if (!caller) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) caller.emplace(std::move(socket));
      }
      if (!caller) return false;
      const auto frame = caller->receive();
      if (frame.ok() && *frame) said = **frame;
      return !frame.ok() || !said.empty();
    });
    EXPECT_EQ(said, "hello");
    return caller;
  }
  /// Goes on until there is an outcome.
  static Result<std::optional<Answer>> outcome(Call& call, TimePoint time) {
    Result<std::optional<Answer>> outcome = std::optional<Answer>();
    (void)test::pollUntil(kAMoment, [&] {
      outcome = call.advance(time);
      return !outcome.ok() || *outcome;
    });
    return outcome;
  }
  static bool waits(const Call& call) {
    std::vector<pollfd> waits;
    call.waitFor(waits);
    return !waits.empty();
  }
  /// Until it has seen that it was hung up on.
  static bool seesTheEnd(Call& call, TimePoint time) {
    return test::pollUntil(kAMoment, [&] {
      EXPECT_TRUE(call.advance(time).ok());
      return !waits(call);
    });
  }

  UniqueFd listener_;
  const TimePoint start_ = now();
};

TEST_F(CallTest, CallsAgainWhenItIsHungUpOnWithoutAnAnswer) {
  Call call = begin();
  ASSERT_TRUE(hearGreeting(call, start_));  // and it is closed
  ASSERT_TRUE(seesTheEnd(call, start_));
  ASSERT_TRUE(call.advance(start_ + Call::kRedial - 1ms).ok());
  EXPECT_FALSE(waits(call)) << "not without a pause";
  auto again = hearGreeting(call, start_ + Call::kRedial);
  ASSERT_TRUE(again);
  again->send(Answer{.refusal = "no", .incarnation = 3}.serialize());
  ASSERT_TRUE(again->flush().ok());
  const auto answer = outcome(call, start_ + Call::kRedial);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->refusal, "no");
}

TEST_F(CallTest, EndsAtItsDeadlineWithWhoDidNotAnswer) {
  Call call = begin();
  const auto mute = hearGreeting(call, start_);
  const auto late = outcome(call, start_ + 10s);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(late.status().message(), AllOf(HasSubstr("no answer from node1:7 at 127.0.0.1:"),
                                             HasSubstr("within FAULTLINE_GIVE_UP=10s")));
}

TEST_F(CallTest, DoesNotCallAgainForEver) {
  Call call = begin();
  ASSERT_TRUE(hearGreeting(call, start_));
  ASSERT_TRUE(seesTheEnd(call, start_));
  const auto late = outcome(call, start_ + 10s);
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded);
}

TEST_F(CallTest, EndsAtOnceWhenTheOtherProcessIsGone) {
  Call call = begin();
  ASSERT_TRUE(hearGreeting(call, start_));
  ASSERT_TRUE(seesTheEnd(call, start_));
  listener_.reset();
  const auto refused = outcome(call, start_ + Call::kRedial);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("call node1:7"), HasSubstr("refused")));
}

// Its network may be mended, as rails are.
TEST_F(CallTest, CallsAgainWhereThereIsNoWayUntilItsDeadline) {
  // A broadcast address.
  Call call = beginCall({.address = INADDR_LOOPBACK | 0xffffff, .port = 1}, "node1:7", start_);
  for (const Duration later : {0s, 1s, 9s}) {
    const auto answer = call.advance(start_ + later);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_FALSE(*answer);
    EXPECT_FALSE(waits(call));
  }
  const auto late = call.advance(start_ + 10s);
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(late.status().message(), AllOf(HasSubstr("unreachable' from node1:7 at 127."),
                                             HasSubstr("within FAULTLINE_GIVE_UP=10s")));
}

TEST_F(CallTest, NonsenseIsNotAskedForAgain) {
  Call call = begin();
  auto other = hearGreeting(call, start_);
  ASSERT_TRUE(other);
  other->send("nonsense");
  ASSERT_TRUE(other->flush().ok());
  EXPECT_EQ(outcome(call, start_).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::nccl
