#include "harness/site/agents.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "harness/site/moments.h"
#include "tests/support/poll_until.h"
#include "wire/rank.h"

// The controller's side of agents: whose clock what they say is of, and what is heard when one of
// them is lost. The agents are played.

namespace faultline::site {
namespace {

using faultline::test::pollUntil;
using ::testing::HasSubstr;

constexpr Duration kAhead = 1000s;  // the clock of an agent

class AgentsTest : public ::testing::Test {
 protected:
  void add(int node, const ClockOffset& clock, Duration lease = {}) {
    auto ends = launch::MessageChannel::makePair();
    ASSERT_TRUE(ends.ok());
    far_.emplace(node, std::move(ends->second));
    ASSERT_TRUE(
        agents_.add(node, std::move(ends->first), clock, {.networkNamespace = "n", .lease = lease})
            .ok());
    const auto setup = told(node);
    EXPECT_EQ(std::get<wire::AgentSetup>(setup).networkNamespace, "n");
  }
  void say(int node, const wire::FromAgent& message) {
    EXPECT_TRUE(far_.at(node).send(wire::toJson(message)).ok());
  }
  wire::ToAgent told(int node) {
    const auto text = far_.at(node).receiveWithin(10s);
    EXPECT_TRUE(text.ok()) << text.status().message();
    auto message = wire::fromJson<wire::ToAgent>(*text);
    EXPECT_TRUE(message.ok()) << message.status().message();
    return *message;
  }
  /// Asked for its clock, it answers.
  void addAhead(int node) {
    add(node, ClockOffset{});
    say(node, wire::AgentReady{});
    ASSERT_TRUE(agents_.listen(0s).ok());
    EXPECT_FALSE(agents_.isReady(node)) << "its clock is not known";
    ASSERT_TRUE(agents_.listen(0s).ok());
    ASSERT_TRUE(std::holds_alternative<wire::AskClock>(told(node)));
    say(node, wire::ClockTold{now() + kAhead});
    ASSERT_TRUE(agents_.awaitReady(10s).ok());
  }

