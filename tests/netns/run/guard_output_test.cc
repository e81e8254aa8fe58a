#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "harness/launch/process.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/process_tree.h"
#include "tests/support/run_program.h"
#include "wire/agent.h"

// What programs have printed comes back from the agent of their node, also when they do not come to
// their end: from a real agent, played with by hand.

namespace faultline::agent {
namespace {

using ::testing::HasSubstr;

constexpr int kJob = 5;
constexpr Duration kPatience = 20s;

class GuardOutputTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    launch::SpawnOptions options;
    options.executable = FAULTLINE_BINARY_DIR "/faultline";
    options.arguments = {"faultline", "agent"};
    auto agent = launch::Process::spawn(options);
    ASSERT_TRUE(agent.ok()) << agent.status().message();
    agent_.emplace(std::move(*agent));
    tell(wire::AgentSetup{});
    ASSERT_TRUE(heard<wire::AgentReady>());
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }

  void tell(const wire::ToAgent& message) {
    ASSERT_TRUE(agent_->messages().send(wire::toJson(message)).ok());
  }
  /// The next of its type that the agent says.
  template <typename Message>
  std::optional<Message> heard() {
    for (;;) {
      const auto text = agent_->messages().receiveWithin(kPatience);
      EXPECT_TRUE(text.ok()) << text.status().message();
      if (!text.ok()) return std::nullopt;
      auto message = wire::fromJson<wire::FromAgent>(*text);
      EXPECT_TRUE(message.ok()) << message.status().message();
      if (!message.ok()) return std::nullopt;
      if (auto* const found = std::get_if<Message>(&*message)) return std::move(*found);
    }
  }
  /// The last word of its guard.
  wire::FromGuard lastWord() {
    while (const auto said = heard<wire::GuardSaid>()) {
      if (std::holds_alternative<wire::Gone>(said->message) ||
          std::holds_alternative<wire::GuardError>(said->message) ||
          std::holds_alternative<wire::GuardFinished>(said->message)) {
        return said->message;
      }
    }
    return {};
  }

  wire::GuardedProgram program(const std::string& script, const std::string& name) const {
    return {.executable = "/bin/sh",
            .arguments = {"sh", "-c", script},
            .stdoutPath = file(name + ".out"),
            .stderrPath = file(name + ".err")};
  }
  /// It has printed that once the file is there.
  wire::GuardedProgram thatPrints(const std::string& text) const {
    return program(fmt::format("echo {0}; echo error of {0} >&2; touch {1}; exec sleep 60", text,
                               file("printed")),
                   "first");
  }
  void start(std::vector<wire::GuardedProgram> programs) {
    wire::GuardJob job{.outputLimit = 1 << 20};
    job.programs = std::move(programs);
    tell(wire::StartJob{kJob, job, /*read=*/true, /*logs=*/false});
  }
  /// Also in the file: it goes through the guard.
  void awaitPrinted() {
    ASSERT_TRUE(test::pollUntil(kPatience, [&] {
      return exists("printed") && std::filesystem::file_size(file("first.err")) > 0;
    }));
  }
  void expectOutput(const std::string& text) {
    const auto output = heard<wire::JobOutput>();
    ASSERT_TRUE(output);
    EXPECT_EQ(output->job, kJob);
    ASSERT_GE(output->programs.size(), 1u);
    EXPECT_EQ(output->programs[0].out, text + "\n");
    EXPECT_EQ(output->programs[0].err, "error of " + text + "\n");
    EXPECT_FALSE(exists("first.out")) << "nothing stays there";
  }

  testing::TemporaryFolder folder_;
  std::optional<launch::Process> agent_;
};

TEST_F(GuardOutputTest, ComesBackWhenTheJobIsEnded) {
  start({thatPrints("something")});
  awaitPrinted();
  tell(wire::EndJob{kJob});
  EXPECT_TRUE(std::holds_alternative<wire::Gone>(lastWord()));
  expectOutput("something");
}

TEST_F(GuardOutputTest, ComesBackWhenTheGuardIsKilled) {
  start({thatPrints("something")});
  awaitPrinted();
  const std::vector<test::ProcessId> tree = test::processTree(agent_->pid());
  ASSERT_GE(tree.size(), 2u);
  ::kill(tree[1].pid, SIGKILL);  // the agent's only child
  EXPECT_TRUE(std::holds_alternative<wire::Gone>(lastWord()));
  expectOutput("something");
}

TEST_F(GuardOutputTest, ComesBackWhenTheGuardFails) {
  wire::GuardedProgram impossible = program("true", "second");
  impossible.executable = file("is-not-there");
  // The guard does nothing until its file of that has a reader; the first has printed by then.
  ASSERT_EQ(::mkfifo(impossible.stdoutPath.c_str(), 0600), 0);
  start({thatPrints("something"), impossible});
  ASSERT_TRUE(test::pollUntil(kPatience, [&] { return exists("printed"); }));
  const UniqueFd reader(::open(impossible.stdoutPath.c_str(), O_RDONLY | O_CLOEXEC));
  const wire::FromGuard last = lastWord();
  ASSERT_TRUE(std::holds_alternative<wire::GuardError>(last));
  EXPECT_THAT(std::get<wire::GuardError>(last).outcome.message, HasSubstr("is-not-there"));
  expectOutput("something");
}

TEST_F(GuardOutputTest, ComesBackWhenTheProgramFails) {
  start({program("echo something; echo error of something >&2; kill -SEGV $$", "first")});
  EXPECT_TRUE(std::holds_alternative<wire::GuardFinished>(lastWord()));
  expectOutput("something");
}

}  // namespace
}  // namespace faultline::agent
