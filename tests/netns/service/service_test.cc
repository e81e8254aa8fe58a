// Strikes over the fault service, by the real program: who may, and what ends them.
#include "tests/netns/service/service_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;
using ::testing::AllOf;
using wire::FaultCall;

constexpr uid_t kNobody = 65534;

TEST_F(ServiceTest, AStrikeIsPreparedAppliedProvenAndTakenBack) {
  const std::string before = state();
  TestClient one = client();
  ASSERT_TRUE(one.say(portDown()));
  const auto prepared = one.call(FaultCall::kPrepare);
  ASSERT_EQ(prepared.outcome.message, "");
  EXPECT_EQ(prepared.mechanism, "ip link set dev eth1 down");
  EXPECT_TRUE(isUp("eth1"));
  EXPECT_TRUE(entries().empty());
  const TimePoint begin = now();
  const auto applied = one.call(FaultCall::kApply);
  ASSERT_EQ(applied.outcome.message, "");
  EXPECT_FALSE(isUp("eth1"));
  ASSERT_EQ(applied.changes.size(), 1u);
  EXPECT_TRUE(applied.changes[0].broken);
  EXPECT_GE(applied.changes[0].before, begin);
  EXPECT_LE(applied.changes[0].after, now());
  const auto known = entries();
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].user, "root");
  EXPECT_EQ(known[0].job, "user root");
  EXPECT_NE(known[0].holder.pid, service_->pid());
  const auto evidence = one.call(FaultCall::kEvidence).evidence;
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  EXPECT_THAT(evidence.observed, HasSubstr("has lost its carrier"));
  EXPECT_EQ(evidence.fault, "port_down");
  const auto reverted = one.call(FaultCall::kRevert);
  EXPECT_EQ(reverted.outcome.message, "");
  ASSERT_EQ(reverted.changes.size(), 1u);
  EXPECT_FALSE(reverted.changes[0].broken);
  EXPECT_TRUE(entries().empty());
  EXPECT_TRUE(isAgain(before));
  // Once more, with evidence of its own.
  ASSERT_EQ(one.call(FaultCall::kApply).outcome.message, "");
  EXPECT_FALSE(isUp("eth1"));
  EXPECT_TRUE(one.call(FaultCall::kEvidence).evidence.ok);
  EXPECT_EQ(one.call(FaultCall::kRevert).outcome.message, "");
  EXPECT_TRUE(undone(before));
  one.leave();
  const Ran ran = endService();
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("port_down of eth1 (MAC "), HasSubstr("by root (user root): struck"),
                    HasSubstr("taken back, after"), HasSubstr("ends; nothing is left")));
}

TEST_F(ServiceTest, AnotherUserMayOnlyOnceThePolicyNamesHimOrHisGroup) {
  std::ifstream map("/proc/self/uid_map");
  uid_t inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  if (count <= kNobody) GTEST_SKIP() << "there is no user but root in this user namespace";
  const std::string before = state();
  EXPECT_THAT(refusal(portDown(), kNobody),
              HasSubstr("the policy lets root ask the fault service, and not nobody"));
  EXPECT_TRUE(isUp("eth1"));
  writePolicy("users: [alice]\n");
  EXPECT_THAT(refusal(portDown(), kNobody), HasSubstr("lets root, alice ask"));
  for (const char* more : {"users: [nobody]\n", "groups: [nogroup]\n"}) {
    writePolicy(more);
    TestClient one = client(kNobody);
    ASSERT_TRUE(one.say(portDown()));
    ASSERT_EQ(one.call(FaultCall::kPrepare).outcome.message, "") << more;
    ASSERT_EQ(one.call(FaultCall::kApply).outcome.message, "") << more;
    EXPECT_FALSE(isUp("eth1"));
    ASSERT_EQ(entries().size(), 1u);
    EXPECT_EQ(entries()[0].user, "nobody");
    EXPECT_EQ(entries()[0].job, "user nobody");
    one.leave();
    EXPECT_TRUE(undone(before)) << more;
  }
}

