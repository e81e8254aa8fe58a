// What is refused, with its reason, and changes nothing.
#include <sys/stat.h>

#include "tests/netns/safety/host_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;

class RefusalTest : public HostTest {
 protected:
  void SetUp() override {
    HostTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) before_ = state();
  }
  void TearDown() override {
    if (before_.empty()) return;
    EXPECT_TRUE(isAgain(before_));
    EXPECT_TRUE(entries().empty());
  }
  void refused(const Ran& ran, int exit, const std::string& why) {
    EXPECT_EQ(ran.exit, exit) << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(why));
    EXPECT_EQ(ran.out, "");
  }
  void policyIs(const std::string& text) const { (void)folder_.write("policy.yaml", text); }
  std::string before_;
};

TEST_F(RefusalTest, WithoutAPolicyNothingIsTouched) {
  std::filesystem::remove(policy_);
  refused(strike(), 3, "there is no policy " + policy_ + ": without one nothing on a host is");
  // What it offers is one.
  const std::string told = strike().err;
  policyIs(told.substr(told.find("version: 1")));
  EXPECT_EQ(strike().exit, 0);
}

TEST_F(RefusalTest, WhatThePolicyDoesNotSay) {
  policyIs("version: 1\nmay_strike: [eth2]\nkinds: [port_down]\nlongest: 1s\n");
  refused(strike(), 3, "lets eth2 be struck, and not eth1; its owner adds that to may_strike");
  policyIs("version: 1\nmay_strike: [eth1]\nkinds: [port_down]\nlongest: 100ms\n");
  refused(strike(), 3, "allows 100ms at most, and not 200ms");
  policyIs("version: 1\nmay_strike: [eth1]\nkinds: [prt_down]\nlongest: 1s\n");
  refused(strike(), 3, "policy.yaml:3:9: a host has no fault 'prt_down'");
  policyIs("version: 1\nmay_strike: [eth1]\nkind: [port_down]\nlongest: 1s\n");
  refused(strike(), 3, "policy.yaml:3:1: a policy has no key 'kind'");
}

TEST_F(RefusalTest, APolicyThatOthersMayChange) {
  ASSERT_EQ(::chmod(policy_.c_str(), 0666), 0);
  refused(strike(), 3, "others than root may write it; make it root's");
  ASSERT_EQ(::chmod(policy_.c_str(), 0644), 0);
  ASSERT_EQ(::chown(policy_.c_str(), 1000, 0), 0);
  refused(strike(), 3, "belongs to user 1000, and not to root");
  ASSERT_EQ(::chown(policy_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  refused(strike(), 3, "others than root may write it");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0700), 0);
  // By a link of root's into what is a user's.
  const testing::TemporaryFolder users;
  std::filesystem::rename(policy_, users.path() / "p.yaml");
  ASSERT_EQ(::chown(users.path().c_str(), 1000, 1000), 0);
  std::filesystem::create_symlink(users.path() / "p.yaml", policy_);
  refused(strike(), 3, "belongs to user 1000, and not to root");
}

TEST_F(RefusalTest, TheManagementPathWhateverThePolicySays) {
  refused(run({"inject", "port_down", "--target", "eth0", "--for", "1s"}), 3,
          "eth0 carries a default route");
  refused(strike({"--keep", "10.77.3.4"}), 3,
          "eth1 carries the way to 10.77.3.4, who is to be kept");
  refused(strike({"--keep", "fd00:77::5"}), 3, "eth1 carries the way to fd00:77::5");
  refused(strike({"--keep", "controller"}), 2, "'controller' is no address");
  policyIs("version: 1\nmay_strike: [eth1]\nkinds: [port_down]\nlongest: 1s\nkeep: [10.9.1.2]\n");
  refused(strike(), 3, "eth1 carries the way to 10.9.1.2");
}

