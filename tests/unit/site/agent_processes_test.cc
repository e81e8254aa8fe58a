#include "harness/site/agent_processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_text.h"
#include "tests/support/run_program.h"
#include "wire/agent.h"
#include "wire/rank.h"

// What processes say that agents have started, and what is said for them when they have ended. The
// agent is played; a real one is in tests/netns/run.

namespace faultline::site {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kNode = 3;
constexpr int kFirstJob = 1;
constexpr int kNoInterrupt = -1;

class AgentProcessesTest : public ::testing::Test {
 protected:
  AgentProcessesTest()
      : agents_([](int node, const std::string& what, bool /*lives*/) {
          return errorf(Code::kUnavailable, "the agent of node {} {}", node, what);
        }) {
    auto ends = launch::MessageChannel::makePair();
    EXPECT_TRUE(ends.ok());
    far_.emplace(std::move(ends->second));
    EXPECT_TRUE(agents_.add(kNode, std::move(ends->first), ClockOffset::same(), {}).ok());
  }

  void say(const wire::FromAgent& message) { EXPECT_TRUE(far_->send(wire::toJson(message)).ok()); }
  /// The next of a type that the agent is told.
  template <typename Message>
  Message told() {
    for (;;) {
      const auto text = far_->receiveWithin(10s);
      EXPECT_TRUE(text.ok()) << text.status().message();
      if (!text.ok()) return {};
      const auto message = wire::fromJson<wire::ToAgent>(*text);
      EXPECT_TRUE(message.ok()) << message.status().message();
      if (const auto* const found = std::get_if<Message>(&*message)) return *found;
    }
  }

  /// A rank that the agent says it has started, and the rank's own end.
  std::pair<std::unique_ptr<Processes>, launch::MessageChannel> startRank() {
    say(wire::JobStarted{kFirstJob});
    auto ranks = AgentProcesses::startRanks(
        agents_, {{.node = kNode, .config = {{"rank", 0}}, .environment = {{"A", "b"}}}},
        STDERR_FILENO);
    EXPECT_TRUE(ranks.ok()) << ranks.status().message();
    const auto start = told<wire::StartRank>();
    EXPECT_EQ(start.job, kFirstJob);
    EXPECT_EQ(start.environment.at("A"), "b");
    auto messages = far_->takeDescriptor();
    EXPECT_TRUE(messages && far_->takeDescriptor()) << "its channel, and its log";
    launch::MessageChannel rank(std::move(*messages));
    EXPECT_EQ(*rank.receiveWithin(10s), (json{{"rank", 0}}));
    return {std::move(*ranks), std::move(rank)};
  }

  static std::vector<json> listen(Processes& processes, Status* trouble = nullptr) {
    std::vector<json> heard;
    const TimePoint deadline = now() + 10s;
    while (!processes.allEnded() && now() < deadline) {
      const Status status = processes.poll(10ms, kNoInterrupt, [&](int, const json& message) {
        heard.push_back(message);
        return okStatus();
      });
      if (status.ok()) continue;
      if (trouble != nullptr) *trouble = status;
      EXPECT_NE(trouble, nullptr) << status.message();
      break;
    }
    return heard;
  }

  Agents agents_;
  std::optional<launch::MessageChannel> far_;
};

TEST_F(AgentProcessesTest, ARankThatEndsWithoutALastWordIsGoneAsItsAgentSays) {
  auto [ranks, rank] = startRank();
  EXPECT_TRUE(rank.send(wire::toJson(wire::FromRank(wire::Ready{}))).ok());
  rank.release().reset();
  say(wire::RankEnded{kFirstJob, "killed by signal 9 (Killed)"});
  const std::vector<json> heard = listen(*ranks);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0]["type"], "ready");
  EXPECT_TRUE(wire::isGone(heard[1]));
  EXPECT_EQ(heard[1]["message"], "killed by signal 9 (Killed)");
}

TEST_F(AgentProcessesTest, RanksOfOtherMachinesAreToldAndHeardThroughTheirAgent) {
  say(wire::JobStarted{kFirstJob});
  auto ranks = AgentProcesses::startRelayedRanks(
      agents_, {{.node = kNode, .config = {{"rank", 0}}, .environment = {{"A", "b"}}}});
  ASSERT_TRUE(ranks.ok()) << ranks.status().message();
  EXPECT_TRUE(told<wire::StartRank>().relayed);
  EXPECT_EQ(told<wire::TellRank>().message, R"({"rank":0})");
  (*ranks)->broadcast(wire::toJson(wire::ToRank(wire::Start{})));
  EXPECT_EQ(told<wire::TellRank>().message, R"({"type":"start"})");
  say(wire::RankSaid{kFirstJob, wire::toJson(wire::FromRank(wire::Ready{})).dump()});
  say(wire::RankEnded{kFirstJob, "killed by signal 9 (Killed)"});
  const std::vector<json> heard = listen(**ranks);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0]["type"], "ready");
  EXPECT_TRUE(wire::isGone(heard[1]));
  EXPECT_EQ(heard[1]["message"], "killed by signal 9 (Killed)");
}

