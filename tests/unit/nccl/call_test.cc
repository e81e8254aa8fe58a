#include "resilient_ccl/nccl/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/log_lines.h"
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

  transport::tcp::Endpoint rendezvous() const {
    return *transport::tcp::localEndpoint(listener_.get());
  }
  Call begin() { return beginCall(callee_, listener_, "node1:7", start_); }

  /// The end that was called.
  struct Heard {
    Frames frames;
    std::string challenge, greeting;
  };
  /// The next one that calls, once it has said its greeting to this challenge; nothing: nobody
  /// does.
  std::optional<Heard> hearGreeting(Call& call, TimePoint time, const std::string& challenge) {
    std::optional<Heard> heard;
    (void)test::pollUntil(kAMoment, [&] {
      EXPECT_TRUE(call.advance(time).ok());
      if (!heard) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) return false;
        heard.emplace(Heard{Frames(std::move(socket)), challenge, {}});
        say(*heard, challenge);
      }
      const auto frame = heard->frames.receive();
      if (frame.ok() && *frame) heard->greeting = **frame;
      return !frame.ok() || !heard->greeting.empty();
    });
    return heard;
  }
  std::optional<Heard> hearGreeting(Call& call, TimePoint time) {
    auto heard = hearGreeting(call, time, callee_.challenge());
    EXPECT_TRUE(heard && !heard->greeting.empty());
    return heard;
  }
  static void say(Heard& to, const std::string& frame) {
    to.frames.send(frame);
    const auto all = to.frames.flush();
    ASSERT_TRUE(all.ok() && *all);
  }
  /// As the process that was called.
  std::string signedAnswer(const Heard& to, const std::string& answer) const {
    Meeting meeting = callee_.meeting(rendezvous(), to.challenge, to.greeting);
    EXPECT_TRUE(meeting.openGreeting(to.greeting));
    return meeting.signAnswer(answer);
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

  const Callee callee_{};
  test::LogLines log_;
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
  say(*again, signedAnswer(*again, Answer{.refusal = "no", .incarnation = 3}.serialize()));
  const auto answer = outcome(call, start_ + Call::kRedial);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->refusal, "no");
  EXPECT_EQ((*answer)->key, callee_.self->keys.publicKey());
  EXPECT_EQ(call.refused(), 0U);
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
  Call call =
      beginCall(callee_, transport::tcp::Endpoint{.address = INADDR_LOOPBACK | 0xffffff, .port = 1},
                "node1:7", start_);
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

// Who proves what it is and is not understood has another version.
TEST_F(CallTest, ProvedNonsenseIsNotAskedForAgain) {
  Call call = begin();
  auto other = hearGreeting(call, start_);
  ASSERT_TRUE(other);
  say(*other, signedAnswer(*other, "nonsense"));
  EXPECT_EQ(outcome(call, start_).status().code(), Code::kInvalidArgument);
}

// Somebody else has taken its address for a while.
TEST_F(CallTest, WhoDoesNotProveToBeTheProcessOfTheHandleIsCounted) {
  Call call = begin();
  const std::string welcome = Answer{.refusal = {}, .incarnation = 3}.serialize();
  Challenge other;
  other.key = newIdentity()->keys.publicKey();
  Challenge keyed;
  keyed.key = callee_.self->keys.publicKey();
  keyed.keyed = true;
  std::string older = callee_.challenge();
  older[4] = 2;
  struct Liar {
    std::string challenge;
    std::string answer;  // of who has got a greeting
    const char* why;
  };
  const std::vector<Liar> liars{
      {"nonsense", "", "does not begin as Faultline's plugin does"},
      {older, "", "speaks version 2, this one 3"},
      {std::string(Frames::kLongest + 1, 'x'), "", "not understood"},
      {other.serialize(), "", "another process than the one of the handle"},
      {keyed.serialize(), "", "FAULTLINE_KEY is set there and not here"},
      {callee_.challenge(), welcome, "does not prove"},
      {callee_.challenge(), welcome + std::string(Meeting::kProofBytes, '\0'), "does not prove"},
      {callee_.challenge(), "", "does not prove"},
  };
  TimePoint time = start_;
  std::uint64_t refused = 0;
  for (const Liar& liar : liars) {
    SCOPED_TRACE(liar.why);
    auto heard = hearGreeting(call, time, liar.challenge);
    ASSERT_TRUE(heard);
    if (!heard->greeting.empty()) say(*heard, liar.answer);
    ASSERT_TRUE(seesTheEnd(call, time));
    EXPECT_EQ(call.refused(), ++refused);
    time += Call::kRedial;
    EXPECT_THAT(call.ended(), HasSubstr(liar.why));
  }
  EXPECT_EQ(log_.take().size(), 1U) << "once for each call";
  auto right = hearGreeting(call, time);
  ASSERT_TRUE(right);
  say(*right, signedAnswer(*right, welcome));
  const auto answer = outcome(call, time);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_TRUE(*answer);
}

// Its greeting is its own word: nobody can say it back as an answer, or to another call.
TEST_F(CallTest, WhatItSaidItselfAndWhatAnotherCallHeardIsNoAnswer) {
  Call call = begin();
  auto first = hearGreeting(call, start_);
  ASSERT_TRUE(first);
  const std::string recorded =
      signedAnswer(*first, Answer{.refusal = {}, .incarnation = 3}.serialize());
  say(*first, first->greeting);
  ASSERT_TRUE(seesTheEnd(call, start_));
  EXPECT_EQ(call.refused(), 1U);
  const TimePoint again = start_ + Call::kRedial;
  auto second = hearGreeting(call, again, first->challenge);
  ASSERT_TRUE(second);
  EXPECT_NE(second->greeting, first->greeting);
  say(*second, recorded);
  ASSERT_TRUE(seesTheEnd(call, again));
  EXPECT_EQ(call.refused(), 2U);
}

}  // namespace
}  // namespace faultline::nccl
