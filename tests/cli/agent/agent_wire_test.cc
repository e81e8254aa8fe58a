#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "harness/launch/message_channel.h"
#include "tests/support/poll_until.h"
#include "wire/agent.h"
#include "wire/greeting.h"

// `faultline agent --stdio` and a controller that says the wrong thing: it ends, says why while
// somebody listens, and nothing that it has started outlives it.

namespace faultline {
namespace {

using faultline::test::pollUntil;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration kBudget = 60s;  // far above what it takes

class AgentWireTest : public ::testing::Test {
 protected:
  // What an agent leaves becomes a child of this process.
  static void SetUpTestSuite() { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

  void start() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_.reset(ends[0]);
    const UniqueFd far(ends[1]);
    said_.clear();
    agent_ = ::fork();
    ASSERT_GE(agent_, 0);
    if (agent_ == 0) {
      ::dup2(far.get(), STDIN_FILENO);
      ::dup2(far.get(), STDOUT_FILENO);
      ::execl(FAULTLINE_BINARY_DIR "/faultline", "faultline", "agent", "--stdio", nullptr);
      ::_exit(127);
    }
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::send(near_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size < 0) return;  // it does not listen any more
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  static std::string framed(const std::string& text) {
    std::string bytes;
    for (int index = 0; index < 4; ++index) {
      bytes += static_cast<char>(text.size() >> (8 * index) & 255);
    }
    return bytes + text;
  }
  static std::string framed(const wire::ToAgent& message) {
    return framed(launch::MessageChannel::textOf(wire::toJson(message)));
  }
  static wire::AgentSetup setup() { return {.lock = "", .lease = 10min}; }

  /// Until it has said so.
  void hear(std::string_view word) {
    std::array<char, 4096> bytes;
    while (said_.find(word) == std::string::npos) {
      pollfd ready{near_.get(), POLLIN, 0};
      ASSERT_GT(::poll(&ready, 1, static_cast<int>(toMilliseconds(kBudget))), 0) << said_;
      const ssize_t size = ::recv(near_.get(), bytes.data(), bytes.size(), 0);
      ASSERT_GT(size, 0) << said_;
      said_.append(bytes.data(), static_cast<std::size_t>(size));
    }
  }
  /// One that serves.
  void begin() {
    start();
    send(framed(setup()));
    hear(R"("type":"ready")");
  }

  /// Reads until it has ended, and leaves nothing behind. What it said, behind its greeting.
  std::string untilTheEnd() {
    std::array<char, 4096> bytes;
    pollfd more{near_.get(), POLLIN, 0};
    while (::poll(&more, 1, static_cast<int>(toMilliseconds(kBudget))) > 0) {
      const ssize_t size = ::recv(near_.get(), bytes.data(), bytes.size(), 0);
      if (size <= 0) break;
      said_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    int status = 0;
    const bool ended =
        pollUntil(kBudget, [&] { return ::waitpid(agent_, &status, WNOHANG) == agent_; });
    EXPECT_TRUE(ended) << "it goes on";
    if (!ended) {
      ::kill(agent_, SIGKILL);
      ::waitpid(agent_, &status, 0);
    }
    EXPECT_TRUE(WIFEXITED(status)) << "it has ended by signal " << WTERMSIG(status);
    EXPECT_TRUE(pollUntil(kBudget, [] {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    })) << "something that it has started outlives it";
    EXPECT_TRUE(said_.starts_with(wire::kGreetingMark));
    return said_.substr(std::min(said_.size(), said_.find('\n') + 1));
  }
  void hangUp() { ::shutdown(near_.get(), SHUT_WR); }

  UniqueFd near_;
  pid_t agent_ = -1;
  std::string said_;
};

TEST_F(AgentWireTest, AnotherVersionIsRefusedWithBothNumbers) {
  start();
  wire::AgentSetup other = setup();
  other.version = wire::kAgentVersion - 1;
  send(framed(other));
  EXPECT_THAT(untilTheEnd(), AllOf(HasSubstr(R"("type":"error")"),
                                   HasSubstr("version " + std::to_string(other.version)),
                                   HasSubstr(std::to_string(wire::kAgentVersion))));
}

TEST_F(AgentWireTest, WhatIsNoMessageEndsIt) {
  for (const std::string& bytes :
       {framed(std::string("no JSON")), framed(std::string("[]")), framed(std::string("{}")),
        framed(std::string(R"({"type":"no such thing"})")),
        framed(std::string(R"({"type":"tell_rank","job":"one","message":""})"))}) {
    begin();
    send(bytes);
    EXPECT_THAT(untilTheEnd(), HasSubstr(R"("type":"error")")) << bytes.substr(4);
    start();
    send(bytes);
    EXPECT_THAT(untilTheEnd(), HasSubstr(R"("type":"error")")) << bytes.substr(4);
  }
}

TEST_F(AgentWireTest, WhatComesTogetherIsHeardWithoutAnythingMore) {
  start();
  send(framed(setup()) + framed(wire::AskClock{}));
  hear(R"("type":"clock")");
  hangUp();
  untilTheEnd();
}

TEST_F(AgentWireTest, AMessageThatIsTooLargeIsRefusedByItsLength) {
  begin();
  send("\xff\xff\xff\x7f{");
  EXPECT_THAT(untilTheEnd(), HasSubstr("a message announces 2147483647 bytes"));
}

TEST_F(AgentWireTest, AMessageWithoutItsEndIsNone) {
  const std::string message = framed(wire::StartRank{.job = 1, .relayed = true});
  begin();
  send(message.substr(0, message.size() - 1));
  hangUp();
  EXPECT_THAT(untilTheEnd(), AllOf(HasSubstr("gone in the middle of a message"),
                                   ::testing::Not(HasSubstr("started"))));
}

TEST_F(AgentWireTest, WhatComesTwiceStartsNothingTwice) {
  const std::string rank = framed(wire::StartRank{.job = 1, .relayed = true});
  begin();
  send(rank + rank);
  EXPECT_THAT(untilTheEnd(), AllOf(HasSubstr(R"("type":"started")"),
                                   HasSubstr("it is to start job 1, and job 1 has been started")));
  begin();
  send(framed(setup()));
  EXPECT_THAT(untilTheEnd(), HasSubstr("a node is set up once"));
}

TEST_F(AgentWireTest, WhateverComesItEndsAndLeavesNothing) {
  // Messages of a run, but for those that execute what they say.
  const std::vector<std::string> usual{
      framed(setup()),
      framed(wire::AskClock{}),
      framed(wire::AskFacts{}),
      framed(wire::WatchCounters{{"lo"}, 20ms}),
      framed(wire::StartRank{.job = 1, .relayed = true}),
      framed(wire::TellRank{1, "{}"}),
      framed(wire::EndJob{1}),
  };
  constexpr std::uint32_t kSeeds = 40;
  for (std::uint32_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t limit) { return random() % limit; };
    std::string bytes;
    for (const std::string& message : usual) {
      std::string said = message;
      switch (below(8)) {
        case 0:  // changed
          said[below(said.size())] = static_cast<char>(below(256));
          break;
        case 1:  // cut
          said.resize(below(said.size()));
          break;
        case 2:  // twice
          said += said;
          break;
        case 3:  // left out
          said.clear();
          break;
        default:
          break;
      }
      bytes += said;
    }
    start();
    send(bytes);
    hangUp();
    untilTheEnd();
  }
}

}  // namespace
}  // namespace faultline