TEST_F(AgentProcessesTest, NoRelayedRankSaysOfItselfThatItIsGone) {
  say(wire::JobStarted{kFirstJob});
  auto ranks = AgentProcesses::startRelayedRanks(agents_, {{.node = kNode, .config = {}}});
  ASSERT_TRUE(ranks.ok()) << ranks.status().message();
  say(wire::RankSaid{kFirstJob, wire::toJson(wire::FromRank(wire::Gone{"not at all"})).dump()});
  Status trouble;
  (void)listen(**ranks, &trouble);
  EXPECT_THAT(trouble.message(), HasSubstr("listen to rank 0: it says of itself"));
  say(wire::RankEnded{kFirstJob, "exit code 0"});
}

TEST_F(AgentProcessesTest, ARankThatEndsWithItsAgentIsNotTakenForOneThatFailed) {
  auto [ranks, rank] = startRank();
  rank.release().reset();
  // The rank's end is noticed first.
  std::thread agent([this] {
    std::this_thread::sleep_for(50ms);
    far_.reset();
  });
  Status trouble;
  EXPECT_THAT(listen(*ranks, &trouble), ElementsAre());
  agent.join();
  EXPECT_EQ(trouble.code(), Code::kUnavailable);
  EXPECT_THAT(trouble.message(), HasSubstr("the agent of node 3 is not heard any more"));
  EXPECT_TRUE(ranks->kill().ok()) << "with its agent it is gone";
}

TEST_F(AgentProcessesTest, NobodySaysOfHimselfThatHeIsGone) {
  auto [ranks, rank] = startRank();
  EXPECT_TRUE(rank.send(wire::toJson(wire::FromRank(wire::Gone{"not at all"}))).ok());
  Status trouble;
  (void)listen(*ranks, &trouble);
  EXPECT_EQ(trouble.code(), Code::kInvalidArgument);
  EXPECT_THAT(trouble.message(), HasSubstr("listen to rank 0: it says of itself"));
  say(wire::RankEnded{kFirstJob, "exit code 0"});
}

TEST_F(AgentProcessesTest, AnErrorOfTheListenerNamesWhoWasHeard) {
  auto [ranks, rank] = startRank();
  EXPECT_TRUE(rank.send({{"type", "explode"}}).ok());
  const Status status = ranks->poll(10s, kNoInterrupt, [](int, const json& message) {
    return wire::fromJson<wire::FromRank>(message).status();
  });
  EXPECT_THAT(status.message(), HasSubstr("listen to rank 0: type: expected one of joined"));
  say(wire::RankEnded{kFirstJob, "exit code 0"});
}

TEST_F(AgentProcessesTest, FilesOfAnotherMachineComeIntoTheFolderHere) {
  const testing::TemporaryFolder folder;
  GuardProcess guard{.node = kNode, .job = {}, .folder = folder.path() / "run"};
  guard.job.programs.push_back(
      {.stdoutPath = "/there/rank0/stdout.txt", .stderrPath = "/there/rank0/stderr.txt"});
  guard.files = {{"rank0/p", wire::Bringing::kLines}};
  say(wire::JobStarted{kFirstJob});
  auto guards = AgentProcesses::startGuardsElsewhere(
      agents_, {guard}, [](int, const std::string&) { return "/there"; });
  ASSERT_TRUE(guards.ok()) << guards.status().message();
  const auto start = told<wire::StartJob>();
  EXPECT_EQ(start.folder, "/there");
  ASSERT_EQ(start.files.size(), 3U);
  EXPECT_EQ(start.files[0].path, "/there/rank0/stdout.txt");
  EXPECT_EQ(start.files[2].path, "/there/rank0/p");
  EXPECT_EQ(start.files[2].how, wire::Bringing::kLines);
  say(wire::JobWrote{kFirstJob, 0, {std::string("a\0\xff", 3)}});
  say(wire::JobWrote{kFirstJob, 2, {""}});
  say(wire::JobWrote{kFirstJob, 0, {"b"}});
  say(wire::GuardSaid{kFirstJob, wire::GuardFinished{{"/there/rank0/stdout.txt"}}});
  const std::vector<json> heard = listen(**guards);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0]["cut"][0], (folder.path() / "run/rank0/stdout.txt").string());
  EXPECT_EQ(fileText(folder.path() / "run/rank0/stdout.txt"), std::string("a\0\xff"
                                                                          "b",
                                                                          4));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "run/rank0/p"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run/rank0/stderr.txt"));
}

