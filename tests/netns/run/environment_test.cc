// Runs in surroundings as users have them: under nohup, without descriptors 0 to 2, with small
// limits, in a container that knows fewer system calls.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/netns/run/run_fixture.h"

namespace faultline::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;

const std::string kLimitedProgram = std::string(FAULTLINE_BINARY_DIR) + "/faultline";

class EnvironmentTest : public RunTest {
 protected:
  void SetUp() override {
    file_ = folder_.write("scenario.yaml",
                          scenarioText("[fault_free, hot_repair]", portDown("carrier", "200ms")));
  }
  /// `text` with the program as $0, the scenario as $1, and the folder of the result as $2.
  Ran shell(const std::string& text, const std::vector<std::string>& before = {}) const {
    std::vector<std::string> arguments = before;
    arguments.insert(arguments.end(), {"/bin/sh", "-c", text, kLimitedProgram, file_, out()});
    return testing::runProgram("/usr/bin/env", arguments, folder_.path());
  }
  std::vector<std::string> filesOf() const {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(out(), error), end; !error && it != end; ++it) {
      names.push_back(it->path().filename().string());
    }
    return names;
  }

  std::string file_;
};

TEST_F(EnvironmentTest, AFileThatGetsTooLargeIsAnErrorThatSaysSoAndLeavesNoPart) {
  const Ran ran = shell(R"(ulimit -f 8; exec "$0" run "$1" --out "$2")");
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("File too large"), HasSubstr("ulimit -f")));
  for (const std::string& name : filesOf()) {
    EXPECT_THAT(name, Not(::testing::ContainsRegex("\\.[0-9]+-[0-9]+$")));
  }
}

TEST_F(EnvironmentTest, SignalsThatWereIgnoredAtTheStartStayIgnored) {
  // As nohup does, and a script for its background jobs.
  const Ran ran = shell(R"(trap '' HUP INT
    "$0" run "$1" --out "$2" 2> err &
    while ! grep -q '\[1/2\]' err && kill -0 $!; do sleep 0.05; done
    for rank in $! $(cat /proc/$!/task/$!/children); do kill -HUP $rank; kill -INT $rank; done
    wait $!
    code=$?
    cat err >&2
    exit $code)");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_FALSE(result().interrupted);
}

TEST_F(EnvironmentTest, ClosedDescriptorsGetNoSocketsOfOurs) {
  const Ran ran = shell(R"(exec "$0" run "$1" --out "$2" 0<&- 1>&- 2>&-)");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_EQ(runOf(result(), "hot_repair").wrong_elements, 0);
}

TEST_F(EnvironmentTest, RootOfAUserNamespaceWithoutANetworkOfItsOwnIsEnough) {
  if (testing::runProgram("/usr/bin/unshare", {"-U", "-r", "true"}).exit != 0) {
    GTEST_SKIP() << "no user namespaces here";
  }
  const Ran ran = testing::runProgram("/usr/bin/unshare",
                                      {"-U", "-r", kLimitedProgram, "run", file_, "--out", out()},
                                      folder_.path());
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
}

TEST_F(EnvironmentTest, ALimitOfNamespacesNamesItsSetting) {
  if (testing::runProgram("/usr/bin/unshare", {"-U", "-r", "-n", "true"}).exit != 0) {
    GTEST_SKIP() << "no user namespaces here";
  }
  const std::string command = folder_.write("command.yaml", R"(version: 1
name: words
cluster: {kind: netns, nodes: 2, rails: 1, rail_rate: 100Mbit}
workload: {kind: command, command: {run: [echo, words]}}
strategies: [fault_free]
)");
  for (const auto& [kind, scenario] :
       {std::pair<std::string, std::string>{"net", file_}, {"pid", command}, {"mnt", command}}) {
    const std::string setting = "max_" + kind + "_namespaces";
    const Ran ran = testing::runProgram(
        "/usr/bin/unshare",
        {"-U", "-r", "-n", "sh", "-c",
         "echo 0 > /proc/sys/user/" + setting + R"(; exec "$0" run "$1" --out "$2")",
         kLimitedProgram, scenario, out()},
        folder_.path());
    EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("user." + setting), Not(HasSubstr("device"))));
  }
}

TEST_F(EnvironmentTest, TooFewDescriptorsNameTheirLimit) {
  for (const char* most : {"24", "40"}) {
    const Ran ran =
        shell(std::string("ulimit -n ") + most + R"(; exec "$0" run "$1" --out "$2" --force)");
    EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("ulimit -n"), HasSubstr(most)));
  }
}

TEST_F(EnvironmentTest, CallsThatAFilterForbidsAreDoneWithoutOrNamed) {
  const std::string deny = FAULTLINE_DENY_CALLS;
  const Ran without = testing::runProgram(
      deny,
      {"EPERM",
       "recvmmsg,epoll_pwait2,close_range,sched_setscheduler,process_vm_readv,linkat,statx,"
       "getrandom",
       kLimitedProgram, "run", file_, "--out", out()},
      folder_.path());
  EXPECT_EQ(without.exit, 0) << without.out << without.err;
  EXPECT_EQ(runOf(result(), "hot_repair").wrong_elements, 0);
  for (const auto& [error, call] : {std::pair<std::string, std::string>{"EPERM", "pidfd_open"},
                                    {"ENOSYS", "eventfd2"},
                                    {"EPERM", "signalfd4"},
                                    {"EPERM", "clone3"},
                                    {"EPERM", "epoll_create1"},
                                    {"EPERM", "pipe2"},
                                    {"EPERM", "socketpair"},
                                    {"EPERM", "fsync"},
                                    {"EPERM", "rename"},
                                    {"EPERM", "setns"},
                                    {"EPERM", "unshare"},
                                    {"EPERM", "accept4"},
                                    {"EPERM", "poll"}}) {
    const Ran ran = testing::runProgram(
        deny, {error, call, kLimitedProgram, "run", file_, "--out", out(), "--force"},
        folder_.path());
    EXPECT_EQ(ran.exit, 3) << call << ": " << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr(call), HasSubstr("seccomp")));
    EXPECT_EQ(ran.err.find("needs root"), std::string::npos) << ran.err;
  }
}

}  // namespace
}  // namespace faultline::run
