#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "injector/fault.h"
#include "injector/faults/registry.h"
#include "injector/netlink/link_target.h"
#include "tests/support/poll_until.h"

// Commands of users, without a network: where they run is tested in tests/netns/injector.

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;

class ExternalTest : public ::testing::Test {
 protected:
  static constexpr Duration kLong = 10s;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "external_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    log_ = folder_ / "log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A command that notes its word, and then does `more`.
  std::string note(const std::string& word, const std::string& more = "true") const {
    return fmt::format("sh -c 'echo {} >> {}; {}'", word, log_.string(), more);
  }

  std::map<std::string, std::string> commands() const {
    return {{"prepare", note("prepare")},
            {"apply", note("apply", fmt::format("echo I saw it > {}", broken()))},
            {"evidence", note("evidence", fmt::format("cat {}", broken()))},
            {"revert", note("revert", fmt::format("rm -f {}", broken()))}};
  }

  std::string broken() const { return (folder_ / "broken").string(); }

  /// Does `more` when it is broken.
  std::string whenBroken(const std::string& more) const {
    return fmt::format("sh -c 'test -e {} || exit 1; {}'", broken(), more);
  }

  static std::unique_ptr<Fault> make(const std::map<std::string, std::string>& texts,
                                     const netlink::LinkTarget& target = {}) {
    const auto parameters = FaultParameters::parse(*findFaultKind("external"), texts);
    EXPECT_TRUE(parameters.ok()) << parameters.status().message();
    return std::move(makeFault("external", *parameters, target)).value();
  }

  std::string log() const {
    std::ifstream file(log_);
    std::ostringstream text;
    for (std::string word; file >> word;) text << word << ' ';
    return text.str();
  }

  std::filesystem::path folder_;
  std::filesystem::path log_;
};

TEST_F(ExternalTest, CommandsRunInTheirOrderAndTheirEvidenceIsWhatTheySay) {
  const auto fault = make(commands());
  ASSERT_TRUE(fault->prepare().ok());
  EXPECT_EQ(log(), "prepare evidence ");
  for (int strike = 0; strike < 2; ++strike) {
    ASSERT_TRUE(fault->apply().ok());
    const auto evidence = fault->evidence();
    ASSERT_TRUE(evidence.ok());
    EXPECT_TRUE(evidence->ok) << evidence->observed;
    EXPECT_EQ(evidence->observed, "I saw it");
    ASSERT_TRUE(fault->revert().ok());
    ASSERT_TRUE(fault->revert().ok()) << "a second time there is nothing to undo";
  }
  EXPECT_EQ(log(), "prepare evidence apply evidence revert apply evidence revert ");
}

TEST_F(ExternalTest, WhatFailsOrSaysNothingIsNoEvidence) {
  const std::map<std::string, std::string> reasons{
      {"false", "evidence: 'false' ended with 1"},
      {"true", "said nothing"},
      {"sh -c 'echo it works; echo broken pump >&2; exit 3'", "ended with 3: broken pump"},
      {"no-such-program-at-all x", "ended with 127: No such file or directory"}};
  for (const auto& [evidence_command, reason] : reasons) {
    auto texts = commands();
    texts["evidence"] = evidence_command;
    const auto fault = make(texts);
    ASSERT_TRUE(fault->prepare().ok());
    ASSERT_TRUE(fault->apply().ok());
    const auto evidence = fault->evidence();
    ASSERT_TRUE(evidence.ok());
    EXPECT_FALSE(evidence->ok) << evidence_command;
    EXPECT_THAT(evidence->observed, HasSubstr(reason));
  }
}

TEST_F(ExternalTest, ACommandThatHangsIsKilledAtItsLimitWithAllThatItStarted) {
  auto texts = commands();
  texts["limit"] = "100ms";
  texts["evidence"] =
      whenBroken(fmt::format("sleep 60 & echo $! > {}/child; wait", folder_.string()));
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  const TimePoint begin = now();
  const auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_FALSE(evidence->ok);
  EXPECT_THAT(evidence->observed, HasSubstr("limit of 100ms"));
  EXPECT_LT(now() - begin, kLong);
  int child = 0;
  std::ifstream(folder_ / "child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return ::kill(child, 0) != 0; }));
  ASSERT_TRUE(fault->revert().ok());
  EXPECT_EQ(log(), "prepare apply revert ");
}

TEST_F(ExternalTest, EvidenceThatIsThereBeforeTheFaultIsRefused) {
  auto texts = commands();
  texts["evidence"] = "echo all is broken";
  const auto fault = make(texts);
  const Status status = fault->prepare();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("before anything is broken: all is broken"));
}