  Agents agents_{[](int node, const std::string& what, bool /*lives*/) {
    return errorf(Code::kUnavailable, "the agent of node {} {}", node, what);
  }};
  std::map<int, launch::MessageChannel> far_;
};

TEST_F(AgentsTest, NoneSpeaksForTheRankOfAnotherNode) {
  add(0, ClockOffset::same());
  add(1, ClockOffset::same());
  const auto rank = agents_.startRelayedRank(1, {}, "config");
  ASSERT_TRUE(rank.ok());
  say(0, wire::RankEnded{*rank, "a lie"});
  say(0, wire::RankSaid{*rank, "1"});
  say(0, wire::ClockTold{now()});
  ASSERT_TRUE(agents_.listen(0s).ok());
  EXPECT_FALSE(agents_.rankEnd(*rank).has_value());
  EXPECT_FALSE(agents_.rankSaid(*rank).has_value());
  say(1, wire::RankEnded{*rank, "the truth"});
  ASSERT_TRUE(agents_.listen(0s).ok());
  EXPECT_EQ(agents_.rankEnd(*rank), "the truth");
}

TEST_F(AgentsTest, WhoDoesNotReadKeepsNobodyWhoWantsToGo) {
  add(0, ClockOffset::same());
  agents_.giveUpWhen([] { return true; });
  const TimePoint begin = now();
  Status told;
  constexpr int kFarTooMuch = 1000;
  for (int i = 0; i < kFarTooMuch && told.ok(); ++i) {
    told = agents_.startRelayedRank(0, {}, std::string(100'000, 'x')).status();
  }
  EXPECT_THAT(told.message(), HasSubstr("cannot be told anything any more"));
  EXPECT_LT(now() - begin, launch::MessageChannel::kSendTimeout);
}

TEST_F(AgentsTest, OneThatNeverStopsTalkingLeavesTheCallerItsTurn) {
  add(0, ClockOffset::same());
  say(0, wire::AgentReady{});
  ASSERT_TRUE(agents_.awaitReady(10s).ok());
  const auto job = agents_.startRelayedRank(0, {}, "x");
  ASSERT_TRUE(job.ok());
  constexpr int kWords = 700;
  // Written at once: so many small messages find no room in a socket otherwise.
  std::string words;
  for (int i = 0; i < kWords; ++i) {
    const std::string word = launch::MessageChannel::textOf(
        wire::toJson(wire::FromAgent(wire::RankSaid{*job, std::to_string(i)})));
    words += {static_cast<char>(word.size()), 0, 0, 0};
    words += word;
  }
  ASSERT_EQ(::write(far_.at(0).fd(), words.data(), words.size()), std::ssize(words));
  ASSERT_TRUE(agents_.listen(10s).ok());
  int heard = 0;
  const auto hear = [&] {
    while (const auto said = agents_.rankSaid(*job)) EXPECT_EQ(*said, heard++);
  };
  hear();
  EXPECT_GT(heard, 0);
  EXPECT_LT(heard, kWords) << "all of it at once";
  for (int rounds = 0; rounds < 10; ++rounds) {
    ASSERT_TRUE(agents_.listen(0s).ok());
    hear();
  }
  EXPECT_EQ(heard, kWords) << "what had come already is not forgotten";
}

TEST_F(AgentsTest, ChangesOfAHeldFaultAreOfOurClock) {
  addAhead(4);
  const auto fault = agents_.startFault(4, {.kind = "probe"});
  ASSERT_TRUE(fault.ok()) << fault.status().message();
  EXPECT_EQ(std::get<wire::HeldFault>(std::get<wire::TellHolder>(told(4)).message).kind, "probe");
  const TimePoint before = now() - 20ms;
  const TimePoint after = now() - 10ms;
  say(4, wire::HolderSaid{
             *fault,
             wire::HolderAnswer{
                 .changes = {{.broken = true, .before = before + kAhead, .after = after + kAhead}},
                 .lapsed = after + kAhead}});
  ASSERT_TRUE(agents_.listen(10s).ok());
  const auto said = agents_.faultSaid(*fault);
  ASSERT_TRUE(said);
  const auto& answer = std::get<wire::HolderAnswer>(*said);
  const Duration error = agents_.clockError();
  EXPECT_GT(error, 0s);
  ASSERT_LT(error, kAhead);
  ASSERT_EQ(answer.changes.size(), 1u);
  EXPECT_LE(std::chrono::abs(answer.changes[0].before - before), error);
  EXPECT_LE(std::chrono::abs(answer.changes[0].after - after), error);
  EXPECT_LE(std::chrono::abs(*answer.lapsed - after), error);
  EXPECT_FALSE(agents_.faultSaid(*fault));
}

TEST_F(AgentsTest, SoAreThoseOfItsPrograms) {
  addAhead(0);
  const auto job = agents_.startGuard(0, {}, /*read=*/false);
  ASSERT_TRUE(job.ok()) << job.status().message();
  const TimePoint at = now();
  say(0, wire::GuardSaid{*job, wire::GuardStarted{at + kAhead}});
  ASSERT_TRUE(agents_.listen(10s).ok());
  const auto said = agents_.guardSaid(*job);
  ASSERT_TRUE(said);
  EXPECT_LE(std::chrono::abs(std::get<wire::GuardStarted>(*said).at - at), agents_.clockError());
}

TEST_F(AgentsTest, TheClockOfThisMachineIsNotAskedFor) {
  add(1, ClockOffset::same());
  say(1, wire::AgentReady{});
  ASSERT_TRUE(agents_.awaitReady(10s).ok());
  ASSERT_TRUE(agents_.listen(10ms).ok());
  EXPECT_FALSE(far_.at(1).receive()->has_value());
  EXPECT_EQ(agents_.clockError(), 0s);
}

TEST_F(AgentsTest, OneThatIsLostDoesNotKeepOthersFromBeingHeard) {
  for (const int node : {1, 2}) {
    add(node, ClockOffset::same());
    say(node, wire::AgentReady{});
  }
  ASSERT_TRUE(agents_.awaitReady(10s).ok());
  const auto job = agents_.startGuard(2, {}, /*read=*/false);
  ASSERT_TRUE(job.ok());
  far_.erase(1);
  EXPECT_THAT(agents_.listen(10s).message(), HasSubstr("the agent of node 1 is not heard"));
  EXPECT_TRUE(agents_.isLost(1));
  EXPECT_FALSE(agents_.isLost(2));
  say(2, wire::GuardSaid{*job, wire::GuardFinished{}});
  EXPECT_TRUE(pollUntil(10s, [&] {
    EXPECT_FALSE(agents_.listen(10ms).ok()) << "it stays lost";
    return agents_.guardSaid(*job).has_value();
  }));
  EXPECT_FALSE(agents_.askForRails(1).ok());
}

TEST_F(AgentsTest, WhatAnAgentCannotDoIsTheErrorOfItsNode) {
  add(3, ClockOffset::same());
  say(3, wire::AgentError{"open n: No such file or directory"});
  const Status status = agents_.awaitReady(10s);
  EXPECT_EQ(status.message(),
            "the agent of node 3 cannot do its work: open n: No such file or directory");
}

TEST_F(AgentsTest, OneWithALeaseIsAskedAndLostWhenItIsSilent) {
  constexpr Duration kLease = 300ms;
  add(3, ClockOffset::same(), kLease);
  say(3, wire::AgentReady{});
  ASSERT_TRUE(agents_.listen(0s).ok());
  ASSERT_TRUE(agents_.listen(0s).ok());
  ASSERT_TRUE(std::holds_alternative<wire::AskClock>(told(3)));
  say(3, wire::ClockTold{now()});
  const TimePoint begun = now();
  EXPECT_EQ(agents_.clockError(), 0s) << "its clock is known all the same";
  Status status;
  ASSERT_TRUE(pollUntil(10s, [&] {
    status = agents_.listen(10ms);
    return !status.ok();
  }));
  EXPECT_EQ(status.message(), "the agent of node 3 has not answered for 300ms");
  EXPECT_GE(now() - begun, kLease);
  EXPECT_TRUE(agents_.isLost(3));
}

TEST_F(AgentsTest, WhatARelayedRankSaysIsOfOurClock) {
  addAhead(2);
  const auto job = agents_.startRelayedRank(2, {{"A", "b"}}, {{"rank", 7}});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const auto start = std::get<wire::StartRank>(told(2));
  EXPECT_TRUE(start.relayed);
  EXPECT_EQ(start.environment.at("A"), "b");
  EXPECT_EQ(std::get<wire::TellRank>(told(2)).message, R"({"rank":7})");
  const TimePoint at = now() - 20ms;
  say(2, wire::RankSaid{
             *job,
             wire::toJson(wire::FromRank(wire::Begin{.iteration = 4, .at = at + kAhead})).dump()});
  say(2, wire::RankSaid{*job, R"({"type": "nonsense"})"});
  std::optional<nlohmann::json> said;
  ASSERT_TRUE(pollUntil(10s, [&] {
    (void)agents_.listen(10ms);
    said = agents_.rankSaid(*job);
    return said.has_value();
  }));
  const auto begin = std::get<wire::Begin>(*wire::fromJson<wire::FromRank>(*said));
  EXPECT_EQ(begin.iteration, 4);
  EXPECT_LT(abs(begin.at - at), 5ms);
  ASSERT_TRUE(pollUntil(10s, [&] {
    (void)agents_.listen(10ms);
    said = agents_.rankSaid(*job);
    return said.has_value();
  }));
  EXPECT_EQ((*said)["type"], "nonsense") << "whoever reads it says so";
}

TEST_F(AgentsTest, FactsCountersAndLogsAreKeptForWhoAsks) {
  add(1, ClockOffset::same());
  EXPECT_TRUE(agents_.toldCounters(1).empty());
  EXPECT_FALSE(agents_.toldFacts(1));
  say(1, wire::HostFacts{.hostname = "h"});
  say(1, wire::CountersTold{{{1, 2}}});
  say(1, wire::CountersTold{{{3, 4}}});
  ASSERT_TRUE(agents_.listen(10s).ok());
  ASSERT_TRUE(pollUntil(10s, [&] {
    (void)agents_.listen(10ms);
    return agents_.toldCounters(1).size() == 1 && agents_.toldCounters(1)[0].sent == 3;
  }));
  EXPECT_EQ(agents_.toldFacts(1)->hostname, "h");
}

TEST_F(AgentsTest, LinesOfALogSayOfWhomTheyAre) {
  add(1, ClockOffset::same());
  int log[2];
  ASSERT_EQ(::pipe2(log, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd near(log[0]);
  const UniqueFd far(log[1]);
  const auto early = agents_.startRelayedRank(1, {}, "x", "rank 0");
  ASSERT_TRUE(early.ok());
  say(1, wire::Logged{*early, "thrown away\n"});
  ASSERT_TRUE(agents_.listen(10s).ok());
  agents_.logTo(far.get(), {"n0", "n1"});
  const auto job = agents_.startRelayedRank(1, {}, "x", "rank 3");
  ASSERT_TRUE(job.ok());
  constexpr int kNobodys = 99;
  say(1, wire::Logged{kNobodys, "of nobody\n"});
  say(1, wire::Logged{*job, "one\nanother"});
  say(1, wire::RankEnded{*job, "exit code 0"});
  ASSERT_TRUE(pollUntil(10s, [&] {
    (void)agents_.listen(10ms);
    return agents_.rankEnd(*job).has_value();
  }));
  char text[256];
  const ssize_t size = ::read(near.get(), text, sizeof text);
  ASSERT_GT(size, 0);
  const std::string from = "n1 rank 3 (job " + std::to_string(*job) + "): ";
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(size)), from + "one\n" + from + "another\n");
}

TEST(MomentsTest, AllOfARanksWordsArePushed) {
  wire::Done done;
  done.network.failovers.resize(2);
  done.network.failovers[1].detected = TimePoint(5s);
  std::variant<wire::Done, wire::Ready> message(done);
  std::vector<TimePoint> seen;
  eachMoment(message, [&](TimePoint& moment) {
    seen.push_back(moment);
    moment += 1s;
  });
  EXPECT_THAT(seen, ::testing::Contains(TimePoint(5s)));
  EXPECT_EQ(std::get<wire::Done>(message).network.failovers[1].detected, TimePoint(6s));
  EXPECT_FALSE(std::get<wire::Done>(message).network.failovers[0].detected);
}

TEST_F(AgentsTest, OneThatNeverAnswersIsWaitedForOnlyAsLongAsSomebodyDoes) {
  constexpr Duration kUsual = 10min;
  add(3, ClockOffset::same());
  int asked = 0;
  agents_.giveUpWhen([&asked] { return ++asked > 3; });
  const TimePoint begun = now();
  const Status status = agents_.awaitReady(kUsual);
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(), HasSubstr("start the agent of node 3: nobody waits"));
  EXPECT_LT(now() - begun, kUsual / 10);
}

TEST_F(AgentsTest, OneThatNeverAnswersIsNotWaitedForForEver) {
  add(3, ClockOffset::same());
  const Status status = agents_.awaitReady(50ms);
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("the agent of node 3 is not ready"));
}

}  // namespace
}  // namespace faultline::site
