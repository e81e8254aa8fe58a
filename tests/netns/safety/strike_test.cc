// Strikes on interfaces of a host, by the real program, in a namespace that is like one.
#include <sys/wait.h>

#include <random>

#include "injector/safety/policy_file.h"
#include "tests/netns/safety/host_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;
using ::testing::AllOf;
using ::testing::Not;

TEST_F(HostTest, StrikesProvesAndPutsBackAllThatWasLost) {
  const std::string before = state();
  const Ran ran = strike({"--json"});
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const auto told = nlohmann::json::parse(ran.out);
  EXPECT_EQ(told["evidence"]["ok"], true);
  EXPECT_THAT(told["evidence"]["observed"].get<std::string>(),
              AllOf(HasSubstr("has lost its carrier; the counters stood still for"),
                    Not(HasSubstr("neighbours"))));
  EXPECT_GE(told["lasted_ms"], 200);
  EXPECT_EQ(told["operations"][0]["do"], "ip link set dev eth1 down");
  EXPECT_EQ(told["operations"][0]["undo"], "ip link set dev eth1 up");
  EXPECT_THAT(told["blast_radius"]["addresses"].dump(), HasSubstr("10.9.1.9"));
  EXPECT_THAT(ran.err, HasSubstr("strikes eth1 (MAC "));
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, ADryRunTellsAndChangesNothing) {
  const std::string before = state();
  const Ran ran = strike({"--dry-run"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("do    ip link set dev eth1 down\n"),
                    HasSubstr("undo  ip link set dev eth1 up"), HasSubstr("it would be allowed")));
  const Ran no = run({"inject", "port_down", "--target", "eth0", "--for", "1s", "--dry-run"});
  EXPECT_THAT(no.out, HasSubstr("it would be refused: eth0 carries a default route"));
  EXPECT_TRUE(isAgain(before));
  EXPECT_FALSE(std::filesystem::exists(journal_));
}

TEST_F(HostTest, LimitsWhatIsSentProvesItAndTakesItBack) {
  const std::string before = state();
  const Ran ran = run({"inject", "throttle", "--target", "eth1", "--for", "300ms", "--param",
                       "rate=20Mbit", "--json"});
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const auto told = nlohmann::json::parse(ran.out);
  EXPECT_THAT(told["operations"][0]["do"].get<std::string>(),
              HasSubstr("tc qdisc add dev eth1 root handle fa1a: tbf rate 20000000bit"));
  EXPECT_THAT(told["evidence"]["observed"].get<std::string>(), HasSubstr("left the queue"));
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, LosesAShareProvesItAndTakesItBack) {
  const std::string before = state();
  for (const std::string direction : {"both", "out", "in"}) {
    const Ran ran = run({"inject", "loss", "--target", "eth1", "--for", "200ms", "--param",
                         "percent=40%", "--param", "direction=" + direction, "--json"});
    ASSERT_EQ(ran.exit, 0) << direction << ran.out << ran.err;
    const auto told = nlohmann::json::parse(ran.out);
    // Of both ways a question or its answer is lost: 1 - 0.6 * 0.6.
    EXPECT_THAT(told["evidence"]["observed"].get<std::string>(),
                HasSubstr(direction == "both" ? "asked: 64 %" : "asked: 40 %"));
    EXPECT_TRUE(isAgain(before));
    EXPECT_TRUE(entries().empty());
  }
}

TEST_F(HostTest, LosesAllOfOneDirectionAndTellsWhich) {
  const std::string before = state();
  for (const std::string direction : {"out", "in"}) {
    const Ran ran = run({"inject", "one_way_loss", "--target", "eth1", "--for", "300ms", "--param",
                         "direction=" + direction, "--json"});
    ASSERT_EQ(ran.exit, 0) << direction << ran.out << ran.err;
    const std::string seen =
        nlohmann::json::parse(ran.out)["evidence"]["observed"].get<std::string>();
    EXPECT_THAT(seen, HasSubstr("0 answers that were heard"));
    EXPECT_EQ(seen.find("it sent 0 frames") != std::string::npos, direction == "out") << seen;
    EXPECT_TRUE(isAgain(before));
    EXPECT_TRUE(entries().empty());
  }
}

// The same hook, and nothing in it: what is left of one who was killed while he made it.
TEST_F(HostTest, AFilterOfSomebodyElseRefusesThem) {
  ASSERT_EQ(shell("tc qdisc add dev eth1 clsact").exit, 0);
  for (const auto& kind :
       std::vector<std::vector<std::string>>{{"one_way_loss"}, {"loss", "--param", "percent=5%"}}) {
    std::vector<std::string> words{"inject", "--target", "eth1", "--for", "1s"};
    words.insert(words.begin() + 1, kind.begin(), kind.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.exit, 3) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("has a clsact with 0 filters already, which is not ours"));
  }
  EXPECT_THAT(shell("tc qdisc show dev eth1").out, HasSubstr("clsact"));
}