TEST_F(ExternalTest, EvidenceIsLookedForWhileTheFaultLasts) {
  const auto fault = make(commands());
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  EXPECT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_TRUE(fault->step(now()).ok());
    return log() == "prepare evidence apply evidence ";
  })) << log();
  const auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ok) << evidence->observed;
  EXPECT_EQ(log(), "prepare evidence apply evidence ");
}

TEST_F(ExternalTest, EvidenceThatLookedTooEarlyLooksAgainAtTheEnd) {
  auto texts = commands();
  const std::string later = (folder_ / "later").string();
  texts["evidence"] = note("evidence", fmt::format("cat {}", later));
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  EXPECT_TRUE(test::pollUntil(kLong, [&] {
    EXPECT_TRUE(fault->step(now()).ok());
    return log() == "prepare evidence apply evidence ";
  })) << log();
  EXPECT_FALSE(test::pollUntil(50ms, [&] {
    EXPECT_TRUE(fault->step(now()).ok());
    return log() != "prepare evidence apply evidence ";
  })) << "only at the end";
  std::ofstream(later) << "now it is broken\n";
  const auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ok) << evidence->observed;
  EXPECT_EQ(log(), "prepare evidence apply evidence evidence ");
}

TEST_F(ExternalTest, WhoStopsWaitingDoesNotWaitForTheCommand) {
  auto texts = commands();
  texts["limit"] = "60s";
  texts["evidence"] = whenBroken("sleep 60");
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  const TimePoint begin = now();
  const auto evidence = fault->evidence([&] { return now() - begin > 50ms; });
  ASSERT_TRUE(evidence.ok());
  EXPECT_FALSE(evidence->ok);
  EXPECT_THAT(evidence->observed, HasSubstr("it has not ended"));
  ASSERT_TRUE(fault->revert().ok());
  EXPECT_LT(now() - begin, kLong);
  EXPECT_EQ(log(), "prepare apply revert ");
}

TEST_F(ExternalTest, WhoStopsWaitingEndsAnApplyAndItIsTakenBack) {
  auto texts = commands();
  texts["limit"] = "60s";
  texts["apply"] =
      note("apply", fmt::format("touch {}; sleep 60; echo late >> {}", broken(), log_.string()));
  const auto fault = make(texts);
  bool stopped = false;
  fault->stopWhen([&] { return stopped = stopped || log().ends_with("apply "); });
  ASSERT_TRUE(fault->prepare().ok());
  const TimePoint begin = now();
  EXPECT_EQ(fault->apply().code(), Code::kAborted);
  EXPECT_TRUE(fault->transitions().empty());
  ASSERT_TRUE(fault->revert().ok());
  EXPECT_LT(now() - begin, kLong);
  EXPECT_EQ(log(), "prepare evidence apply revert ");
  EXPECT_FALSE(std::filesystem::exists(broken()));
}

TEST_F(ExternalTest, WhoStopsWaitingEndsAPrepare) {
  for (const char* const step : {"prepare", "evidence"}) {
    auto texts = commands();
    texts["limit"] = "60s";
    texts[step] = "sleep 60";
    const TimePoint begin = now();
    {
      const auto fault = make(texts);
      fault->stopWhen([&] { return now() - begin > 50ms; });
      EXPECT_EQ(fault->prepare().code(), Code::kAborted) << step;
    }
    EXPECT_LT(now() - begin, kLong) << step;
  }
}

TEST_F(ExternalTest, ARevertIsNotEndedByWhoStopsWaiting) {
  auto texts = commands();
  texts["revert"] =
      note("begun", fmt::format("sleep 0.2; rm {}; echo done >> {}", broken(), log_.string()));
  const auto fault = make(texts);
  bool stopped = false;
  fault->stopWhen([&] { return stopped; });
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  stopped = true;
  ASSERT_TRUE(fault->revert().ok());
  EXPECT_EQ(log(), "prepare evidence apply begun done ");
}

TEST_F(ExternalTest, ACommandThatPrintsMuchIsNotDisturbed) {
  auto texts = commands();
  texts["apply"] =
      note("apply", fmt::format("head -c 1000000 /dev/zero && echo all > {}", broken()));
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  const Status applied = fault->apply();
  EXPECT_TRUE(applied.ok()) << applied.message();
  const auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_EQ(evidence->observed, "all");
}

TEST_F(ExternalTest, ACommandThatNeverStopsPrintingIsKilledAtItsLimit) {
  auto texts = commands();
  texts["limit"] = "100ms";
  texts["apply"] = "yes";
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  const TimePoint begin = now();
  EXPECT_THAT(fault->apply().message(), HasSubstr("limit of 100ms"));
  EXPECT_LT(now() - begin, kLong);
}

TEST_F(ExternalTest, CommandsAreEndedByTheHangUpOfTheirTerminalAsUsual) {
  auto texts = commands();
  texts["apply"] = "sh -c 'kill -HUP $$; sleep 60'";
  texts["limit"] = "20s";
  const auto fault = make(texts);
  ASSERT_TRUE(fault->prepare().ok());
  EXPECT_THAT(fault->apply().message(), HasSubstr(fmt::format("ended with {}", 128 + SIGHUP)));
}

