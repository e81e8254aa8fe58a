// Whatever dies: the state is as before, once the fault service is there again.
#include <random>

#include "tests/netns/service/service_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;

TEST_F(ServiceTest, WhenTheServiceIsKilledTheHolderUndoes) {
  const std::string before = state();
  const auto one = striking();
  (void)endService(SIGKILL);
  EXPECT_TRUE(undone(before));
  EXPECT_EQ(one->whyDropped(), "without a word");
}

TEST_F(ServiceTest, WhenTheHolderIsKilledTheServiceUndoes) {
  const std::string before = state();
  const auto one = striking();
  ::kill(holder(), SIGKILL);
  EXPECT_THAT(one->whyDropped(), HasSubstr("the process that served it has ended (killed by"));
  EXPECT_TRUE(undone(before));
}

TEST_F(ServiceTest, WhatAKilledHolderHasChangedIsUndoneAlsoWithThousandsOfRoutes) {
  // More than a megabyte in the journal.
  ASSERT_EQ(
      shell("i=0; while [ $i -lt 6000 ]; do "
            "echo \"route add 10.$((100 + i / 250)).$((i % 250)).0/24 via 10.9.1.2 dev eth1\"; "
            "i=$((i + 1)); done | ip -batch -")
          .exit,
      0);
  const std::string before = state();
  const auto one = striking();
  ::kill(holder(), SIGKILL);
  EXPECT_THAT(one->whyDropped(), HasSubstr("is being taken back"));
  EXPECT_TRUE(undone(before));
  EXPECT_TRUE(isUp("eth1"));
}

TEST_F(ServiceTest, AnEntryThatCannotBeReadIsLeft) {
  const auto one = striking();
  one->leave();
  ASSERT_TRUE(pollUntil(40s, [&] { return entries().empty(); }));
  std::ofstream(journal_ + "/damaged.json") << "{}";
  const Ran ran = endService();
  EXPECT_EQ(ran.exit, 4) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("1 strikes are left"));
}

TEST_F(ServiceTest, WhenTheHolderIsStoppedTheServiceKillsItAndUndoes) {
  const std::string before = state();
  const auto one = striking();
  const pid_t pid = holder();
  ::kill(pid, SIGSTOP);
  one->leave();
  EXPECT_TRUE(undone(before));
  EXPECT_EQ(holderOf(pid).started, 0u);
  EXPECT_THAT(endService().err, HasSubstr("hangs and is killed"));
}

TEST_F(ServiceTest, AStoppedHolderIsNotWaitedForLongerThanItsTime) {
  const std::string before = state();
  const auto one = striking(portDown(2s, 60s));
  ::kill(holder(), SIGSTOP);
  EXPECT_TRUE(undone(before));
  EXPECT_THAT(one->whyDropped(), HasSubstr("its longest, 2s, is over"));
}

TEST_F(ServiceTest, TheNextServiceUndoesWhatServiceAndHolderHaveLeft) {
  const std::string before = state();
  const auto one = striking();
  const pid_t pid = holder();
  ::kill(pid, SIGSTOP);  // or it would undo before it is killed
  (void)endService(SIGKILL);
  ::kill(pid, SIGKILL);
  EXPECT_FALSE(isUp("eth1"));
  startService();
  EXPECT_TRUE(undone(before));
}

TEST_F(ServiceTest, UndoesWhatAnInjectByHandHasLeft) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  ::kill(entry->holder.pid, SIGSTOP);
  running.signal(SIGKILL);
  (void)running.wait();
  ::kill(entry->holder.pid, SIGKILL);
  EXPECT_TRUE(undone(before));
  EXPECT_THAT(endService().err, HasSubstr("restored: port_down of eth1"));
}

