#include "harness/control/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <optional>

#include "harness/control/find_rails.h"
#include "harness/record/run_order.h"
#include "harness/scenario/reader.h"
#include "harness/site/addresses.h"
#include "harness/site/kind.h"
#include "tests/support/run_program.h"
#include "wire/rank.h"

// A session on a cluster that is none: a third kind, of which nothing else knows.

namespace faultline::run {
namespace {

using faultline::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What the fake cluster does, and what was asked of it.
struct Play {
  Status built;
  Status started;   // of the guards
  Status reverted;  // of the fault
  std::string lost;
  BitsPerSecond railRate = 0;
  Status killed;  // of the guards
  bool interruptsWhileBuilding = false;
  bool interruptsWhileStarting = false;
  bool interruptsWhenStruck = false;
  std::deque<Result<std::pair<int, wire::FromGuard>>> said;
  std::optional<wire::FromRank> rankSays;  // at once, the first of them
  std::vector<std::string> happened;
};
Play* play = nullptr;

class FakeFault final : public injector::Fault {
 public:
  ~FakeFault() override { play->happened.emplace_back("fault gone"); }
  Status prepare() override { return okStatus(); }
  Status apply() override {
    play->happened.emplace_back("apply");
    if (play->interruptsWhenStruck) {
      EXPECT_EQ(std::raise(SIGINT), 0);
    }
    return transit(true, [] { return okStatus(); });
  }
  Status step(TimePoint /*now*/) override { return okStatus(); }
  Status revert() override {
    play->happened.emplace_back("revert");
    RETURN_IF_ERROR(play->reverted);
    return transit(false, [] { return okStatus(); });
  }
  std::string mechanism() const override { return "none"; }

 protected:
  bool conclusive() const override { return true; }
  injector::Evidence verdict() const override { return {"port_down", "play", "seen", true, {}}; }
};

class FakeGuards final : public site::Processes {
 public:
  Status poll(Duration /*timeout*/, int /*interruptFd*/, const Received& received) override {
    if (play->said.empty()) return okStatus();
    // Programs that have started do nothing before the fault has struck.
    const auto& front = play->said.front();
    const bool starts = front.ok() && std::holds_alternative<wire::GuardStarted>(front->second);
    if (!starts && std::ranges::count(play->happened, "apply") == 0) return okStatus();
    auto next = std::move(play->said.front());
    play->said.pop_front();
    RETURN_IF_ERROR(next.status());
    if (auto* const ended = std::get_if<wire::GuardedEnded>(&next->second)) ended->at = now();
    return received(next->first, wire::toJson(next->second));
  }
  void broadcast(const nlohmann::json& message) override {
    play->happened.push_back("told " + message["type"].get<std::string>());
  }
  Status kill() override {
    play->happened.emplace_back("kill");
    return play->killed;
  }
  bool allEnded() const override { return play->said.empty(); }
};

class FakeRanks final : public site::Processes {
 public:
  Status poll(Duration /*timeout*/, int /*interruptFd*/, const Received& received) override {
    return received(0, wire::toJson(*play->rankSays));
  }
  void broadcast(const nlohmann::json& /*message*/) override {}
  Status kill() override { return okStatus(); }
  bool allEnded() const override { return true; }
};

class FakeCluster final : public site::Cluster {
 public:
  explicit FakeCluster(const site::ClusterSpec& spec)
      : site::Cluster(site::plannedNetwork(spec.nodes, spec.rails)) {}
  ~FakeCluster() override { play->happened.emplace_back("cluster gone"); }
  Status build(const GiveUp& giveUp) override {
    play->happened.emplace_back("build");
    giveUp_ = giveUp;
    if (!play->interruptsWhileBuilding) return play->built;
    EXPECT_EQ(std::raise(SIGTERM), 0);
    return giveUp() ? errorf(Code::kAborted, "given up") : okStatus();
  }
  Result<std::unique_ptr<site::Processes>> startRanks(const std::vector<site::RankProcess>&,
                                                      int) override {
    if (!play->rankSays) return errorf(Code::kUnsupported, "no ranks");
    return std::unique_ptr<site::Processes>(std::make_unique<FakeRanks>());
  }
  Result<std::unique_ptr<site::Processes>> startGuards(
      const std::vector<site::GuardProcess>& guards, int) override {
    play->happened.push_back(fmt::format("start {}", guards.size()));
    RETURN_IF_ERROR(play->started);
    if (play->interruptsWhileStarting) {
      EXPECT_FALSE(giveUp_());
      EXPECT_EQ(std::raise(SIGINT), 0);
      RETURN_IF_ERROR(unlessGivenUp(giveUp_, "start"));
    }
    return std::unique_ptr<site::Processes>(std::make_unique<FakeGuards>());
  }
  Result<std::unique_ptr<injector::Fault>> makeFault(const std::string& kind,
                                                     const injector::FaultParameters&,
                                                     const site::FaultTarget& target) override {
    play->happened.push_back(fmt::format("{} on {}.{}", kind, target.node, target.rail.value()));
    return std::unique_ptr<injector::Fault>(std::make_unique<FakeFault>());
  }
  Status readRailCounters(std::vector<site::RailCounters>& counters) override {
    counters.assign(static_cast<std::size_t>(nodes()) * static_cast<std::size_t>(rails()), {});
    return okStatus();
  }
  std::string lost() const override { return play->lost; }
  BitsPerSecond railRate() const override { return play->railRate; }
  Result<std::map<std::string, std::string>> describe() const override {
    return std::map<std::string, std::string>{{"cluster", "play"}};
  }

