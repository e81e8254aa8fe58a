#include "harness/faultd/dialogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "injector/safety/entry.h"

namespace faultline::faultd {
namespace {

using ::testing::HasSubstr;
using wire::FaultCall;

constexpr Duration kLease = 3s;
constexpr Duration kLongest = 10s;
const TimePoint kBegin(100s);

nlohmann::json strikeMessage() {
  return wire::toJson(wire::ToService(wire::ServiceStrike{
      .kind = "port_down", .interface = "eth1", .longest = kLongest, .lease = kLease}));
}

nlohmann::json call(FaultCall which) {
  return wire::toJson(wire::ToService(wire::CallFault{which}));
}

nlohmann::json stillThere() { return wire::toJson(wire::ToService(wire::StillThere{})); }

std::string why(const std::optional<Status>& status) { return status ? status->message() : ""; }

class DialogueTest : public ::testing::Test {
 protected:
  std::string say(const nlohmann::json& message, TimePoint when = kBegin) {
    return dialogue_.take(message, when).status().message();
  }
  void applied(TimePoint when) {
    ASSERT_EQ(say(strikeMessage(), when), "");
    for (const FaultCall which : {FaultCall::kPrepare, FaultCall::kApply}) {
      ASSERT_EQ(say(call(which), when), "");
      ASSERT_TRUE(dialogue_.answered({}, when).ok());
    }
  }
  Dialogue dialogue_{kBegin};
};

TEST_F(DialogueTest, WhoSaysNothingIsDroppedAfterAWhile) {
  EXPECT_TRUE(dialogue_.silent());
  EXPECT_EQ(dialogue_.due(), kBegin + kFirstMessageBudget);
  EXPECT_EQ(why(dialogue_.overdue(kBegin + kFirstMessageBudget - 1ns)), "");
  EXPECT_THAT(why(dialogue_.overdue(kBegin + kFirstMessageBudget)), HasSubstr("nothing was said"));
}

TEST_F(DialogueTest, TheFirstMessageIsAStrikeOrAQuestionOfOurVersion) {
  EXPECT_THAT(say(call(FaultCall::kApply)), HasSubstr("version: is missing"));
  nlohmann::json later = strikeMessage();
  later["version"] = wire::kAgentVersion + 1;
  EXPECT_THAT(say(later), HasSubstr("the same build of faultline"));
  nlohmann::json other = call(FaultCall::kApply);
  other["version"] = wire::kAgentVersion;
  EXPECT_THAT(say(other), HasSubstr("version: is unknown"));
  EXPECT_THAT(say("hello"), HasSubstr("version: is missing"));
  EXPECT_TRUE(dialogue_.silent()) << "none of these was one";
  EXPECT_EQ(say(strikeMessage()), "");
  EXPECT_FALSE(dialogue_.silent());
  ASSERT_NE(dialogue_.strike(), nullptr);
  EXPECT_EQ(dialogue_.strike()->interface, "eth1");
}

TEST_F(DialogueTest, OneConnectionIsForOneStrike) {
  ASSERT_EQ(say(strikeMessage()), "");
  EXPECT_THAT(say(strikeMessage()), HasSubstr("one strike, or one question"));
  EXPECT_THAT(say(wire::toJson(wire::ToService(wire::AskService{}))), HasSubstr("one strike"));
}

TEST_F(DialogueTest, AQuestionIsAllOfItsConnection) {
  ASSERT_EQ(say(wire::toJson(wire::ToService(wire::AskService{}))), "");
  EXPECT_THAT(say(call(FaultCall::kPrepare)), HasSubstr("has one answer, and no more"));
  EXPECT_EQ(dialogue_.due(), std::nullopt);
}

TEST_F(DialogueTest, EachCallWaitsForTheAnswerToTheOneBefore) {
  ASSERT_EQ(say(strikeMessage()), "");
  ASSERT_EQ(say(call(FaultCall::kPrepare)), "");
  EXPECT_EQ(say(stillThere()), "");
  EXPECT_THAT(say(call(FaultCall::kApply)), HasSubstr("before the answer to the one before"));
  EXPECT_TRUE(dialogue_.answered({}, kBegin).ok());
  EXPECT_EQ(say(call(FaultCall::kApply)), "");
  EXPECT_TRUE(dialogue_.answered({}, kBegin).ok());
  EXPECT_EQ(dialogue_.answered({}, kBegin).code(), Code::kInternal) << "to no call";
}

TEST_F(DialogueTest, WhoIsNotHeardForTheLeaseIsEnded) {
  ASSERT_EQ(say(strikeMessage(), kBegin + 1s), "");
  EXPECT_EQ(dialogue_.due(), kBegin + 1s + kLease);
  EXPECT_EQ(why(dialogue_.overdue(kBegin + 1s + kLease - 1ns)), "");
  EXPECT_THAT(why(dialogue_.overdue(kBegin + 1s + kLease)), HasSubstr("for the lease, 3s"));
  ASSERT_EQ(say(stillThere(), kBegin + 2s), "");
  EXPECT_EQ(why(dialogue_.overdue(kBegin + 1s + kLease)), "");
  ASSERT_EQ(say(call(FaultCall::kPrepare), kBegin + 4s), "");
  EXPECT_EQ(dialogue_.due(), kBegin + 4s + kLease) << "any message does";
}

TEST_F(DialogueTest, AStrikeThatItsHolderDoesNotEndIsOverdue) {
  applied(kBegin);
  const TimePoint end = kBegin + kLongest + safety::kUndoGrace;
  for (TimePoint at = kBegin; at < end; at += 1s) {
    ASSERT_EQ(say(stillThere(), at), "");
    ASSERT_EQ(why(dialogue_.overdue(at)), "");
  }
  ASSERT_EQ(say(stillThere(), end - 1ns), "");
  EXPECT_EQ(dialogue_.due(), end);
  EXPECT_THAT(why(dialogue_.overdue(end)), HasSubstr("its longest, 10s, is over"));
}

TEST_F(DialogueTest, OneThatHasEndedByItselfIsNotOverdue) {
  applied(kBegin);
  const TimePoint end = kBegin + kLongest + safety::kUndoGrace;
  ASSERT_EQ(say(stillThere(), end - 1ns), "");
  EXPECT_FALSE(dialogue_.outlasts(end - 1ns));
  EXPECT_TRUE(dialogue_.outlasts(end));
  dialogue_.lapsed();
  EXPECT_FALSE(dialogue_.outlasts(end));
  EXPECT_EQ(why(dialogue_.overdue(end)), "");
}

TEST_F(DialogueTest, WhoIsOnlyRefusedIsEnded) {
  const wire::HolderAnswer no{.outcome = {.code = Code::kPermissionDenied, .message = "no"}};
  ASSERT_EQ(say(strikeMessage()), "");
  for (Duration at{}; at < kAdmissionBudget; at += 1s) {
    ASSERT_EQ(why(dialogue_.overdue(kBegin + at)), "");
    // There is always something to take back, so that says nothing.
    for (const auto& [which, answer] : {std::pair(FaultCall::kPrepare, no),
                                        std::pair(FaultCall::kRevert, wire::HolderAnswer{})}) {
      ASSERT_EQ(say(call(which), kBegin + at), "");
      ASSERT_TRUE(dialogue_.answered(answer, kBegin + at).ok());
      ASSERT_FALSE(dialogue_.admitted());
    }
  }
  EXPECT_EQ(dialogue_.due(), kBegin + kAdmissionBudget);
  EXPECT_THAT(why(dialogue_.overdue(kBegin + kAdmissionBudget)),
              HasSubstr("nothing that is allowed"));
  ASSERT_EQ(say(call(FaultCall::kPrepare), kBegin + kAdmissionBudget - 1s), "");
  ASSERT_TRUE(dialogue_.answered({}, kBegin + kAdmissionBudget - 1s).ok());
  EXPECT_TRUE(dialogue_.admitted());
  EXPECT_EQ(why(dialogue_.overdue(kBegin + kAdmissionBudget)), "");
}

TEST_F(DialogueTest, ALeaseThatNobodyWouldSeeTheEndOfIsRefused) {
  for (const Duration lease : {wire::kLongestLease + 1ns, Duration::max()}) {
    nlohmann::json message = strikeMessage();
    message["lease"] = lease.count();
    EXPECT_THAT(say(message), HasSubstr("lease: 10min at most"));
  }
}

TEST_F(DialogueTest, OneThatWasTakenBackOrNotDoneHasNoLongest) {
  applied(kBegin);
  ASSERT_EQ(say(call(FaultCall::kRevert), kBegin + 1s), "");
  ASSERT_TRUE(dialogue_.answered({}, kBegin + 1s).ok());
  EXPECT_EQ(dialogue_.due(), kBegin + 1s + kLease);
  ASSERT_EQ(say(stillThere(), kBegin + 60s), "");
  EXPECT_EQ(why(dialogue_.overdue(kBegin + 60s)), "");
  ASSERT_EQ(say(call(FaultCall::kApply), kBegin + 60s), "");
  const wire::HolderAnswer no{.outcome = {.code = Code::kPermissionDenied, .message = "no"}};
  ASSERT_TRUE(dialogue_.answered(no, kBegin + 60s).ok());
  EXPECT_EQ(dialogue_.due(), kBegin + 60s + kLease);
}

}  // namespace
}  // namespace faultline::faultd