TEST_F(ServiceTest, RefusalsComeBackWithTheirReason) {
  const std::string before = state();
  const auto with = [](auto change) {
    wire::ServiceStrike wanted = portDown();
    change(wanted);
    return wanted;
  };
  EXPECT_THAT(refusal(with([](auto& w) { w.interface = "eth0"; })),
              HasSubstr("eth0 carries a default route"));
  EXPECT_THAT(refusal(with([](auto& w) { w.interface = "lo"; })),
              HasSubstr("lo is this machine's"));
  EXPECT_THAT(refusal(with([](auto& w) { w.interface = "eth9"; })), HasSubstr("eth9"));
  EXPECT_THAT(refusal(with([](auto& w) { w.longest = 61s; })), HasSubstr("allows 1min at most"));
  EXPECT_THAT(refusal(with([](auto& w) { w.kind = "explode"; })),
              HasSubstr("an interface of a host has no fault 'explode'"));
  EXPECT_THAT(refusal(with([](auto& w) { w.kind = "mtu_shrink"; })), HasSubstr("has no fault"));
  EXPECT_THAT(refusal(with([](auto& w) { w.parameters["how"] = "carrier"; })),
              HasSubstr("how=admin"));
  EXPECT_THAT(refusal(with([](auto& w) { w.keep = {"10.9.1.2"}; })),
              HasSubstr("who is to be kept"));
  EXPECT_THAT(refusal(with([](auto& w) { w.keep = {"$(reboot)"}; })), HasSubstr("is no address"));
  writePolicy("at_once: {node: 2, job: 1}\n");
  const auto one = striking();
  EXPECT_THAT(refusal(portDown()), HasSubstr("eth1 is struck already"));
  EXPECT_THAT(refusal(with([](auto& w) { w.interface = "eth2"; })),
              HasSubstr("1 at once of one job, and this one has 1 already"));
  EXPECT_TRUE(isUp("eth2"));
  one->leave();
  EXPECT_TRUE(undone(before));
  std::filesystem::remove(policy_);
  EXPECT_THAT(refusal(portDown()), HasSubstr("there is no policy"));
}

TEST_F(ServiceTest, WhoIsInAnotherNetworkNamespaceIsRefused) {
  TestClient one(socket_path_, peer_.get(), 0);
  ASSERT_TRUE(one.say(portDown()));
  EXPECT_THAT(one.call(FaultCall::kPrepare).outcome.message,
              HasSubstr("is in another network namespace"));
}

TEST_F(ServiceTest, AClosedConnectionEndsItsStrike) {
  const std::string before = state();
  const auto one = striking();
  one->leave();
  EXPECT_TRUE(undone(before));
}

TEST_F(ServiceTest, AStoppedClientIsNotWaitedForLongerThanItsLease) {
  const std::string before = state();
  const auto one = striking(portDown(60s, 2s));
  for (int i = 0; i < 6; ++i) {
    ::usleep(500'000);
    ASSERT_TRUE(one->say(wire::StillThere{}));
  }
  EXPECT_FALSE(isUp("eth1")) << "it was heard";
  one->signal(SIGSTOP);
  EXPECT_TRUE(undone(before));
  one->signal(SIGCONT);
  EXPECT_THAT(one->whyDropped(), HasSubstr("nothing was heard for the lease, 2s"));
}

TEST_F(ServiceTest, AStrikeEndsAfterItsLongestAndItsEvidenceIsKept) {
  const std::string before = state();
  const auto one = striking(portDown(1s, 60s));
  const auto said = one->hear();
  const auto* const broken = std::get_if<wire::HolderBroken>(&said);
  ASSERT_NE(broken, nullptr);
  EXPECT_EQ(broken->outcome.code, Code::kDeadlineExceeded);
  EXPECT_THAT(broken->outcome.message, HasSubstr("it has lasted for its longest, 1s"));
  EXPECT_TRUE(undone(before));
  EXPECT_TRUE(one->call(FaultCall::kEvidence).evidence.ok);
  const auto reverted = one->call(FaultCall::kRevert);
  EXPECT_EQ(reverted.outcome.message, "");
  EXPECT_TRUE(reverted.lapsed);
}

TEST_F(ServiceTest, OneThatHasEndedByItselfKeepsItsConnection) {
  const std::string before = state();
  const auto one = striking(portDown(1s, 60s));
  const auto said = one->hear();
  ASSERT_TRUE(std::holds_alternative<wire::HolderBroken>(said)) << wire::toJson(said);
  EXPECT_TRUE(undone(before));
  EXPECT_EQ(one->channel().receiveWithin(1s + kUndoGrace + 1s).status().code(),
            Code::kDeadlineExceeded)
      << "nothing more is said";
  EXPECT_TRUE(one->call(FaultCall::kEvidence).evidence.ok);
  EXPECT_TRUE(one->call(FaultCall::kRevert).lapsed);
}

TEST_F(ServiceTest, WhileTheCommandAfterAStrikeRunsItsHolderIsNotTakenForOneThatHangs) {
  writePolicy("before: /bin/true\nafter: /bin/sleep 12\nat_once: {node: 2, job: 2}\n");
  const std::string before = state();
  const auto one = striking(portDown(2s, 60s));
  ASSERT_TRUE(pollUntil(20s, [&] { return isUp("eth1"); }));
  ::sleep(2 + 5 + 1);  // its longest, the time to undo it, and a look
  ASSERT_EQ(entries().size(), 1u) << "the command runs";
  TestClient two = client();
  wire::ServiceStrike other = portDown();
  other.interface = "eth2";
  ASSERT_TRUE(two.say(other));
  EXPECT_EQ(two.call(FaultCall::kPrepare).outcome.message, "");
  EXPECT_EQ(two.call(FaultCall::kApply).outcome.message, "");
  const auto said = one->hear();
  const auto* const broken = std::get_if<wire::HolderBroken>(&said);
  ASSERT_NE(broken, nullptr) << wire::toJson(said);
  EXPECT_THAT(broken->outcome.message, HasSubstr("and was taken back"));
  EXPECT_TRUE(one->call(FaultCall::kRevert).lapsed);
  two.leave();
  EXPECT_TRUE(undone(before));
}

TEST_F(ServiceTest, ToldToEndItTakesBackWhatItHolds) {
  const std::string before = state();
  for (const int number : {SIGTERM, SIGINT}) {
    const auto one = striking();
    const Ran ran = endService(number);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_TRUE(isUp("eth1"));
    EXPECT_TRUE(entries().empty());
    EXPECT_TRUE(isAgain(before));
    EXPECT_THAT(one->whyDropped(), HasSubstr("the fault service of this host ends"));
    EXPECT_NE(::access(socket_path_.c_str(), F_OK), 0);
    startService();
  }
}

TEST_F(ServiceTest, ASecondServiceIsRefusedWithTheNumberOfTheFirst) {
  const std::string number = fmt::format("process {} has it", service_->pid());
  const auto second = [&](const std::string& socket, const std::string& journal) {
    return Running(std::string(FAULTLINE_BINARY_DIR) + "/faultline",
                   {"faultline", "faultd", "--socket", socket, "--policy", policy_, "--journal",
                    journal},
                   host_.get())
        .wait();
  };
  const std::string other = (folder_.path() / "other").string();
  for (const Ran& ran : {second(socket_path_, other), second(other, journal_)}) {
    EXPECT_EQ(ran.exit, 3) << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("another fault service runs here"), HasSubstr(number)));
  }
  EXPECT_TRUE(serves());
  // One that was killed keeps nobody out.
  (void)endService(SIGKILL);
  startService();
  const auto one = striking();
}

