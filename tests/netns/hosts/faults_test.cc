#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_text.h"
#include "reports/result_json.h"
#include "tests/netns/hosts/hosts_fixture.h"

// Faults of hosts in a laboratory of three with two rails, each with a fault service: what comes of
// a run, and that the struck host is as before whatever dies. The cases are in faults.sh.

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPolicy = R"(version: 1
may_strike: [rail0]
kinds: [port_down, throttle, blackhole]
longest: 30s
)";

class HostFaultsTest : public HostsTest {
 protected:
  /// A case of faults.sh. `policy`: each host has a fault service with it; empty: none has.
  void inLaboratoryWith(const std::string& what, const std::string& policy = "") {
    std::vector<std::string> settings;
    if (!policy.empty()) {
      settings = {"FAULTLINE_LAB_POLICY=" + folder_.write("policy.yaml", policy),
                  "FAULTLINE_LAB_PROGRAM=" FAULTLINE_BINARY_DIR "/faultline"};
    }
    inLaboratory(what, kHosts, settings);
  }
  /// One fault of rail 0 of node 1.
  void writeFault(int iterations, const std::string& fault,
                  const std::string& target = "{node: 1, rail: 0}",
                  const std::string& strategy = "hot_repair",
                  const std::string& gradient = "2MiB") {
    folder_.write("scenario.yaml", fmt::format(R"(version: 1
name: hosts
workload:
  kind: training
  iterations: {}
  warmup_iterations: 2
  compute: 10ms
  gradient: {{size: {}, buckets: 2}}
strategies: [{}]
faults:
  - {{{}, target: {}}}
limits: {{deadline: 5min, give_up: 5s}}
seed: 7
expect: [wrong_elements == 0]
)",
                                               iterations, gradient, strategy, fault, target));
  }
  /// One that is taken back only with the run.
  void writeLongFault() {
    writeFault(kEndless, "kind: port_down, how: admin, at: 200ms, duration: 20s");
  }
  void expectProven(const reports::Run& run) const {
    ASSERT_EQ(run.evidence.size(), 1U);
    EXPECT_TRUE(run.evidence.front().ok) << run.evidence.front().observed;
    ASSERT_EQ(run.faults.size(), 1U);
    EXPECT_EQ(run.wrong_elements, 0);
    EXPECT_GT(run.checked_elements, 0);
  }
};

TEST_F(HostFaultsTest, APortThatGoesDownIsRepairedAndPutBack) {
  // An iteration lasts longer than it takes to be told of it.
  writeFault(40,
             "kind: port_down, how: admin, during: {iteration: 10, progress: 50%}, duration: 300ms",
             "{node: 1, rail: 0}", "hot_repair", "48MiB");
  OR_RETURN(inLaboratoryWith("faults", kPolicy));
  EXPECT_EQ(told("exit"), 0);
  const reports::ScenarioResult all = result();
  EXPECT_EQ(all.verdict, reports::Verdict::kPass);
  const reports::Run& run = all.runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  expectProven(run);
  EXPECT_THAT(run.evidence.front().observed, HasSubstr("has lost its carrier"));
  ASSERT_FALSE(run.failovers.empty());
  for (const auto& failover : run.failovers) EXPECT_EQ(failover.rail, 0);
  EXPECT_THAT(all.environment.qdisc.at("faults"), HasSubstr("n1, n2: rail0 may be struck"));
}

TEST_F(HostFaultsTest, ASlowRailLivesAndIsTakenBack) {
  writeFault(120, "kind: throttle, rate: 50Mbit, direction: tx, at: 300ms, duration: 1s");
  OR_RETURN(inLaboratoryWith("faults", kPolicy));
  EXPECT_EQ(told("exit"), 0);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  expectProven(run);
}

TEST_F(HostFaultsTest, ARailThatSwallowsEverythingIsGivenUp) {
  writeFault(150, "kind: blackhole, at: 300ms, duration: 700ms");
  OR_RETURN(inLaboratoryWith("faults", kPolicy));
  EXPECT_EQ(told("exit"), 0);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  expectProven(run);
  EXPECT_FALSE(run.failovers.empty());
}

TEST_F(HostFaultsTest, ItsOwnRankIsKilledWithoutAServiceAndTheOthersGoOn) {
  writeFault(200, "kind: process_kill, at: 500ms, duration: 1s", "{node: 1}", "shrink");
  OR_RETURN(inLaboratoryWith("faults"));
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  expectProven(run);
  EXPECT_EQ(run.evidence.front().observed, "1 of 1 processes have ended; 0 are left");
  EXPECT_EQ(run.shrinks.size(), 1U);
}