TEST_F(RefusalTest, WhatIsNotThere) {
  refused(run({"inject", "port_down", "--target", "eth7", "--for", "1s"}), 2,
          "there is no interface eth7 here");
  refused(run({"inject", "port_down", "--target", "pci=0000:17:00.0", "--for", "1s"}), 2,
          "there is no interface 0000:17:00.0 here; there are");
  refused(run({"inject", "port_down", "--target", "pci=17:00.0", "--for", "1s"}), 2,
          "'17:00.0' is no PCI address, like 0000:17:00.0");
  refused(run({"inject", "port_down", "--target", "name=eth1", "--for", "1s"}), 2,
          "port_down has no 'name'; it has if, pci, mac, like eth1");
  refused(run({"inject", "port_down", "--target", "if=eth1,mac=1", "--for", "1s"}), 2,
          "one of if, pci and mac");
}

TEST_F(RefusalTest, WhatAHostCannotDoByItself) {
  refused(strike({"--param", "how=carrier"}), 2, "how=admin switches its own end off");
  refused(run({"inject", "path_cut", "--target", "eth1", "--for", "1s"}), 2,
          "path_cut acts on what a scenario's cluster is made of, and not by hand");
}

TEST_F(RefusalTest, AQueueThatIsSomebodyElses) {
  const std::vector<std::string> limit{"inject", "throttle", "--target", "eth1",
                                       "--for",  "100ms",    "--param",  "rate=10Mbit"};
  for (const char* queue : {"root handle 7: pfifo limit 100",
                            "root handle 7: tbf rate 1mbit burst "
                            "5000 limit 30000"}) {
    ASSERT_EQ(shell(fmt::format("tc qdisc add dev eth1 {}", queue)).exit, 0);
    before_ = state();
    refused(run(limit), 3, "it already has the root queue");
    EXPECT_TRUE(isAgain(before_));
    ASSERT_EQ(shell("tc qdisc del dev eth1 root").exit, 0);
  }
  before_ = state();
}

TEST_F(RefusalTest, WhatOnlyTheOtherEndCouldLimit) {
  const auto limit = [&](const std::string& parameter) {
    return run({"inject", "throttle", "--target", "eth1", "--for", "1s", "--param", "rate=10Mbit",
                "--param", parameter});
  };
  refused(limit("direction=both"), 2, "direction=tx limits what it sends");
  refused(run({"inject", "throttle", "--target", "eth1", "--for", "1s", "--param", "rate=10%"}), 2,
          "give a rate, like rate=100Mbit");
}

TEST_F(RefusalTest, APortThatIsDownAlready) {
  ASSERT_EQ(shell("ip link set eth2 down").exit, 0);
  before_ = state();
  refused(run({"inject", "port_down", "--target", "eth2", "--for", "1s"}), 3,
          "eth2 does not work even now: it is switched off");
}

TEST_F(RefusalTest, WithoutTheRight) {
  const std::string program = std::string(FAULTLINE_BINARY_DIR) + "/faultline";
  const Ran ran = shell(fmt::format(
      "exec setpriv --bounding-set -net_admin --inh-caps -net_admin {} inject port_down --target "
      "eth1 --for 1s --policy {} --journal {}",
      program, policy_, journal_));
  refused(ran, 3, "needs CAP_NET_ADMIN");
}

TEST_F(RefusalTest, AJournalThatCannotBeWritten) {
  const std::string program = std::string(FAULTLINE_BINARY_DIR) + "/faultline";
  std::filesystem::create_directory(journal_);
  const auto inside = [&](const std::string& prepare) {
    return shell(fmt::format(
        "exec unshare -m sh -ec 'mount -t tmpfs -o size=16k,mode=755 none {0}; {1}; exec "
        "{2} inject port_down --target eth1 --for 1s --policy {3} --journal {0}'",
        journal_, prepare, program, policy_));
  };
  const Ran works = inside("true");
  EXPECT_EQ(works.exit, 0) << works.out << works.err;
  refused(inside("dd if=/dev/zero of=" + journal_ + "/zeros bs=1k count=64 2>/dev/null || true"), 3,
          "No space left on device");
  refused(inside("mount -o remount,ro " + journal_), 3, "Read-only file system");
}

TEST_F(RefusalTest, AJournalThatOthersMayChange) {
  std::filesystem::create_directory(journal_);
  ASSERT_EQ(::chmod(journal_.c_str(), 0777), 0);
  refused(strike(), 3, "others than root may write it");
}

