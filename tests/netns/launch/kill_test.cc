#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <string>

#include "base/random.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/victim.h"

namespace faultline::launch {
namespace {

using test::NamespaceObserver;
using test::Victim;

/// Promised to users: after a SIGKILL nothing is left after two seconds.
constexpr Duration kPromise = 2s;
constexpr Duration kStartBudget = 20s;

class KillTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    // Orphans come to us, so that zombies can be reaped here.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
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
  int mostWatched = 0;
  for (int moment = 0; moment < kMoments; ++moment) {
    const auto targets =
        moment % 2 == 0 ? Victim::Targets::kProgramAlone : Victim::Targets::kWholeGroup;
    ASSERT_OK_AND_ASSIGN(NamespaceObserver observer, NamespaceObserver::make());
    Victim victim({FAULTLINE_VICTIM});
    // Every fifth moment is anywhere, also while the cluster is being made; the others come while
    // there is traffic and the port flaps.
    if (moment % 5 != 0) {
      ASSERT_TRUE(victim.awaitOutput("\n", kStartBudget));
    }
    const auto delay = static_cast<int>(random.below(kLatestMilliseconds));
    ::poll(nullptr, 0, moment % 5 != 0 ? delay : delay / 10);
    ASSERT_TRUE(victim.killAndWatch(targets, observer));
    mostWatched = std::max(mostWatched, observer.watched());
    EXPECT_TRUE(victim.allGone(observer, kPromise))
        << "moment " << moment << ", " << delay << " ms: " << *observer.alive() << " of "
        << observer.watched() << " namespaces are left";
    RecordProperty("vanished_ms_" + std::to_string(moment),
                   static_cast<int>(toMilliseconds(victim.sinceKill())));
  }
  EXPECT_GE(mostWatched, 4) << "three nodes and a switch should have been seen";
}

// The observer must be able to see what is left: here the test keeps the namespaces itself.
TEST_F(KillTest, TheObserverNoticesANamespaceThatStays) {
  ASSERT_OK_AND_ASSIGN(NamespaceObserver observer, NamespaceObserver::make());
  Victim victim({FAULTLINE_VICTIM});
  ASSERT_TRUE(victim.awaitOutput("\n", kStartBudget));
  ::kill(victim.pid(), SIGSTOP);
  const auto held = test::networkNamespacesOf(test::processTree(victim.pid()));
  ASSERT_GE(held.size(), 4u);
  ASSERT_TRUE(victim.killAndWatch(Victim::Targets::kWholeGroup, observer));
  EXPECT_FALSE(victim.allGone(observer, 300ms));
}

}  // namespace
}  // namespace faultline::launch