 private:
  GiveUp giveUp_;
};

constinit const site::Kind kPlay{
    .name = "play",
    .summary = "nothing",
    .refusal = [](const injector::FaultKind&, const injector::FaultParameters&) -> site::Refusal {
      return {};
    },
    .footprint = [](const site::ClusterSpec&) { return site::kController; },
    .checkMachine = [] { return std::vector<site::MachineCheck>(); },
    .make = [](const site::ClusterSpec& spec) -> Result<std::unique_ptr<site::Cluster>> {
      return std::unique_ptr<site::Cluster>(std::make_unique<FakeCluster>(spec));
    }};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    play = &play_;
    auto read = scenario::readScenario(
        "version: 1\nname: n\ncluster: {nodes: 2, rails: 2}\nworkload: {kind: command, command: "
        "{run: [sh, -c, 'exit 0']}}\nstrategies: [unprotected]\nfaults:\n  - {kind: port_down, "
        "target: {node: 1, rail: 1}, at: 0s, until: end}\n",
        "n");
    ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
    scenario_ = *std::move(read.scenario);
    scenario_.cluster.kind = &kPlay;
  }

  Result<SessionResult> run() {
    ASSIGN_OR_RETURN(OutputFolder folder, OutputFolder::claim(folder_.path().string()));
    ASSIGN_OR_RETURN(Interrupt interrupt, Interrupt::watch());
    const std::vector<PlannedRun> planned = orderRuns(scenario_, 1);
    return runSession(scenario_, planned.at(0), {.folder = folder}, interrupt);
  }
  void say(int guard, wire::FromGuard message) {
    play_.said.emplace_back(std::pair(guard, std::move(message)));
  }
  void bothStart() {
    say(0, wire::GuardStarted{now()});
    say(1, wire::GuardStarted{now()});
  }

  Play play_;
  TemporaryFolder folder_;
  scenario::Scenario scenario_;
};

TEST_F(SessionTest, EndsInTheOppositeOrderOfItsBeginning) {
  bothStart();
  for (int guard : {0, 1}) {
    say(guard, wire::GuardedEnded{.program = 0});
    say(guard, wire::GuardFinished{});
  }
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->recorded.run.status, reports::RunStatus::kOk) << result->recorded.run.message;
  EXPECT_EQ(result->cluster.at("cluster"), "play");
  EXPECT_EQ(result->recorded.run.evidence.size(), 1u);
  EXPECT_THAT(play_.happened, ElementsAre("build", "port_down on 1.1", "start 2", "apply", "revert",
                                          "kill", "fault gone", "cluster gone"));
}

TEST_F(SessionTest, AClusterThatCannotBeBuiltIsTheBenchsError) {
  play_.built = errorf(Code::kUnsupported, "no such machine");
  const auto result = run();
  EXPECT_EQ(result.status().code(), Code::kUnsupported);
  EXPECT_THAT(play_.happened, ElementsAre("build", "cluster gone"));
}

TEST_F(SessionTest, AnInterruptWhileItIsBuiltIsAnInterruptedRun) {
  play_.interruptsWhileBuilding = true;
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->recorded.run.message, "interrupted");
  EXPECT_THAT(play_.happened, ElementsAre("build", "cluster gone"));
}

