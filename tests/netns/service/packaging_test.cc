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

}  // namespace
}  // namespace faultline::safety
