#include "harness/cli/separate_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <optional>

#include "base/unique_fd.h"
#include "harness/control/interrupt.h"
#include "tests/support/usual_signals.h"

namespace faultline::cli {
namespace {

constexpr int kPatienceMs = 20'000;
constexpr int kCode = 42;         // of what has been done in order
constexpr int kCannot = 43;       // there was no new process
constexpr int kNotRestored = 44;  // it was killed

/// A process, the first of its group, that goes on in a separate one.
class Controller {
 public:
  /// `work` is done there; it gets where to write what it has done.
  explicit Controller(const std::function<void(int told)>& work,
                      std::optional<Duration> longest = std::nullopt,
                      const std::function<bool()>& overdue = {}) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    std::fflush(nullptr);  // what is there to be said is said once
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      testing::takeSignalsAsUsual();
      const auto ended = goOnInSeparateProcess(longest, overdue);
      if (!ended.ok())
        ::_exit(ended.status().code() == Code::kNotRestored ? kNotRestored : kCannot);
      if (ended->has_value()) ::_exit(**ended);
      const pid_t self = ::getpid();
      if (::write(pipe[1], &self, sizeof(self)) != sizeof(self)) ::_exit(kCannot);
      work(pipe[1]);
      ::_exit(kCode);
    }
    ::close(pipe[1]);
    told_.reset(pipe[0]);
    EXPECT_EQ(::read(told_.get(), &separate_, sizeof(separate_)),
              static_cast<ssize_t>(sizeof(separate_)));
    EXPECT_NE(separate_, pid_);
  }
  ~Controller() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  pid_t pid() const { return pid_; }
  pid_t separate() const { return separate_; }

  /// Whether the new process says that it has taken back what it had done.
  bool tookItBack() const {
    pollfd ready{told_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&ready, 1, kPatienceMs) == 1 && ::read(told_.get(), &byte, 1) == 1;
  }
  /// Its exit code, or 128 and the signal that killed it.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  pid_t separate_ = 0;
  UniqueFd told_;
};

/// Holds something until it is interrupted, and takes it back then.
void holdSomething(int told) {
  testing::takeSignalsAsUsual();
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return;
  pollfd signal{interrupt->fd(), POLLIN, 0};
  if (::poll(&signal, 1, kPatienceMs) != 1 || !interrupt->pending()) return;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(told, &byte, 1);
}

TEST(SeparateProcessTest, ItsExitCodeIsPassedOn) {
  {
    Controller controller([](int) {});
    EXPECT_EQ(controller.wait(), kCode);
  }
  // Also where whoever started it takes no notice of ends, which is inherited.
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGCHLD, SIG_IGN);
    const auto ended = goOnInSeparateProcess();
    ::_exit(ended.ok() ? ended->value_or(kCode) : kCannot);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kCode) << status;
}

TEST(SeparateProcessTest, SignalsArePassedOn) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Controller controller(holdSomething);
    ::kill(controller.pid(), number);
    EXPECT_TRUE(controller.tookItBack()) << number;
    EXPECT_EQ(controller.wait(), kCode) << number;
  }
}

TEST(SeparateProcessTest, WhenItsControllerIsKilledItEndsInOrder) {
  // By its number, and with its group, as a shell or timeout(1) does.
  for (const int sign : {1, -1}) {
    Controller controller(holdSomething);
    ::kill(sign * controller.pid(), SIGKILL);
    EXPECT_EQ(controller.wait(), 128 + SIGKILL);
    EXPECT_TRUE(controller.tookItBack()) << sign;
  }
}

TEST(SeparateProcessTest, WhatHangsIsKilledWhenItsTimeIsOver) {
  const TimePoint begin = now();
  // It is stopped, as by Ctrl-Z or a debugger.
  Controller controller([](int) { ::raise(SIGSTOP); }, 300ms);
  EXPECT_EQ(controller.wait(), kNotRestored);
  EXPECT_GE(now() - begin, 300ms);
  Controller prompt([](int) {}, 20s);
  EXPECT_EQ(prompt.wait(), kCode);
}

TEST(SeparateProcessTest, WhatIsOverdueIsKilledBeforeThat) {
  const TimePoint begin = now();
  Controller controller([](int) { ::raise(SIGSTOP); }, 20s, [=] { return now() - begin > 300ms; });
  EXPECT_EQ(controller.wait(), kNotRestored);
  EXPECT_GE(now() - begin, 300ms);
  EXPECT_LT(now() - begin, 20s);
}

TEST(SeparateProcessTest, ThatItWasKilledItselfIsTold) {
  Controller controller(holdSomething);
  ::kill(controller.separate(), SIGKILL);
  EXPECT_EQ(controller.wait(), kNotRestored);
}

}  // namespace
}  // namespace faultline::cli
