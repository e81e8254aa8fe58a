#include "harness/cli/starter_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StarterScenarioTest, EveryWorkloadAndFaultMakesAScenarioOrSaysWhyNot) {
  int written = 0;
  for (const scenario::WorkloadKind* const kind_of : scenario::workloadKinds()) {
    const scenario::WorkloadKind& workload = *kind_of;
    for (const injector::FaultKind& kind : injector::faultKinds()) {
      Starter starter;
      starter.workload = workload.name;
      starter.faults = {std::string(kind.name)};
      starter.nodes = 4;
      const auto text = starterScenario(starter);
      const std::string both = std::string(workload.name) + " with " + std::string(kind.name);
      const bool rdma = injector::isOfRdmaDevices(kind.name) || injector::isOfQueuePairs(kind.name);
      EXPECT_EQ(reasonAgainst(starter, kind).empty(), text.ok()) << both;
      if (rdma && workload.name != "command") {
        EXPECT_THAT(text.status().message(),
                    AllOf(HasSubstr(kind.name), HasSubstr("uses RDMA"), HasSubstr("--program")))
            << both;
        continue;
      }
      if (kind.name == "connection_reset" && workload.name == "command") {
        EXPECT_THAT(text.status().message(), HasSubstr("the example program has none"));
        starter.program = "./mine.sh";
        EXPECT_TRUE(starterScenario(starter).ok());
        continue;
      }
      ASSERT_TRUE(text.ok()) << both << ": " << text.status().message();
      ++written;
      const auto read = scenario::readScenario(*text, both);
      EXPECT_TRUE(read.ok()) << both;
      EXPECT_THAT(*text, HasSubstr(std::string(kind.summary)));
    }
  }
  const auto faults = injector::faultKinds().size();
  EXPECT_GE(written, static_cast<int>(2 * faults));
}

TEST(StarterScenarioTest, AProgramWhoseQueuePairsAreStruckHasTheShimAndDevices) {
  for (const char* const program : {"", "./mine.sh"}) {
    const auto text =
        starterScenario({.workload = "command", .program = program, .faults = {"qp_error"}});
    ASSERT_TRUE(text.ok()) << text.status().message();
    const auto read = scenario::readScenario(*text, "it");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.scenario->cluster.kind->name, "rdma_vm");
    EXPECT_EQ(read.scenario->workload.command.environment.at("LD_PRELOAD"), "{verbs_shim}");
    EXPECT_THAT(read.scenario->workload.command.run.back(),
                HasSubstr(*program == 0 ? "ib_write_bw" : program));
  }
}

TEST(StarterScenarioTest, FaultsThatOneClusterCannotHaveAreRefusedInWordsOfInit) {
  EXPECT_TRUE(starterScenario({.workload = "command", .faults = {"qp_error", "port_down"}}).ok());
  const std::string told =
      starterScenario({.workload = "command", .faults = {"loss", "qp_error"}}).status().message();
  EXPECT_THAT(told, HasSubstr("loss and qp_error cannot be had together"));
  EXPECT_THAT(told, HasSubstr("only port_down and blackhole"));
}

TEST(StarterScenarioTest, TheExampleProgramOutlivesTheLastFault) {
  const auto text = starterScenario(
      {.workload = "command", .faults = {"loss", "throttle", "port_down", "late_delivery"}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("sleep 8; echo done"));  // the last one begins after 5 s
}

TEST(StarterScenarioTest, AProgramIsOneTextWhateverIsInIt) {
  Starter starter;
  starter.workload = "command";
  starter.program = "echo \"a: b\" '#c' \\ && ./train.sh --x=1";
  const auto text = starterScenario(starter);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto read = scenario::readScenario(*text, "it");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.scenario->workload.command.run.back(), starter.program);
}

TEST(StarterScenarioTest, GatesAreThoseOfTheUser) {
  Starter starter;
  starter.gates = {"hot_repair.overhead_pct.median <= 30"};
  const auto text = starterScenario(starter);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto read = scenario::readScenario(*text, "it");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.scenario->expect.size(), 1u);
  EXPECT_EQ(read.scenario->expect[0].text, starter.gates[0]);
  starter.gates = {"hot_repair.overhead <= 30"};
  EXPECT_THAT(starterScenario(starter).status().message(),
              HasSubstr("did you mean 'hot_repair.overhead_pct.median'?"));
}

TEST(StarterScenarioTest, MistakesAreSaidWithWhatWasMeant) {
  EXPECT_THAT(starterScenario({.faults = {"port_dwn"}}).status().message(),
              HasSubstr("did you mean 'port_down'?"));
  EXPECT_THAT(starterScenario({.workload = "trainin"}).status().message(),
              HasSubstr("did you mean 'training'?"));
  EXPECT_THAT(starterScenario({.program = "x"}).status().message(), HasSubstr("kind command"));
  EXPECT_FALSE(starterScenario({.nodes = 1}).ok()) << "no fault has an effect on one node";
  EXPECT_FALSE(starterScenario({.name = "a b"}).ok());
}

TEST(StarterScenarioTest, TheNameComesFromTheFile) {
  EXPECT_EQ(nameFromFile("a/my file.yaml"), "my-file");
  EXPECT_EQ(nameFromFile("mine.yaml"), "mine");
  EXPECT_EQ(nameFromFile("-.yaml"), Starter{}.name);
  EXPECT_EQ(nameFromFile("\xc3\xa4.yaml"), Starter{}.name);
  for (const char* const file : {"2026.yaml", "true.yaml", "a b'c\"d.yaml"}) {
    EXPECT_TRUE(starterScenario({.name = nameFromFile(file)}).ok()) << file;
  }
}

TEST(StarterScenarioTest, SeveralFaultsComeOneAfterTheOther) {
  const auto text = starterScenario({.faults = {"port_down", "throttle"}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto read = scenario::readScenario(*text, "it");
  ASSERT_EQ(read.scenario->faults.size(), 2u);
  const auto at = [&](int i) {
    return std::get<scenario::At>(read.scenario->faults[i].trigger).time;
  };
  EXPECT_GT(at(1), at(0) + *read.scenario->faults[0].duration);
}

}  // namespace
}  // namespace faultline::cli
