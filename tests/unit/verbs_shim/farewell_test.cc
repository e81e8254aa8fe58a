// What the shim does when its program ends by exit().
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/unit/verbs_shim/control_folder.h"

namespace {

/// Whether this is the child, which the leak sanitizer is not to look through when it ends: after
/// fork() it does not know what the stack of the control thread points to.
bool g_child = false;

}  // namespace

extern "C" int __lsan_is_turned_off() { return g_child ? 1 : 0; }

namespace faultline::testing {
namespace {

using ::testing::SizeIs;

/// A child with a device and a queue pair, which ends by exit() when it is told to.
class FarewellTest : public ShimTest {
 protected:
  static constexpr int kExitCode = 7;

  void SetUp() override {
    ShimTest::SetUp();
    int ready[2], go_on[2];
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(go_on, O_CLOEXEC), 0);
    UniqueFd acknowledges(ready[1]), may_go_on(go_on[0]);
    go_on_.reset(go_on[1]);
    acknowledged_.reset(ready[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      g_child = true;
      go_on_.reset();
      static Device* const device = new Device(0);  // nothing of it is taken down
      ibv_qp* const qp = device->makeQp();
      char word = 'x';
      do {
        obey(word, qp);
        [[maybe_unused]] const ssize_t written = ::write(acknowledges.get(), &word, 1);
      } while (::read(may_go_on.get(), &word, 1) == 1);
      std::exit(kExitCode);
    }
    acknowledges.reset();
    awaitAcknowledgement();
  }
  void TearDown() override {
    go_on_.reset();
    if (pid_ > 0) end();
    ShimTest::TearDown();
  }

  /// Returns when it is done.
  void tell(char word) const {
    EXPECT_EQ(::write(go_on_.get(), &word, 1), 1);
    awaitAcknowledgement();
  }
  /// Its exit code; one that does not end within some seconds is killed.
  int end() {
    go_on_.reset();
    int status = 0;
    if (!becomes([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string path() const {
    return injector::verbs::socketPath(injector::verbs::defaultFolder(::geteuid()), pid_,
                                       injector::verbs::pidNamespaceOf("self"));
  }

  pid_t pid_ = 0;

 private:
  void awaitAcknowledgement() const {
    char word = 0;
    EXPECT_EQ(::read(acknowledged_.get(), &word, 1), 1);
  }
  static void obey(char word, ibv_qp* qp) {
    if (word == 'p') postSend(qp, 1);
    if (word == 'b') fake().blockModify(true);
    // The control thread, which is to put the queue pair in error.
    if (word == 'w') becomes([] { return fake().blocked() == 1; });
    // Without the handlers of fork().
    if (word == 'f' && ::_Fork() == 0) std::exit(0);
    if (word == 'f') ::wait(nullptr);
  }

  UniqueFd go_on_, acknowledged_;
};

TEST_F(FarewellTest, ItTellsWhatHasComeOfEachFaultAndItsSocketIsGone) {
  Connection control = valueOf(Connection::open(pid_));
  const std::uint64_t struck = valueOf(control.arm(rule(Effect::kPostError)));
  Rule never = rule(Effect::kPostError);
  never.trigger.afterOperations = 1000;
  const std::uint64_t waiting = valueOf(control.arm(never));
  const Connection other = valueOf(Connection::open(pid_));  // has nothing to be told of
  const std::string socket = path();
  EXPECT_EQ(::access(socket.c_str(), F_OK), 0);
  tell('p');
  EXPECT_EQ(end(), kExitCode);
  EXPECT_NE(::access(socket.c_str(), F_OK), 0);
  EXPECT_EQ(control.counters(struck).status().code(), Code::kUnavailable);
  ASSERT_TRUE(control.last(struck));
  EXPECT_EQ(control.last(struck)->happened, 1u);
  ASSERT_TRUE(control.last(waiting));
  EXPECT_EQ(control.last(waiting)->operations, 1u);
  EXPECT_EQ(control.last(waiting)->happened, 0u);
  EXPECT_FALSE(control.last(waiting + 1));
}

TEST_F(FarewellTest, ADeviceThatDoesNotAnswerDoesNotHoldTheEndUp) {
  Connection control = valueOf(Connection::open(pid_));
  tell('b');
  std::thread controller(
      [&] { EXPECT_EQ(control.arm(rule(Effect::kQpError)).status().code(), Code::kUnavailable); });
  tell('w');
  EXPECT_EQ(end(), kExitCode);
  controller.join();
}

TEST_F(FarewellTest, AProcessThatItHasMadeByAnotherWayThanForkTakesNothingAlong) {
  tell('f');
  Connection control = valueOf(Connection::open(pid_));
  EXPECT_THAT(valueOf(control.list()), SizeIs(1));
  EXPECT_EQ(::access(path().c_str(), F_OK), 0);
}

}  // namespace
}  // namespace faultline::testing