TEST_F(AgentProcessesTest, AFileThatHasNoPlaceHereIsAnError) {
  const testing::TemporaryFolder folder;
  GuardProcess guard{.node = kNode, .job = {}, .folder = folder.write("a_file", "")};
  guard.job.programs.push_back({.stdoutPath = "/there/out", .stderrPath = "/there/err"});
  say(wire::JobStarted{kFirstJob});
  auto guards = AgentProcesses::startGuardsElsewhere(
      agents_, {guard}, [](int, const std::string&) { return "/there"; });
  ASSERT_TRUE(guards.ok()) << guards.status().message();
  say(wire::JobWrote{kFirstJob, 0, {"text"}});
  Status trouble;
  listen(**guards, &trouble);
  EXPECT_THAT(trouble.message(), HasSubstr("make " + guard.folder + "/out"));
  say(wire::GuardSaid{kFirstJob, wire::Gone{"killed"}});
}

TEST_F(AgentProcessesTest, WhatCannotBeStartedIsAnErrorWithItsCode) {
  say(wire::JobStarted{1});
  say(wire::JobRefused{2, {Code::kPermissionDenied, "no more processes"}});
  say(wire::GuardSaid{1, wire::Gone{"killed by signal 9 (Killed)"}});
  const auto guards = AgentProcesses::startGuards(
      agents_, {{.node = kNode, .job = {}}, {.node = kNode, .job = {}}}, STDERR_FILENO);
  EXPECT_EQ(guards.status().code(), Code::kPermissionDenied);
  EXPECT_EQ(guards.status().message(), "start the guard 1: no more processes");
  EXPECT_EQ(told<wire::EndJob>().job, 1) << "the other is ended";
}

TEST_F(AgentProcessesTest, WhatIsNotStartedIsWaitedForOnlyAsLongAsSomebodyDoes) {
  int asked = 0;
  agents_.giveUpWhen([&asked] { return ++asked > 3; });
  say(wire::GuardSaid{kFirstJob, wire::Gone{"killed"}});  // or its end would be waited for
  const auto guards =
      AgentProcesses::startGuards(agents_, {{.node = kNode, .job = {}}}, STDERR_FILENO);
  EXPECT_EQ(guards.status().code(), Code::kAborted);
  EXPECT_THAT(guards.status().message(), HasSubstr("start the guard 0: nobody waits"));
  EXPECT_EQ(told<wire::EndJob>().job, kFirstJob) << "it may begin yet";
}

// Its configuration waits in the channel, which a large one fills.
TEST_F(AgentProcessesTest, NorIsARankThatDoesNotRead) {
  agents_.giveUpWhen([] { return true; });
  say(wire::RankEnded{kFirstJob, "killed"});
  const json large{{"text", std::string(16 << 20, 'x')}};
  const TimePoint begun = now();
  const auto ranks =
      AgentProcesses::startRanks(agents_, {{.node = kNode, .config = large}}, STDERR_FILENO);
  EXPECT_EQ(ranks.status().code(), Code::kAborted);
  EXPECT_LT(now() - begun, launch::MessageChannel::kSendTimeout / 2);
}

TEST_F(AgentProcessesTest, NobodyWaitsForOneThatDoesNotReadWhatAllAreTold) {
  auto [ranks, rank] = startRank();
  agents_.giveUpWhen([] { return true; });
  const TimePoint begun = now();
  ranks->broadcast({{"text", std::string(16 << 20, 'x')}});
  EXPECT_LT(now() - begun, launch::MessageChannel::kSendTimeout / 2);
  say(wire::RankEnded{kFirstJob, "killed"});
}

TEST_F(AgentProcessesTest, GuardsAreToldAndHeardThroughTheirAgent) {
  say(wire::JobStarted{kFirstJob});
  auto guards = AgentProcesses::startGuards(agents_, {{.node = kNode, .job = {.outputLimit = 7}}},
                                            STDERR_FILENO);
  ASSERT_TRUE(guards.ok()) << guards.status().message();
  const auto start = told<wire::StartJob>();
  EXPECT_EQ(start.guard.outputLimit, 7);
  EXPECT_TRUE(start.logs && far_->takeDescriptor());
  (*guards)->broadcast(wire::toJson(wire::ToGuard(wire::EndPrograms{.grace = 3s})));
  const auto end = told<wire::TellGuard>();
  EXPECT_EQ(end.job, kFirstJob);
  EXPECT_EQ(std::get<wire::EndPrograms>(end.message).grace, 3s);
  const TimePoint started = now() - 1ms;
  say(wire::GuardSaid{kFirstJob, wire::GuardStarted{started}});
  say(wire::GuardSaid{kFirstJob, wire::GuardFinished{}});
  const std::vector<json> heard = listen(**guards);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0]["at"], started.time_since_epoch().count()) << "the clock is ours";
  EXPECT_EQ(heard[1]["type"], "finished");
}