class AnnouncedTest : public HostTest {
 protected:
  void SetUp() override {
    // Both say when they ran; the first has whom it is about.
    script_ = folder_.write("say", "#!/bin/sh\necho $1 $FAULTLINE_INTERFACE >> " +
                                       (folder_.path() / "said").string() + "\nexit ${2:-0}\n");
    ::chmod(script_.c_str(), 0755);
    more_ = fmt::format("before: {0} before\nafter: {0} after\ncommand_limit: 5s\n", script_);
    HostTest::SetUp();
  }
  std::string said() const {
    std::ifstream file(folder_.path() / "said");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string script_;
};

TEST_F(AnnouncedTest, MaintenanceIsAnnouncedAndTakenBack) {
  EXPECT_EQ(strike().exit, 0);
  EXPECT_EQ(said(), "before eth1\nafter eth1\n");
}

TEST_F(AnnouncedTest, WhenItCannotBeAnnouncedNothingIsStruck) {
  (void)folder_.write("policy.yaml",
                      fmt::format("version: 1\nmay_strike: [eth1]\nkinds: [port_down]\n"
                                  "longest: 1s\nbefore: {0} before 3\nafter: {0} after\n",
                                  script_));
  const std::string before = state();
  const Ran ran = strike();
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("so nothing was struck: " + script_ + " before 3: exit code 3"));
  EXPECT_EQ(said(), "before eth1\nafter eth1\n");
  EXPECT_TRUE(isAgain(before));
  EXPECT_TRUE(entries().empty());
}

TEST_F(AnnouncedTest, InterruptedMeanwhileNothingIsStruck) {
  (void)folder_.write(
      "say", "#!/bin/sh\necho $1 >> " + (folder_.path() / "said").string() + "\nsleep 1\n");
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(pollUntil(20s, [&] { return said() == "before\n"; }));
  running.signal(SIGINT);
  const Ran ran = running.wait();
  EXPECT_EQ(ran.exit, 130) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("interrupted before it began"));
  EXPECT_EQ(said(), "before\nafter\n");
  EXPECT_TRUE(entries().empty());
}

TEST_F(AnnouncedTest, WhatOthersMayWriteIsNotRun) {
  ASSERT_EQ(::chmod(script_.c_str(), 0777), 0);
  Ran ran = strike();
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("others than root may write it"));
  EXPECT_EQ(said(), "");
  ASSERT_EQ(::chmod(script_.c_str(), 0755), 0);
  // Neither after the strike, when it was changed meanwhile.
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  ASSERT_TRUE(held());
  ASSERT_EQ(::chmod(script_.c_str(), 0777), 0);
  running.signal(SIGINT);
  ran = running.wait();
  EXPECT_EQ(ran.exit, 4) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("others than root may write it"));
  EXPECT_TRUE(isUp("eth1"));
  EXPECT_EQ(said(), "before eth1\n");
  ASSERT_EQ(::chmod(script_.c_str(), 0755), 0);
  EXPECT_EQ(restore().exit, 0);
  EXPECT_EQ(said(), "before eth1\nafter eth1\n");
}

TEST_F(AnnouncedTest, WhatItMakesIndispensableIsNotStruck) {
  (void)folder_.write("say",
                      "#!/bin/sh\n[ $1 = after ] || ip route add default via 10.9.1.2 dev eth1 "
                      "metric 500\n");
  const Ran ran = strike();
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("eth1 carries a default route"));
  EXPECT_TRUE(isUp("eth1"));
  EXPECT_THAT(shell("ip route show default dev eth1").out, HasSubstr("10.9.1.2"));
  EXPECT_TRUE(entries().empty());
}

TEST_F(AnnouncedTest, WhoRestoresTakesItBack) {
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  running.signal(SIGSTOP);  // so that it cannot undo
  ::kill(entry->holder.pid, SIGKILL);
  ASSERT_TRUE(pollUntil(5s, [&] { return !isHeld(*entry); }));
  EXPECT_EQ(said(), "before eth1\n");
  EXPECT_EQ(restore().exit, 0);
  EXPECT_EQ(said(), "before eth1\nafter eth1\n");
  running.signal(SIGCONT);
  const Ran ran = running.wait();
  EXPECT_THAT(ran.err, HasSubstr("it had changed nothing, or had taken that back"));
}

}  // namespace
}  // namespace faultline::safety
