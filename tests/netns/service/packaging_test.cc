// What an administrator copies does what it says.
#include "base/input_file.h"
#include "injector/safety/policy.h"
#include "tests/netns/service/service_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;

std::string packaged(const std::string& name) {
  return readFile(std::string(FAULTLINE_SOURCE_DIR) + "/packaging/" + name).value();
}

/// The value of a key of the unit.
std::string valueOf(const std::string& key) {
  std::istringstream lines(packaged("faultline-faultd.service"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  }
  return "";
}

TEST(PackagingTest, ThePolicyIsValid) {
  const std::vector<std::string_view> kinds{"port_down", "throttle", "blackhole"};
  const auto policy = parsePolicy(packaged("policy.yaml"), "policy.yaml", kinds);
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  EXPECT_EQ(policy->kinds.size(), kinds.size());
}

TEST(PackagingTest, SystemdTakesTheUnit) {
  if (::access("/usr/bin/systemd-analyze", X_OK) != 0) GTEST_SKIP() << "needs systemd-analyze";
  const testing::TemporaryFolder folder;
  std::string text = packaged("faultline-faultd.service");
  const std::string program = "/usr/bin/faultline";
  ASSERT_NE(text.find(program), std::string::npos);
  text.replace(text.find(program), program.size(),
               std::string(FAULTLINE_BINARY_DIR) + "/faultline");
  const std::string unit = folder.write("faultline-faultd.service", text);
  // It tells of unknown keys, and ends with 0.
  const Ran ran = testing::runProgram("/usr/bin/systemd-analyze", {"verify", unit});
  EXPECT_EQ(ran.exit, 0);
  EXPECT_EQ(ran.out + ran.err, "");
}

/// A service with the capabilities of the unit.
class LimitedServiceTest : public ServiceTest {
 protected:
  std::vector<std::string> serviceCommand() const override {
    std::string capabilities = "-all";
    std::istringstream words(valueOf("CapabilityBoundingSet"));
    for (std::string word; words >> word;) {
      std::string name = word.substr(std::string("CAP_").size());
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      capabilities += ",+" + name;
    }
    std::vector<std::string> command = ServiceTest::serviceCommand();
    command.insert(command.begin(),
                   {"/usr/bin/setpriv", "--bounding-set=" + capabilities, "--no-new-privs"});
    return command;
  }
};

TEST_F(LimitedServiceTest, TheCapabilitiesOfTheUnitAreEnough) {
  const std::string before = state();
  for (const char* kind : {"blackhole", "throttle", "port_down"}) {
    wire::ServiceStrike wanted = portDown();
    wanted.kind = kind;
    if (wanted.kind == "throttle") wanted.parameters["rate"] = "20Mbit";
    TestClient one = client();
    ASSERT_TRUE(one.say(wanted));
    ASSERT_EQ(one.call(wire::FaultCall::kPrepare).outcome.message, "") << kind;
    ASSERT_EQ(one.call(wire::FaultCall::kApply).outcome.message, "") << kind;
    EXPECT_TRUE(one.call(wire::FaultCall::kEvidence).evidence.ok) << kind;
    EXPECT_EQ(one.call(wire::FaultCall::kRevert).outcome.message, "") << kind;
    EXPECT_TRUE(undone(before)) << kind;
  }
}

/// The scripts for Slurm, on a host without a service.
class SlurmScriptTest : public HostTest {
 protected:
  Ran script(const std::string& name, const std::string& job,
             const std::string& program = FAULTLINE_BINARY_DIR "/faultline") {
    std::string text = packaged(name);
    for (const auto& [what, by] :
         {std::pair<std::string, std::string>("/usr/bin/faultline", program),
          std::pair<std::string, std::string>("/var/lib/faultline/journal", journal_)}) {
      EXPECT_NE(text.find(what), std::string::npos) << name;
      text.replace(text.find(what), what.size(), by);
    }
    // Slurm gives it no PATH.
    return Running("/usr/bin/env",
                   {"env", "-i", "SLURM_JOB_ID=" + job, "/bin/sh", folder_.write(name, text)},
                   host_.get())
        .wait();
  }
};

TEST_F(SlurmScriptTest, TheEpilogEndsWhatItsJobHoldsAndFailsWhereItCannot) {
  const std::string before = state();
  const std::string missing = "/nowhere/faultline";
  EXPECT_EQ(script("slurm_epilog.sh", "17", missing).exit, 0) << "nothing was ever struck";
  std::string command = "SLURM_JOB_ID=17 exec";
  for (const std::string& word :
       words({"inject", "port_down", "--target", "eth1", "--for", "60s"})) {
    command += " " + (word == "faultline" ? FAULTLINE_BINARY_DIR "/faultline" : word);
  }
  Running running("/bin/sh", {"sh", "-c", command}, host_.get());
  ASSERT_TRUE(held());
  for (const char* name : {"slurm_epilog.sh", "slurm_prolog.sh"}) {
    const Ran ran = script(name, "17", missing);
    EXPECT_EQ(ran.exit, 4) << name;
    EXPECT_THAT(ran.err, HasSubstr("there is no /nowhere/faultline to undo them")) << name;
  }
  EXPECT_EQ(script("slurm_epilog.sh", "18").exit, 0);
  EXPECT_THAT(script("slurm_prolog.sh", "18").out, HasSubstr("holds it"));
  EXPECT_FALSE(isUp("eth1"));
  const Ran ran = script("slurm_epilog.sh", "17");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("restored: port_down of eth1"));
  EXPECT_EQ(running.wait().exit, 130);
  EXPECT_TRUE(isAgain(before));
}

TEST_F(SlurmScriptTest, ThePrologUndoesWhatAnEarlierJobHasLeft) {
  const std::string before = state();
  Running running = start({"inject", "port_down", "--target", "eth1", "--for", "60s"});
  const auto entry = held();
  ASSERT_TRUE(entry);
  ::kill(entry->holder.pid, SIGSTOP);
  running.signal(SIGKILL);
  (void)running.wait();
  ::kill(entry->holder.pid, SIGKILL);
  const Ran ran = script("slurm_prolog.sh", "18");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("restored: port_down of eth1"));
  EXPECT_TRUE(isAgain(before));
}

}  // namespace
}  // namespace faultline::safety
