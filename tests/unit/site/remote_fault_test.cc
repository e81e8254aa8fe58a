// RemoteFault alone: what holds its fault says what a test tells it to. With a holder that holds
// one: tests/unit/agent/remote_fault_test.cc.
#include "harness/site/remote_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace faultline::site {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kBudget = 100ms;

class ScriptedLine final : public HolderLine {
 public:
  Result<int> startFault(int /*host*/, const wire::HeldFault& fault) override {
    told.push_back("start");
    held = fault;
    return kNumber;
  }
  Status tellFault(int fault, const wire::ToHolder& message) override {
    EXPECT_EQ(fault, kNumber);
    RETURN_IF_ERROR(std::exchange(refusal, {}));
    told.push_back(enumName(std::get<wire::CallFault>(message).call));
    if (mute) return okStatus();
    wire::HolderAnswer answer;
    if (!answers.empty()) {
      answer = std::move(answers.front());
      answers.pop_front();
    }
    said.push_back(answer);
    return okStatus();
  }
  std::optional<wire::FromHolder> faultSaid(int fault) override {
    EXPECT_EQ(fault, kNumber);
    if (said.empty()) return std::nullopt;
    std::optional message(std::move(said.front()));
    said.pop_front();
    return message;
  }
  Status endFault(int fault) override {
    EXPECT_EQ(fault, kNumber);
    told.push_back("end");
    return okStatus();
  }
  Status listen(Duration timeout) override {
    ::poll(nullptr, 0, static_cast<int>(toMilliseconds(timeout)));
    return trouble;
  }

  wire::HeldFault held;
  std::vector<std::string> told;           ///< "start", the types of messages, "end"
  std::deque<wire::HolderAnswer> answers;  ///< to the next messages; to more of them: success
  bool mute = false;                       ///< no answers at all
  Status refusal;                          ///< of the next message
  Status trouble;                          ///< of listening
  std::deque<wire::FromHolder> said;

 private:
  static constexpr int kNumber = 7;
};

class RemoteFaultTest : public ::testing::Test {
 protected:
  /// An answer after a change, that ended some time ago.
  static wire::HolderAnswer changed(bool broken, Duration ago = {}) {
    wire::HolderAnswer answer;
    answer.changes.push_back({.broken = broken, .before = now() - 1ms - ago, .after = now() - ago});
    return answer;
  }
  static wire::HolderAnswer failed(const Status& status) {
    return {.outcome = wire::Outcome::of(status)};
  }
  void prepare() { ASSERT_TRUE(fault_->prepare().ok()); }
  void strike() {
    prepare();
    line_.answers = {changed(true)};
    ASSERT_TRUE(fault_->apply().ok());
  }

  ScriptedLine line_;
  std::optional<RemoteFault> fault_{std::in_place,
                                    line_,
                                    1,
                                    "host 1",
                                    wire::HeldFault{.kind = "probe"},
                                    RemoteManner{kBudget, 1s}};
};

TEST_F(RemoteFaultTest, ItsHolderIsStartedOnceAndEndedWhenTheFaultIsTakenBack) {
  prepare();
  strike();
  fault_.reset();
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "prepare", "apply", "revert", "end"));
}

TEST_F(RemoteFaultTest, WhatWasNotAppliedIsNotTakenBack) {
  EXPECT_TRUE(fault_->revert().ok()) << "nor was it prepared";
  prepare();
  EXPECT_TRUE(fault_->revert().ok());
  fault_.reset();
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "end"));
}

// A guest that hangs: Ctrl-C ends what waits for it, also what takes the fault back.
TEST_F(RemoteFaultTest, AGuestIsNotWaitedForWhenNobodyWaitsForIt) {
  constexpr Duration kUsual = 10min;
  bool stop = false;
  RemoteFault fault(line_, 1, "host 1", wire::HeldFault{.kind = "probe"}, {kUsual, 1s});
  fault.stopWhen([&stop] { return stop; });
  ASSERT_TRUE(fault.prepare().ok());
  line_.answers = {changed(true)};
  ASSERT_TRUE(fault.apply().ok());
  line_.mute = true;
  stop = true;
  const TimePoint begun = now();
  EXPECT_EQ(fault.prepare().code(), Code::kAborted);
  EXPECT_EQ(fault.apply().code(), Code::kAborted);
  EXPECT_TRUE(fault.revert().ok()) << "the guest ends, and the fault with it";
  EXPECT_LT(now() - begun, kUsual / 10);
  line_.told.clear();
  EXPECT_TRUE(fault.revert().ok());
  EXPECT_THAT(line_.told, ElementsAre()) << "there is nothing left to take back";
}