TEST_F(ExternalTest, WhoReadsWhatTheBenchWritesDoesNotWaitForTheHolder) {
  const std::string go = (folder_ / "go").string();
  auto texts = commands();
  texts["revert"] = fmt::format("sh -c 'while [ ! -e {} ]; do sleep 0.01; done'", go);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t bench = ::fork();
  ASSERT_GE(bench, 0);
  if (bench == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    const auto fault = make(texts);
    if (fault->prepare().ok() && fault->apply().ok()) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(bench, &status, 0), bench);
  EXPECT_TRUE(WIFSIGNALED(status));
  pollfd output{ends[0], POLLIN, 0};
  char byte = 0;
  EXPECT_EQ(::poll(&output, 1, static_cast<int>(toMilliseconds(kLong))), 1);
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "its end, while revert goes on";
  ::close(ends[0]);
  std::ofstream(go) << "go";
  EXPECT_EQ(log(), "prepare evidence apply ");
}

TEST_F(ExternalTest, AFailingPrepareApplyOrRevertIsAnErrorThatQuotesIt) {
  for (const char* const step : {"prepare", "apply", "revert"}) {
    auto texts = commands();
    texts[step] = "sh -c 'echo no pump here >&2; exit 7'";
    const auto fault = make(texts);
    Status status = fault->prepare();
    if (status.ok()) status = fault->apply();
    if (status.ok()) status = fault->revert();
    EXPECT_FALSE(status.ok()) << step;
    EXPECT_THAT(status.message(), HasSubstr(step));
    EXPECT_THAT(status.message(), HasSubstr("ended with 7: no pump here"));
  }
}

TEST_F(ExternalTest, AnApplyThatFailedIsTakenBack) {
  auto texts = commands();
  texts["apply"] = note("half", "false");
  {
    const auto fault = make(texts);
    ASSERT_TRUE(fault->prepare().ok());
    EXPECT_FALSE(fault->apply().ok());
  }
  EXPECT_EQ(log(), "prepare evidence half revert ");
}

TEST_F(ExternalTest, IsUndoneByItsDestructorAndOnlyOnce) {
  {
    const auto fault = make(commands());
    ASSERT_TRUE(fault->prepare().ok());
    ASSERT_TRUE(fault->apply().ok());
  }
  { ASSERT_TRUE(make(commands())->prepare().ok()); }
  EXPECT_EQ(log(), "prepare evidence apply revert prepare evidence ");
}

TEST_F(ExternalTest, WhatIsBrokenIsTakenBackWhenTheBenchIsKilled) {
  for (const bool applied : {true, false}) {
    std::filesystem::remove(log_);
    const auto other = make(commands());  // its holder must not keep the other one waiting
    ASSERT_TRUE(other->prepare().ok());
    const pid_t bench = ::fork();
    ASSERT_GE(bench, 0);
    if (bench == 0) {
      const auto fault = make(commands());
      const bool good = fault->prepare().ok() && (!applied || fault->apply().ok());
      const auto later = make({{"apply", "true"}, {"revert", "true"}, {"evidence", "true"}});
      if (good && later->prepare().ok()) ::kill(::getpid(), SIGKILL);
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(bench, &status, 0), bench);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    std::string expected = "prepare evidence prepare evidence ";
    if (applied) expected += "apply revert ";
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return log() == expected; })) << log();
  }
}

TEST_F(ExternalTest, TheEnvironmentSaysWhatIsMeant) {
  auto texts = commands();
  texts["evidence"] = whenBroken("echo node $FAULTLINE_NODE rail $FAULTLINE_RAIL");
  netlink::LinkTarget target;
  target.calledBy = {"FAULTLINE_NODE=3", "FAULTLINE_RAIL=1"};
  const auto fault = make(texts, target);
  ASSERT_TRUE(fault->prepare().ok());
  ASSERT_TRUE(fault->apply().ok());
  const auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_EQ(evidence->observed, "node 3 rail 1");
}

TEST_F(ExternalTest, EveryFaultSaysWhichCommandItNeeds) {
  const auto parsed = FaultParameters::parse(*findFaultKind("external"), {{"apply", "true"}});
  EXPECT_THAT(parsed.status().message(), HasSubstr("needs the parameter 'revert'"));
  const auto open = FaultParameters::parse(
      *findFaultKind("external"), {{"apply", "a 'b"}, {"revert", "true"}, {"evidence", "true"}});
  EXPECT_THAT(open.status().message(), HasSubstr("apply: 'a 'b' has an open '"));
}

}  // namespace
}  // namespace faultline::injector