TEST_F(HostTest, TheCommandsThatAreToldDoTheSame) {
  for (const auto& more :
       std::vector<std::vector<std::string>>{{"blackhole"},
                                             {"one_way_loss", "--param", "direction=in"},
                                             {"loss", "--param", "percent=30%"},
                                             {"throttle", "--param", "rate=20Mbit"},
                                             {"port_down"}}) {
    std::vector<std::string> words{"inject", "--target", "eth2", "--for", "60s"};
    words.insert(words.begin() + 1, more.begin(), more.end());
    const auto told = [&] {
      std::vector<std::string> dry = words;
      dry.insert(dry.end(), {"--dry-run", "--json"});
      return nlohmann::json::parse(run(dry).out)["operations"][0];
    }();
    const std::string before = state();
    Running running = start(words);
    ASSERT_TRUE(pollUntil(20s, [&] { return state() != before && !entries().empty(); }));
    const std::string broken = state();
    running.signal(SIGINT);
    EXPECT_EQ(running.wait().exit, 130);
    EXPECT_TRUE(isAgain(before));
    ASSERT_EQ(shell(told["do"]).exit, 0) << told;
    EXPECT_EQ(state(), broken) << told;
    ASSERT_EQ(shell(told["undo"]).exit, 0) << told;
    // A port that comes up by hand has lost what only we put back.
    if (more.front() != "port_down") {
      EXPECT_TRUE(isAgain(before)) << told;
    }
  }
}

TEST_F(HostTest, WhatOthersHaveUndoneIsNotUndoneAgain) {
  Running running =
      start({"inject", "throttle", "--target", "eth1", "--for", "60s", "--param", "rate=20Mbit"});
  const auto hasQueue = [&] {
    return shell("tc qdisc show dev eth1").out.find("tbf") != std::string::npos;
  };
  ASSERT_TRUE(pollUntil(20s, hasQueue));
  // By hand; and then a queue of somebody's.
  ASSERT_EQ(shell("tc qdisc del dev eth1 root; tc qdisc add dev eth1 root handle 7: tbf rate 1mbit "
                  "burst 5000 limit 30000")
                .exit,
            0);
  running.signal(SIGINT);
  const Ran ran = running.wait();
  EXPECT_EQ(ran.exit, 130) << ran.out << ran.err;
  EXPECT_TRUE(hasQueue()) << "it is not ours";
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, ARouteThatIsWithdrawnMeanwhileStaysWithdrawn) {
  const std::string before = state();
  Running running = start({"inject", "blackhole", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(pollUntil(20s, [&] { return state() != before && !entries().empty(); }));
  ASSERT_EQ(shell("ip route del 10.77.0.0/16").exit, 0);
  running.signal(SIGINT);
  EXPECT_EQ(running.wait().exit, 130);
  EXPECT_EQ(shell("ip route show 10.77.0.0/16").out, "");
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, IsFoundByItsAddress) {
  const auto present = presentTargets(*socket_);
  ASSERT_TRUE(present.ok());
  const auto eth2 = choose(*present, {.interface = "eth2"});
  ASSERT_TRUE(eth2.ok());
  const Ran ran =
      run({"inject", "port_down", "--target", "mac=" + eth2->mac, "--for", "50ms", "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["blast_radius"]["interface"], "eth2");
}

TEST_F(HostTest, InterruptedItPutsBackAllThatWasLost) {
  const std::string before = state();
  for (const int number : {SIGINT, SIGTERM}) {
    Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
    ASSERT_TRUE(held());
    running.signal(number);
    const Ran ran = running.wait();
    EXPECT_EQ(ran.exit, 130) << ran.out << ran.err;
    EXPECT_TRUE(isAgain(before));
    EXPECT_TRUE(entries().empty());
  }
}

TEST_F(HostTest, WhenItsHolderIsKilledTheParentUndoes) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  EXPECT_NE(entry->holder.pid, running.pid());
  ::kill(entry->holder.pid, SIGKILL);
  const Ran ran = running.wait();
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("what it had changed was taken back, from the journal"));
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, WhenTheParentIsKilledTheHolderUndoes) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(held());
  running.signal(SIGKILL);
  EXPECT_EQ(running.wait().exit, 128 + SIGKILL);
  EXPECT_TRUE(pollUntil(20s, [&] { return entries().empty(); }));
  EXPECT_TRUE(isAgain(before));
}

TEST_F(HostTest, WhenItsHolderIsStoppedTheParentUndoesSoonAfterTheEnd) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "3s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  ASSERT_EQ(::kill(entry->holder.pid, SIGSTOP), 0);
  const Ran ran = running.wait();
  const TimePoint end = now();
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("what it had changed was taken back, from the journal"));
  EXPECT_LT(end - entry->endsMonotonic, kUndoGrace + 15s) << "not only after 30 s and its commands";
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, WhenItsHolderIsStoppedAndTheParentDeadRestoreUndoesOnceItIsOverdue) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "3s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  ASSERT_EQ(::kill(entry->holder.pid, SIGSTOP), 0);
  running.signal(SIGKILL);
  (void)running.wait();
  EXPECT_FALSE(isUp("eth1"));
  ASSERT_TRUE(pollUntil(20s, [&] { return isOverdue(*entry, now()); }));
  const Ran ran = restore();
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("restored: port_down of eth1"));
  EXPECT_FALSE(isHeld(*entry));
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, KilledAtRandomMomentsRestoreMakesItAsBefore) {
  const std::string before = state();
  std::mt19937 random(7);  // NOLINT: the same each time
  constexpr int kTimes = 20;
  int equal = 0;
  int undone = 0;
  for (int i = 0; i < kTimes; ++i) {
    Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
    const auto moment = std::uniform_int_distribution<int>(0, 600)(random);
    // The first ones in states that are waited for, as a busy machine may not come that far.
    const bool named = i < 2;
    if (i == 0) {
      ASSERT_TRUE(held());
    } else if (i == 1) {
      ASSERT_TRUE(pollUntil(20s, [&] { return !entries().empty(); }));
    } else {
      ::usleep(static_cast<useconds_t>(moment) * 1000);
    }
    std::string children;
    std::getline(std::ifstream(fmt::format("/proc/{0}/task/{0}/children", running.pid())),
                 children);
    const pid_t holder = children.empty() ? 0 : std::stoi(children);
    const int drawn = std::uniform_int_distribution<int>(0, 2)(random);
    const int whom = named ? 2 : drawn;  // both
    if (whom != 1) running.signal(SIGKILL);
    if (whom != 0 && holder != 0) ::kill(holder, SIGKILL);
    if (whom == 1 && holder == 0) running.signal(SIGKILL);
    (void)running.wait();
    // A holder that lives ends by itself; --force waits for that.
    const Ran ran = restore({"--force", "--json"});
    EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
    if (ran.exit == 0) undone += nlohmann::json::parse(ran.out)["strikes"].empty() ? 0 : 1;
    EXPECT_TRUE(pollUntil(20s, [&] { return entries().empty(); }));
    const bool same = isAgain(before);
    EXPECT_TRUE(same) << i << ": " << moment << " ms, " << whom;
    equal += same ? 1 : 0;
    EXPECT_THAT(restore().out, HasSubstr("nothing is left")) << "again";
  }
  EXPECT_EQ(equal, kTimes);
  EXPECT_GT(undone, 0) << "some were left";
  RecordProperty("restored", undone);
}