TEST_F(HostFaultsTest, ItsOwnRankIsStoppedAndGoesOn) {
  writeFault(120, "kind: process_stop, at: 500ms, duration: 300ms", "{node: 1}");
  OR_RETURN(inLaboratoryWith("faults"));
  EXPECT_EQ(told("exit"), 0);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kOk) << run.message;
  expectProven(run);
  EXPECT_THAT(run.evidence.front().observed, HasSubstr("1 of 1 processes are stopped"));
}

TEST_F(HostFaultsTest, ScenariosOfTheRepositoryHaveTheVerdictThatTheyHaveOnNamespaces) {
  for (const char* const name : {"hosts-port-down.yaml", "acceptance/process-kill.yaml"}) {
    folder_.write("scenario.yaml",
                  fileText(fmt::format("{}/scenarios/{}", FAULTLINE_SOURCE_DIR, name)));
    std::filesystem::remove_all(out());
    OR_RETURN(inLaboratoryWith("faults", kPolicy));
    EXPECT_EQ(told("exit"), 0) << printed_;
    EXPECT_EQ(result().verdict, reports::Verdict::kPass) << name;
  }
}

TEST_F(HostFaultsTest, WithoutAServiceNothingBeginsAndTheHostIsNamed) {
  writeFault(100, "kind: port_down, how: admin, at: 200ms, duration: 300ms");
  OR_RETURN(inLaboratoryWith("faults-refused"));
  EXPECT_THAT(printed_, AllOf(HasSubstr("first 3: "), HasSubstr("host n1: no fault service"),
                              HasSubstr("docs/administrators.md")));
}

TEST_F(HostFaultsTest, APolicyThatForbidsItEndsItBeforeItBegins) {
  writeFault(100, "kind: port_down, how: admin, at: 200ms, duration: 300ms");
  OR_RETURN(inLaboratoryWith(
      "faults-refused", "version: 1\nmay_strike: [rail1]\nkinds: [port_down]\nlongest: 30s\n"));
  EXPECT_THAT(printed_, AllOf(HasSubstr("first 3: "), HasSubstr("host n1: "), HasSubstr("rail0")));
}

TEST_F(HostFaultsTest, AnAgentThatIsKilledIsNamedAndItsFaultUndone) {
  writeLongFault();
  OR_RETURN(inLaboratoryWith("faults-agent", kPolicy));
  EXPECT_EQ(told("undone"), 1);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kFailed);
  EXPECT_THAT(
      run.message,
      AllOf(HasSubstr("host n1 (node 1) is lost"),
            HasSubstr("is lost with port_down of rail0 in effect, which its fault service undoes"),
            HasSubstr(" s after the start")));
}

TEST_F(HostFaultsTest, AnAgentThatIsStoppedIsNamedAndItsFaultUndone) {
  writeLongFault();
  OR_RETURN(inLaboratoryWith("faults-agent-stopped", kPolicy));
  EXPECT_EQ(told("undone"), 1);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kFailed);
  EXPECT_THAT(run.message, HasSubstr("host n1 (node 1) is lost"));
}

TEST_F(HostFaultsTest, AControllerThatIsKilledLeavesNothingBroken) {
  writeLongFault();
  OR_RETURN(inLaboratoryWith("faults-controller", kPolicy));
  EXPECT_EQ(told("undone"), 1);
}

TEST_F(HostFaultsTest, CtrlCTakesItBackBeforeTheProgramEnds) {
  writeLongFault();
  OR_RETURN(inLaboratoryWith("faults-interrupt", kPolicy));
  constexpr int kInterrupted = 130;
  EXPECT_EQ(told("exit"), kInterrupted);
  EXPECT_EQ(told("undone"), 1);
}

TEST_F(HostFaultsTest, AServiceThatIsKilledIsNamedAndTheNextOneUndoesItsFault) {
  writeFault(300, "kind: port_down, how: admin, at: 200ms, duration: 3s");
  OR_RETURN(inLaboratoryWith("faults-service", kPolicy));
  EXPECT_EQ(told("undone"), 1);
  const reports::Run run = result().runs.front();
  EXPECT_EQ(run.status, reports::RunStatus::kInvalid);
  EXPECT_THAT(run.message, HasSubstr("what holds port_down on host n1 has ended"));
}

TEST_F(HostFaultsTest, AnEntryThatNobodyCanReadIsNotTakenForAnUndo) {
  writeFault(300, "kind: port_down, how: admin, at: 200ms, duration: 3s");
  OR_RETURN(inLaboratoryWith("faults-damaged", kPolicy));
  EXPECT_EQ(told("down"), 1) << "nothing undoes it";
  constexpr int kNotRestored = 4;
  EXPECT_EQ(told("exit"), kNotRestored) << printed_;
  EXPECT_THAT(printed_, AllOf(HasSubstr("rail0 of host n1"), HasSubstr("cannot be read in full"),
                              HasSubstr("faultline status")));
}

}  // namespace
}  // namespace faultline