TEST_F(ServiceTest, AnEpilogEndsWhatItsJobHoldsAndNothingElse) {
  writePolicy("at_once: {node: 2, job: 1}\n");
  const std::string before = state();
  std::string command = "SLURM_JOB_ID=17 exec";
  for (const std::string& word :
       words({"inject", "port_down", "--target", "eth2", "--for", "60s"})) {
    command += " " + (word == "faultline" ? FAULTLINE_BINARY_DIR "/faultline" : word);
  }
  Running running("/bin/sh", {"sh", "-c", command}, host_.get());
  ASSERT_TRUE(held("eth2"));
  const auto one = striking();
  ASSERT_EQ(restore({"--job", "18", "--force"}).exit, 0);
  EXPECT_FALSE(isUp("eth2"));
  const Ran ran = restore({"--job", "17", "--force"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("restored: port_down of eth2"));
  EXPECT_EQ(running.wait().exit, 130);
  EXPECT_TRUE(isUp("eth2"));
  EXPECT_FALSE(isUp("eth1"));
  one->leave();
  EXPECT_TRUE(undone(before));
}

TEST_F(ServiceTest, WhatCannotBeUndoneIsToldAndNobodyIsKeptFromTheRest) {
  const std::string before = state();
  writePolicy("at_once: {node: 3, job: 3}\n");
  Running running = start({"inject", "port_down", "--target", "eth2", "--for", "60s"});
  const auto entry = held("eth2");
  ASSERT_TRUE(entry);
  ASSERT_EQ(shell("ip link delete eth2").exit, 0);
  running.signal(SIGINT);
  EXPECT_EQ(running.wait().exit, 4);
  const auto one = striking();
  one->leave();
  EXPECT_TRUE(pollUntil(40s, [&] { return isUp("eth1") && entries().size() == 1; }));
  EXPECT_TRUE(pollUntil(20s, [&] {
    return service_->errors().find("left: port_down of eth2") != std::string::npos;
  }));
  EXPECT_EQ(endService().exit, 4);
}

TEST_F(ServiceTest, ClosesWhatIsOfAnotherBootAndReplaysNothing) {
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  auto entry = held();
  ASSERT_TRUE(entry);
  running.signal(SIGINT);
  (void)running.wait();
  (void)endService();
  entry->bootId = "of-an-earlier-boot";
  auto journal = Journal::open(journal_);
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE(journal->write(*entry).ok());
  ASSERT_EQ(shell("ip link set eth1 down").exit, 0);  // somebody's wish of today
  startService();
  EXPECT_TRUE(pollUntil(20s, [&] { return entries().empty(); }));
  EXPECT_FALSE(isUp("eth1"));
}

TEST_F(ServiceTest, KilledAtRandomMomentsItIsAsBeforeOnceAServiceIsThereAgain) {
  const std::string before = state();
  std::mt19937 random(11);  // NOLINT: the same each time
  constexpr int kTimes = 20;
  int equal = 0;
  int journaled = 0;
  for (int i = 0; i < kTimes; ++i) {
    auto one = std::make_unique<TestClient>(client());
    ASSERT_TRUE(one->say(portDown()));
    ASSERT_TRUE(one->say(wire::CallFault{wire::FaultCall::kPrepare}));
    const auto prepared = one->hear();
    ASSERT_TRUE(std::holds_alternative<wire::HolderAnswer>(prepared));
    ASSERT_TRUE(one->say(wire::CallFault{wire::FaultCall::kApply}));
    const auto moment = std::uniform_int_distribution<int>(0, 40)(random);
    const bool reverts = std::uniform_int_distribution<int>(0, 2)(random) == 0;
    if (reverts) {  // in the middle of the undo
      (void)one->hear();
      ASSERT_TRUE(one->say(wire::CallFault{wire::FaultCall::kRevert}));
    }
    ::usleep(static_cast<useconds_t>(moment) * 1000);
    const pid_t pid = holder();
    journaled += pid != 0 ? 1 : 0;
    const int whom = std::uniform_int_distribution<int>(0, 3)(random);
    const bool service = whom == 0 || whom == 2;
    if (whom == 2 && pid != 0) ::kill(pid, SIGSTOP);
    if (whom == 3) one->signal(SIGKILL);
    if (service) (void)endService(SIGKILL);
    if (whom != 0 && whom != 3 && pid != 0) ::kill(pid, SIGKILL);
    if (service) startService();
    one->leave();
    const bool same = undone(before);
    EXPECT_TRUE(same) << i << ": " << moment << " ms, " << whom << (reverts ? ", undoing" : "");
    equal += same ? 1 : 0;
  }
  EXPECT_EQ(equal, kTimes);
  EXPECT_GT(journaled, kTimes / 4) << "some were in effect";
  RecordProperty("journaled", journaled);
}

}  // namespace
}  // namespace faultline::safety