// One answers, and says a little later that its guard has ended; all others hang.
TEST(AgentsThatHangTest, AreWaitedForTogetherAndNamed) {
  constexpr int kAgents = 40, kLives = 7;
  constexpr Duration kPatience = 500ms;
  std::vector<int> hung;
  Agents agents(
      [&hung](int node, const std::string& what, bool lives) {
        EXPECT_TRUE(lives);
        hung.push_back(node);
        return errorf(Code::kUnavailable, "node {} {}", node, what);
      },
      kPatience);
  std::vector<launch::MessageChannel> far;
  std::vector<GuardProcess> guards;
  for (int node = 0; node < kAgents; ++node) {
    auto ends = launch::MessageChannel::makePair();
    ASSERT_TRUE(ends.ok());
    ASSERT_TRUE(agents.add(node, std::move(ends->first), ClockOffset::same(), {}).ok());
    far.push_back(std::move(ends->second));
    guards.push_back({.node = node, .job = {}});
    // Their numbers are given in this order.
    ASSERT_TRUE(far.back().send(wire::toJson(wire::FromAgent(wire::JobStarted{node + 1}))).ok());
  }
  auto started = AgentProcesses::startGuards(agents, guards, STDERR_FILENO);
  ASSERT_TRUE(started.ok()) << started.status().message();
  const std::jthread alive([&] {
    const TimePoint end = now() + 3 * kPatience;
    bool said = false;
    while (!said) {
      const auto text = far[kLives].receiveWithin(10s);
      if (!text.ok()) break;
      const auto message = wire::fromJson<wire::ToAgent>(*text);
      if (!message.ok() || !std::holds_alternative<wire::AskClock>(*message)) continue;
      said = now() > end;
      const wire::FromAgent answer =
          said ? wire::FromAgent(wire::GuardSaid{kLives + 1, wire::Gone{"killed"}})
               : wire::FromAgent(wire::ClockTold{now()});
      EXPECT_TRUE(far[kLives].send(wire::toJson(answer)).ok());
    }
  });
  const TimePoint begun = now();
  const Status status = (*started)->kill();
  EXPECT_LT(now() - begun, kAgents * kPatience / 4);
  EXPECT_GE(now() - begun, 2 * kPatience) << "what ends is waited for";
  EXPECT_EQ(hung.size(), std::size_t{kAgents - 1});
  EXPECT_FALSE(agents.isLost(kLives));
  std::string all;
  for (int node = 0; node < kAgents; ++node) {
    if (node == kLives) continue;
    all += fmt::format("{}node {} has not answered for 500ms", all.empty() ? "" : "; ", node);
  }
  EXPECT_EQ(status.message(), all) << "whenever each was found to hang";
  EXPECT_TRUE((*started)->allEnded());
}

// The last of those that hang is found to be lost when the time to kill is over, too.
TEST(AgentsThatHangTest, AreNamedAlsoWhenThatTakesAsLongAsToKill) {
  constexpr Duration kBoth = 50ms;
  Agents agents([](int node, const std::string& what,
                   bool /*lives*/) { return errorf(Code::kUnavailable, "node {} {}", node, what); },
                kBoth);
  auto ends = launch::MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(agents.add(kNode, std::move(ends->first), ClockOffset::same(), {}).ok());
  ASSERT_TRUE(ends->second.send(wire::toJson(wire::FromAgent(wire::JobStarted{kFirstJob}))).ok());
  auto started = AgentProcesses::startGuards(agents, {{.node = kNode, .job = {}}}, STDERR_FILENO,
                                             /*killBudget=*/kBoth);
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_EQ((*started)->kill().message(), "node 3 has not answered for 50ms");
  EXPECT_TRUE((*started)->allEnded());
}

TEST_F(AgentProcessesTest, ToKillWaitsForTheEnd) {
  auto [ranks, rank] = startRank();
  std::thread agent([this] {
    EXPECT_EQ(told<wire::EndJob>().job, kFirstJob);
    std::this_thread::sleep_for(50ms);
    say(wire::RankEnded{kFirstJob, "killed by signal 9 (Killed)"});
  });
  const TimePoint begun = now();
  EXPECT_TRUE(ranks->kill().ok());
  EXPECT_GE(now() - begun, 50ms);
  EXPECT_TRUE(ranks->allEnded());
  agent.join();
}

}  // namespace
}  // namespace faultline::site
