#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/random.h"
#include "tests/support/namespace_observer.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/process_tree.h"

namespace faultline::launch {
namespace {

using test::isGone;
using test::NamespaceObserver;
using test::pollUntil;
using test::ProcessId;

/// Promised to users: after a SIGKILL nothing is left after two seconds.
constexpr Duration kPromise = 2s;

enum class Victims { kControllerAlone, kWholeGroup };

class KillTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    // Orphans come to us, so that zombies can be reaped here.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  /// Starts the program in a process group of its own.
  void start() {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_.reset(ends[0]);
    const UniqueFd write_end(ends[1]);
    controller_ = ::fork();
    ASSERT_GE(controller_, 0);
    if (controller_ == 0) {
      ::setpgid(0, 0);
      ::dup2(write_end.get(), STDOUT_FILENO);
      ::execl(FAULTLINE_VICTIM, "victim", nullptr);
      ::_exit(127);
    }
    ::setpgid(controller_, controller_);  // also here: whichever comes first
  }

  /// Stops the program in its tracks, looks at what it holds, and kills it.
  void killAndWatch(Victims victims, NamespaceObserver& observer) {
    ::kill(controller_, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(controller_, &status, WUNTRACED), controller_);
    ASSERT_TRUE(WIFSTOPPED(status)) << "it ended by itself with status " << status;
    tree_ = test::processTree(controller_);
    for (const UniqueFd& fd : test::networkNamespacesOf(tree_)) {
      ASSERT_OK(observer.watch(fd.get()));
    }
    ::kill(victims == Victims::kWholeGroup ? -controller_ : controller_, SIGKILL);
    killed_at_ = now();
  }

  /// Whether all processes and namespaces vanish within `budget` from the kill on.
  bool allGone(NamespaceObserver& observer, Duration budget) {
    const auto gone = [&] {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      for (const ProcessId& process : tree_) {
        if (!isGone(process)) return false;
      }
      const auto alive = observer.alive();
      return alive.ok() && *alive == 0;
    };
    return pollUntil(killed_at_ + budget - now(), gone);
  }

  bool awaitTraffic() {
    pollfd ready{output_.get(), POLLIN, 0};
    constexpr int kMilliseconds = 20'000;
    char line[16];
    return ::poll(&ready, 1, kMilliseconds) == 1 && ::read(output_.get(), line, sizeof line) > 0;
  }

  pid_t controller_ = -1;
  UniqueFd output_;
  std::vector<ProcessId> tree_;
  TimePoint killed_at_;
};

TEST_F(KillTest, NothingIsLeftAfterSigkillAtAnyMoment) {
  const char* const given = std::getenv("FAULTLINE_SEED");
  const std::uint64_t seed = given != nullptr
                                 ? std::strtoull(given, nullptr, 10)
                                 : static_cast<std::uint64_t>(now().time_since_epoch().count());
  SCOPED_TRACE(fmt::format("seed: set FAULTLINE_SEED={} to repeat", seed));
  Random random(seed);
  constexpr int kMoments = 10;
  constexpr std::uint64_t kLatestMilliseconds = 1000;
  int most_watched = 0;
  for (int moment = 0; moment < kMoments; ++moment) {
    const Victims victims = moment % 2 == 0 ? Victims::kControllerAlone : Victims::kWholeGroup;
    ASSERT_OK_AND_ASSIGN(NamespaceObserver observer, NamespaceObserver::make());
    start();
    // Every fifth moment is anywhere, also while the cluster is being made; the others come while
    // there is traffic and the port flaps.
    if (moment % 5 != 0) {
      ASSERT_TRUE(awaitTraffic());
    }
    const auto delay = static_cast<int>(random.below(kLatestMilliseconds));
    ::poll(nullptr, 0, moment % 5 != 0 ? delay : delay / 10);
    killAndWatch(victims, observer);
    most_watched = std::max(most_watched, observer.watched());
    EXPECT_TRUE(allGone(observer, kPromise))
        << "moment " << moment << ", " << delay << " ms, "
        << (victims == Victims::kWholeGroup ? "whole group" : "controller alone") << ": "
        << *observer.alive() << " of " << observer.watched() << " namespaces are left";
    RecordProperty("vanished_ms_" + std::to_string(moment),
                   static_cast<int>(toMilliseconds(now() - killed_at_)));
  }
  EXPECT_GE(most_watched, 4) << "three nodes and a switch should have been seen";
}

// The observer must be able to see what is left: here it keeps one namespace itself.
TEST_F(KillTest, TheObserverNoticesANamespaceThatStays) {
  ASSERT_OK_AND_ASSIGN(NamespaceObserver observer, NamespaceObserver::make());
  start();
  ASSERT_TRUE(awaitTraffic());
  ::kill(controller_, SIGSTOP);
  const auto held = test::networkNamespacesOf(test::processTree(controller_));
  ASSERT_GE(held.size(), 4u);
  killAndWatch(Victims::kWholeGroup, observer);
  EXPECT_FALSE(allGone(observer, 300ms));
}

}  // namespace
}  // namespace faultline::launch