TEST_F(RemoteFaultTest, WhenNobodyWaitsItIsStillTakenBack) {
  fault_->stopWhen([] { return true; });
  line_.mute = false;
  prepare();
  line_.answers = {changed(true)};
  ASSERT_TRUE(fault_->apply().ok());
  line_.answers = {failed(errorf(Code::kNotRestored, "the queue is still there"))};
  EXPECT_EQ(fault_->revert().code(), Code::kNotRestored) << "as the guest says";
  EXPECT_TRUE(fault_->revert().ok());
}

TEST_F(RemoteFaultTest, WhatFailsHalfWayIsTakenBack) {
  prepare();
  line_.answers = {failed(errorf(Code::kIo, "torn"))};
  EXPECT_EQ(fault_->apply().code(), Code::kIo);
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply", "revert"));
}

TEST_F(RemoteFaultTest, WhatWasNotTakenBackIsTriedAgainAndIsNoChange) {
  strike();
  line_.answers = {failed(errorf(Code::kNotRestored, "the queue is still there")), changed(false)};
  EXPECT_EQ(fault_->revert().code(), Code::kNotRestored);
  EXPECT_EQ(fault_->transitions().size(), 1u);
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_EQ(fault_->transitions().size(), 2u);
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply", "revert", "revert"));
}

// Told something, the agent would start another holder.
TEST_F(RemoteFaultTest, AHolderThatHasEndedIsToldNothing) {
  strike();
  line_.said.push_back(wire::Gone{"killed"});
  EXPECT_THAT(fault_->step(now()).message(), HasSubstr("has ended: killed"));
  EXPECT_EQ(fault_->evidence().status().code(), Code::kUnavailable);
  EXPECT_EQ(fault_->revert().code(), Code::kUnavailable);
  EXPECT_EQ(fault_->apply().code(), Code::kUnavailable);
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply"));
}

TEST_F(RemoteFaultTest, WhatWasTakenBackNeedsNoHolder) {
  strike();
  EXPECT_TRUE(fault_->revert().ok());
  line_.said.push_back(wire::Gone{});
  EXPECT_EQ(fault_->step(now()).code(), Code::kUnavailable);
  EXPECT_TRUE(fault_->revert().ok());
}

// The clocks are known with an error.
TEST_F(RemoteFaultTest, TheFirstChangeIsNotBeforeItsRequest) {
  prepare();
  const TimePoint begin = now();
  line_.answers = {changed(true, 1h)};
  EXPECT_TRUE(fault_->apply().ok());
  ASSERT_EQ(fault_->transitions().size(), 1u);
  EXPECT_GE(fault_->transitions()[0].before, begin);
  EXPECT_EQ(fault_->transitions()[0].after, fault_->transitions()[0].before);
}

TEST_F(RemoteFaultTest, EachChangeHasItsOwnMoments) {
  strike();
  // What it did by itself since then, and its end.
  wire::HolderAnswer end = changed(false, 3s);
  end.changes.push_back(changed(true, 2s).changes[0]);
  end.changes.back().peer = "10.1.0.2";
  end.changes.push_back(changed(false, 1s).changes[0]);
  line_.answers = {end};
  EXPECT_TRUE(fault_->revert().ok());
  ASSERT_EQ(fault_->transitions().size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    const injector::Transition& made = fault_->transitions()[i + 1];
    EXPECT_EQ(made.broken, i == 1);
    EXPECT_EQ(made.before, end.changes[i].before);
    EXPECT_EQ(made.after, end.changes[i].after);
    EXPECT_EQ(made.peer, end.changes[i].peer);
  }
}

TEST_F(RemoteFaultTest, AnEndThatNobodyNoticedIsOfItsStrike) {
  strike();
  wire::HolderAnswer lapsed = changed(false);
  lapsed.lapsed = now() - 1h;
  line_.answers = {lapsed};
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_EQ(fault_->lapsedAt(), lapsed.lapsed);
  line_.answers = {changed(true)};
  EXPECT_TRUE(fault_->apply().ok());
  EXPECT_FALSE(fault_->lapsedAt());
}

TEST_F(RemoteFaultTest, WhatTheLineSaysOfItselfIsTheErrorOfEachCall) {
  prepare();
  line_.trouble = errorf(Code::kIo, "host 1 is gone");
  line_.mute = true;
  EXPECT_EQ(fault_->step(now()).message(), "host 1 is gone");
  EXPECT_EQ(fault_->apply().message(), "host 1 is gone");
}