TEST_F(HostTest, RenamedMeanwhileItIsFoundAgain) {
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(held());
  // Somebody else has its name now.
  ASSERT_EQ(
      shell("ip link set eth1 name data7; ip link set eth2 down; ip link set eth2 name eth1").exit,
      0);
  running.signal(SIGINT);
  const Ran ran = running.wait();
  EXPECT_EQ(ran.exit, 130) << ran.out << ran.err;
  EXPECT_TRUE(isUp("data7"));
  EXPECT_FALSE(isUp("eth1")) << "of that nobody has spoken";
  EXPECT_THAT(shell("ip route show dev data7").out, HasSubstr("10.77.0.0/16 via 10.9.1.2"));
}

TEST_F(HostTest, WhatIsGoneIsToldAndStaysInTheJournal) {
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(held());
  ASSERT_EQ(shell("ip link delete eth1").exit, 0);
  running.signal(SIGINT);
  const Ran ran = running.wait();
  EXPECT_EQ(ran.exit, 4) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("is gone"));
  EXPECT_EQ(restore().exit, 4);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(HostTest, AnEntryOfAnotherBootIsClosedAndNothingReplayed) {
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  auto entry = held();
  ASSERT_TRUE(entry);
  running.signal(SIGINT);
  (void)running.wait();
  entry->bootId = "of-an-earlier-boot";
  auto journal = Journal::open(journal_);
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE(journal->write(*entry).ok());
  ASSERT_EQ(shell("ip link set eth1 down").exit, 0);  // somebody's wish of today
  const Ran ran = restore();
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("closed: port_down of eth1"));
  EXPECT_FALSE(isUp("eth1"));
  EXPECT_TRUE(entries().empty());
}

TEST_F(HostTest, WhatIsHeldIsLeftToItsHolderUnlessForced) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(held());
  const auto shown = nlohmann::json::parse(run({"status", "--json"}).out);
  EXPECT_EQ(shown["held"][0]["interface"], "eth1");
  EXPECT_TRUE(shown["left"].empty());
  const Ran left = restore();
  EXPECT_EQ(left.exit, 0) << left.err;
  EXPECT_THAT(left.out, HasSubstr("holds it, and takes it back itself; --force ends that first"));
  EXPECT_FALSE(isUp("eth1"));
  // The policy says one at once.
  const Ran second = run({"inject", "port_down", "--target", "eth2", "--for", "1s"});
  EXPECT_EQ(second.exit, 3);
  EXPECT_THAT(second.err, HasSubstr("allows 1 at once on this machine, and there are 1 already"));
  EXPECT_TRUE(isUp("eth2"));
  const Ran forced = restore({"--force"});
  EXPECT_EQ(forced.exit, 0) << forced.out << forced.err;
  EXPECT_EQ(running.wait().exit, 130);
  EXPECT_TRUE(isAgain(before));
  EXPECT_THAT(run({"status"}).out, HasSubstr("nothing is held, nothing is left"));
}

}  // namespace
}  // namespace faultline::safety