TEST_F(ServiceTest, ASocketInAFolderOfOthersIsRefused) {
  const std::string open = (folder_.path() / "open").string();
  ASSERT_EQ(::mkdir(open.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
  const Ran ran = Running(std::string(FAULTLINE_BINARY_DIR) + "/faultline",
                          {"faultline", "faultd", "--socket", open + "/socket", "--policy", policy_,
                           "--journal", (folder_.path() / "other").string()},
                          host_.get())
                      .wait();
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("make it root's"));
  EXPECT_TRUE(std::filesystem::is_empty(open));
}

TEST_F(ServiceTest, SaysWhatMayBeStruckAndWhatIs) {
  const auto ask = [&](std::vector<std::string> interfaces) {
    TestClient one = client();
    EXPECT_TRUE(one.say(wire::AskService{.interfaces = std::move(interfaces)}));
    const auto said = one.hear();
    EXPECT_TRUE(std::holds_alternative<wire::Gone>(one.hear())) << "one answer";
    const auto* const facts = std::get_if<wire::ServiceFacts>(&said);
    EXPECT_NE(facts, nullptr) << wire::toJson(said);
    return facts == nullptr ? wire::ServiceFacts{} : *facts;
  };
  const auto facts = ask({"eth0", "eth1", "eth9"});
  EXPECT_THAT(facts.kinds, ::testing::Contains("port_down"));
  ASSERT_TRUE(facts.policy);
  EXPECT_EQ(facts.policy->longest, 60s);
  EXPECT_THAT(facts.policy->words, HasSubstr("eth0, eth1, eth2 may be struck"));
  EXPECT_EQ(facts.user, "root");
  EXPECT_EQ(facts.whyNot, "");
  ASSERT_EQ(facts.interfaces.size(), 3u);
  EXPECT_THAT(facts.interfaces[0].whyNot, HasSubstr("carries a default route"));
  EXPECT_EQ(facts.interfaces[1].whyNot, "");
  EXPECT_NE(facts.interfaces[2].whyNot, "");
  const auto one = striking();
  const auto later = ask({});
  EXPECT_EQ(later.interfaces.size(), 4u) << "all of them";
  ASSERT_EQ(later.strikes.size(), 1u);
  EXPECT_TRUE(later.strikes[0].held);
  EXPECT_EQ(later.strikes[0].interface, "eth1");
  const Ran status = run({"status", "--socket", socket_path_, "--json"});
  const auto told = nlohmann::json::parse(status.out);
  EXPECT_EQ(told["service"]["serves"], true) << status.out;
  EXPECT_EQ(told["held"].size(), 1u);
  EXPECT_THAT(run({"status", "--socket", socket_path_}).out, HasSubstr("service: faultline "));
  EXPECT_THAT(run({"status", "--socket", socket_path_ + "x"}).out, HasSubstr("service: none"));
  // Restore leaves to it what it holds.
  EXPECT_THAT(restore().out, HasSubstr("holds it, and takes it back itself"));
  EXPECT_FALSE(isUp("eth1"));
  EXPECT_EQ(restore({"--force"}).exit, 0);
  EXPECT_TRUE(isUp("eth1"));
}

}  // namespace
}  // namespace faultline::safety