TEST_F(SessionTest, SoIsOneWhileItsProgramsAreStarted) {
  scenario_.faults.at(0).trigger = scenario::BeforeStart{};
  play_.interruptsWhileStarting = true;
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->recorded.run.message, "interrupted");
  EXPECT_THAT(play_.happened, ElementsAre("build", "port_down on 1.1", "apply", "start 2", "revert",
                                          "fault gone", "cluster gone"));
}

TEST_F(SessionTest, WhatHangsWhenItIsInterruptedIsToldBesideTheResult) {
  bothStart();
  play_.interruptsWhenStruck = true;
  play_.killed = errorf(Code::kUnavailable, "the agent of node 1 hangs");
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->recorded.run.message, "interrupted");
  EXPECT_EQ(result->trouble, "the agent of node 1 hangs");
}

TEST_F(SessionTest, WhatIsNotRestoredWhenItIsInterruptedIsItsError) {
  bothStart();
  play_.interruptsWhenStruck = true;
  play_.reverted = errorf(Code::kNotRestored, "the port stays down");
  play_.killed = errorf(Code::kUnavailable, "the agent of node 1 hangs");
  const auto result = run();
  EXPECT_EQ(result.status().code(), Code::kNotRestored);
  EXPECT_THAT(result.status().message(), HasSubstr("the port stays down; and then: the agent of"));
}

TEST_F(SessionTest, WhatHangsWhenItIsNotInterruptedIsItsError) {
  bothStart();
  for (int guard : {0, 1}) {
    say(guard, wire::GuardedEnded{.program = 0});
    say(guard, wire::GuardFinished{});
  }
  play_.killed = errorf(Code::kUnavailable, "the agent of node 1 hangs");
  EXPECT_EQ(run().status().message(), "the agent of node 1 hangs");
}

TEST_F(SessionTest, WhenNobodyIsHeardAnyMoreTheFaultStillEnds) {
  bothStart();
  play_.said.emplace_back(errorf(Code::kUnavailable, "the line is cut"));
  const auto result = run();
  EXPECT_THAT(result.status().message(), HasSubstr("the line is cut"));
  EXPECT_THAT(play_.happened, ElementsAre("build", "port_down on 1.1", "start 2", "apply", "revert",
                                          "kill", "fault gone", "cluster gone"));
}

TEST_F(SessionTest, ALostPartOfTheClusterIsAResultThatSaysSo) {
  bothStart();
  play_.said.emplace_back(errorf(Code::kUnavailable, "the agent of n1 is gone"));
  play_.lost = "host n1 is lost";
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->recorded.run.status, reports::RunStatus::kFailed);
  EXPECT_THAT(result->recorded.run.message, HasSubstr("host n1 is lost"));
  EXPECT_FALSE(result->interrupted);
  EXPECT_EQ(std::ranges::count(play_.happened, "kill"), 1) << "what is left of it ends";
}

const site::Kind kFindingPlay = [] {
  site::Kind kind = kPlay;
  kind.findsRails = true;
  kind.make = [](const site::ClusterSpec&) -> Result<std::unique_ptr<site::Cluster>> {
    return std::unique_ptr<site::Cluster>(
        std::make_unique<FakeCluster>(site::ClusterSpec{.nodes = 2, .rails = 5}));
  };
  return kind;
}();