TEST_F(RemoteFaultTest, ARequestThatWasNotSentIsNotWaitedFor) {
  prepare();
  line_.refusal = errorf(Code::kIo, "full");
  EXPECT_EQ(fault_->apply().message(), "full");
  const Status reverted = fault_->revert();
  EXPECT_TRUE(reverted.ok()) << reverted.message();
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "revert"));
}

TEST_F(RemoteFaultTest, AnAnswerIsWaitedForAsLongAsItsBudget) {
  EXPECT_EQ(fault_->evidenceBudget(), kBudget);
  prepare();
  line_.mute = true;
  const TimePoint begin = now();
  const Status late = fault_->apply();
  EXPECT_GE(now() - begin, kBudget);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(late.message(),
              HasSubstr("probe on host 1 has not answered for " + formatDuration(kBudget)));
}

TEST_F(RemoteFaultTest, ALateAnswerIsNotTakenForThatOfTheNextCall) {
  prepare();
  line_.mute = true;
  EXPECT_EQ(fault_->apply().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(fault_->revert().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply")) << "it is still busy with that";
  line_.mute = false;
  line_.said.push_back(changed(true));
  line_.answers = {failed(errorf(Code::kNotRestored, "the queue is still there")), changed(false)};
  EXPECT_EQ(fault_->revert().code(), Code::kNotRestored) << "its own answer";
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_EQ(fault_->transitions().size(), 2u) << "that of the late answer is not lost";
}

TEST_F(RemoteFaultTest, EvidenceIsAskedForOnce) {
  strike();
  line_.mute = true;
  for (int time = 0; time < 2; ++time) {
    const auto evidence = fault_->evidence([] { return true; });
    ASSERT_TRUE(evidence.ok()) << evidence.status().message();
    EXPECT_FALSE(evidence->ok);
  }
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply", "evidence"));
  wire::HolderAnswer answer = changed(true);
  answer.evidence = {"probe", "calls", "struck", true};
  line_.said.push_back(answer);
  const auto evidence = fault_->evidence();
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_TRUE(evidence->ok);
}

TEST_F(RemoteFaultTest, AnErrorInsteadOfEvidenceIsReturned) {
  strike();
  line_.answers = {failed(errorf(Code::kIo, "no counters"))};
  EXPECT_EQ(fault_->evidence().status().message(), "no counters");
}

/// Of a node that undoes what it was asked for whatever dies.
class UndoneThereTest : public RemoteFaultTest {
 protected:
  UndoneThereTest() {
    fault_.emplace(line_, 1, "host n1", wire::HeldFault{.kind = "probe"},
                   RemoteManner{.answers = kBudget,
                                .lastAnswer = 1ms,
                                .undone =
                                    [this](const Status& why) {
                                      reasons_.push_back(why.message());
                                      endedAt_.push_back(line_.told.back() == "end");
                                      return undone_;
                                    },
                                .spare = 5s,
                                .longest = 30s});
  }
  std::string observed() {
    const auto evidence = fault_->evidence();
    EXPECT_TRUE(evidence.ok()) << evidence.status().message();
    EXPECT_FALSE(evidence.ok() && evidence->ok);
    return evidence.ok() ? evidence->observed : "";
  }

  std::vector<std::string> reasons_;  ///< why it was asked whether it is undone
  std::vector<bool> endedAt_;         ///< whether its holder had been ended by then
  Status undone_;
};

TEST_F(UndoneThereTest, AHolderThatHasEndedLeavesNoEvidenceAndTheNodeUndoesIt) {
  strike();
  line_.said.push_back(wire::Gone{"killed"});
  EXPECT_TRUE(fault_->step(now()).ok()) << "the run goes on, and is invalid";
  EXPECT_THAT(observed(), HasSubstr("what holds probe on host n1 has ended: killed"));
  EXPECT_THAT(reasons_, ElementsAre());
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_THAT(reasons_, ElementsAre(HasSubstr("has ended: killed")));
  ASSERT_EQ(fault_->transitions().size(), 2u);
  EXPECT_FALSE(fault_->transitions()[1].broken);
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_EQ(reasons_.size(), 1u) << "there is nothing left to be done";
}

TEST_F(UndoneThereTest, WhatTheNodeHasEndedLeavesNoEvidence) {
  strike();
  line_.said.push_back(
      wire::HolderBroken{wire::Outcome::of(errorf(Code::kDeadlineExceeded, "nobody was heard"))});
  EXPECT_THAT(observed(), HasSubstr("probe on host n1 was ended there: nobody was heard"));
  line_.said.push_back(wire::Gone{"closed"});
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_THAT(reasons_, ElementsAre(HasSubstr("nobody was heard")));
}

TEST_F(UndoneThereTest, WhatNobodySaysWasUndoneIsTheError) {
  strike();
  line_.said.push_back(wire::Gone{"killed"});
  undone_ = errorf(Code::kNotRestored, "it is still there");
  EXPECT_EQ(fault_->revert().code(), Code::kNotRestored);
  EXPECT_EQ(fault_->transitions().size(), 1u);
  undone_ = okStatus();
  EXPECT_TRUE(fault_->revert().ok());
}

TEST_F(UndoneThereTest, WhatItsHolderSaysIsTheTruth) {
  strike();
  line_.answers = {failed(errorf(Code::kNotRestored, "an address is missing")), changed(false)};
  const Status reverted = fault_->revert();
  EXPECT_EQ(reverted.code(), Code::kNotRestored);
  EXPECT_EQ(reverted.message(), "host n1: an address is missing");
  EXPECT_THAT(reasons_, ElementsAre());
  EXPECT_TRUE(fault_->revert().ok());
}

TEST_F(UndoneThereTest, ANodeThatDoesNotAnswerIsAskedWhetherItIsUndoneAlsoWithCtrlC) {
  bool stop = false;
  fault_->stopWhen([&stop] { return stop; });
  strike();
  line_.mute = true;
  stop = true;
  EXPECT_TRUE(fault_->revert().ok());
  EXPECT_EQ(reasons_.size(), 1u);
}

// The node undoes what loses its holder; one that is kept would be waited for in vain.
TEST_F(UndoneThereTest, AHolderThatDoesNotAnswerIsEndedBeforeItsUndoIsWaitedFor) {
  strike();
  line_.mute = true;
  undone_ = errorf(Code::kNotRestored, "it is still there");
  EXPECT_EQ(fault_->revert().code(), Code::kNotRestored);
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply", "revert", "end"));
  EXPECT_THAT(endedAt_, ElementsAre(true));
  fault_.reset();
  EXPECT_EQ(reasons_.size(), 1u) << "it was waited for once";
}

TEST_F(UndoneThereTest, WhoGathersEvidenceIsNotWaitedForWithCtrlC) {
  bool stop = false;
  constexpr Duration kLast = 10min;
  RemoteFault fault(line_, 1, "host n1", {.kind = "probe"},
                    {.answers = kLast, .lastAnswer = kLast, .undone = [this](const Status& why) {
                       reasons_.push_back(why.message());
                       return undone_;
                     }});
  fault.stopWhen([&stop] { return stop; });
  ASSERT_TRUE(fault.prepare().ok());
  line_.answers = {changed(true)};
  ASSERT_TRUE(fault.apply().ok());
  line_.mute = true;
  ASSERT_TRUE(fault.evidence([] { return true; }).ok());
  stop = true;
  const TimePoint begun = now();
  EXPECT_TRUE(fault.revert().ok());
  EXPECT_LT(now() - begun, kLast / 10);
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply", "evidence", "end"));
  EXPECT_EQ(reasons_.size(), 1u);
}

TEST_F(UndoneThereTest, AStrikeAfterOneWhoseHolderWasEndedHasAnother) {
  strike();
  line_.mute = true;
  EXPECT_TRUE(fault_->revert().ok());
  line_.told.clear();
  line_.mute = false;
  line_.answers = {{}, changed(true)};
  EXPECT_TRUE(fault_->apply().ok());
  EXPECT_THAT(line_.told, ElementsAre("start", "prepare", "apply"));
}

TEST_F(UndoneThereTest, TheNextStrikeHasAnotherHolder) {
  strike();
  line_.said.push_back(wire::Gone{"killed"});
  EXPECT_TRUE(fault_->revert().ok());
  line_.told.clear();
  line_.answers = {{}, changed(true)};
  EXPECT_TRUE(fault_->apply().ok());
  EXPECT_THAT(line_.told, ElementsAre("end", "start", "prepare", "apply"));
}

TEST_F(UndoneThereTest, ItLastsALittleLongerThanWasAskedForWhereThatIsAllowed) {
  for (const auto& [asked, told] :
       {std::pair<Duration, Duration>(2s, 7s), {28s, 30s}, {31s, 31s}}) {
    RemoteFault fault(line_, 1, "host n1", {.kind = "probe"},
                      {.answers = kBudget, .spare = 5s, .longest = 30s});
    fault.noLongerThan(asked);
    ASSERT_TRUE(fault.prepare().ok());
    EXPECT_EQ(line_.held.longest, told);
  }
}

}  // namespace
}  // namespace faultline::site