TEST_F(SessionTest, RailsAreFoundBeforeAnyRunAndTheClusterEnds) {
  auto interrupt = Interrupt::watch();
  ASSERT_TRUE(interrupt.ok());
  std::string said;
  const auto say = [&](const std::string& line) { said += line; };
  ASSERT_TRUE(findRails(scenario_, *interrupt, say).ok());
  EXPECT_EQ(scenario_.cluster.rails, 2) << "of a kind that knows them";
  EXPECT_EQ(said, "");
  scenario_.cluster.kind = &kFindingPlay;
  scenario_.cluster.railChoice.automatic = true;
  scenario_.cluster.railRate = 0;
  play_.railRate = 25'000'000'000;
  ASSERT_TRUE(findRails(scenario_, *interrupt, say).ok());
  EXPECT_EQ(scenario_.cluster.rails, 5);
  EXPECT_EQ(scenario_.cluster.railRate, 25'000'000'000);
  EXPECT_FALSE(scenario_.cluster.railChoice.automatic);
  EXPECT_EQ(said, "cluster: play");
  EXPECT_THAT(play_.happened,
              ElementsAre("build", "port_down on 1.1", "fault gone", "cluster gone"))
      << "a fault that cannot be there is known before the first run";
  play_.railRate = 800'000'000'000;
  ASSERT_TRUE(findRails(scenario_, *interrupt, say).ok());
  EXPECT_EQ(scenario_.cluster.railRate, 25'000'000'000) << "what is known stays";
  scenario_.cluster.railRate = 0;
  ASSERT_TRUE(findRails(scenario_, *interrupt, say).ok());
  EXPECT_EQ(scenario_.cluster.railRate, 0) << "no scenario could say it";
  play_.built = errorf(Code::kUnavailable, "host n9 is not there");
  EXPECT_EQ(findRails(scenario_, *interrupt, say).message(), "host n9 is not there");
}

TEST_F(SessionTest, WhatCouldNotBeRestoredIsToldAfterWhatHadFailed) {
  bothStart();
  play_.said.emplace_back(errorf(Code::kUnavailable, "the line is cut"));
  play_.reverted = errorf(Code::kNotRestored, "the port stays down");
  const auto result = run();
  EXPECT_EQ(result.status().code(), Code::kNotRestored);
  EXPECT_THAT(result.status().message(), HasSubstr("the line is cut; and then: "));
  EXPECT_THAT(result.status().message(), HasSubstr("the port stays down"));
}

TEST_F(SessionTest, AFaultThatWasThereBeforeProgramsThatCannotBeStartedEnds) {
  scenario_.faults.at(0).trigger = scenario::BeforeStart{};
  play_.started = errorf(Code::kUnavailable, "no guards");
  const auto result = run();
  EXPECT_THAT(result.status().message(), HasSubstr("no guards"));
  EXPECT_THAT(play_.happened, ElementsAre("build", "port_down on 1.1", "apply", "start 2", "revert",
                                          "fault gone", "cluster gone"));
}

TEST_F(SessionTest, WhatARankSaysOfWhatThereIsNotEndsTheRun) {
  auto read = scenario::readScenario(
      "version: 1\nname: n\ncluster: {nodes: 3, rails: 2}\nworkload: {kind: training, iterations: "
      "5, warmup_iterations: 7}\nstrategies: [hot_repair]\n",
      "n");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  scenario_ = *std::move(read.scenario);
  scenario_.cluster.kind = &kPlay;
  const auto refusal = [this](wire::FromRank message) {
    play_.rankSays = std::move(message);
    return run().status().message();
  };
  EXPECT_THAT(
      refusal(wire::Events{{.failbacks = {{.peer = 2, .rail = 1}, {.peer = 2, .rail = 2}}}}),
      HasSubstr("events.network.failbacks[1].rail: expected 0 to 1, found 2"));
  EXPECT_THAT(refusal(wire::Begin{.iteration = 7}),
              HasSubstr("begin.iteration: expected 0 to 6, found 7"));
  EXPECT_THAT(refusal(wire::Shrunk{.ranks = {0, 3}}),
              HasSubstr("shrunk.ranks[1]: expected 0 to 2, found 3"));
  EXPECT_THAT(refusal(wire::Token{.requests = {0}}), HasSubstr("token.requests[0]: expected"))
      << "it is no server";
  EXPECT_THAT(refusal(wire::Begin{.iteration = -1}),
              HasSubstr("begin.iteration: expected at least 0, found -1"));
}

TEST_F(SessionTest, AProgramThatFailsEndsTheOthers) {
  bothStart();
  say(1, wire::GuardedEnded{.program = 0, .code = 3});
  say(1, wire::GuardFinished{});
  say(0, wire::GuardedEnded{.program = 0, .signal = SIGTERM});
  say(0, wire::GuardFinished{});
  const auto result = run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->recorded.run.status, reports::RunStatus::kFailed);
  EXPECT_THAT(result->recorded.run.message, HasSubstr("exit code 3"));
  EXPECT_THAT(play_.happened, ElementsAre("build", "port_down on 1.1", "start 2", "apply", "revert",
                                          "told end", "kill", "fault gone", "cluster gone"));
}

}  // namespace
}  // namespace faultline::run
