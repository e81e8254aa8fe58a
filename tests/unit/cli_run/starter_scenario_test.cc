#include "harness/cli/starter_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/reader.h"
#include "harness/scenario/vocabulary.h"
#include "injector/fault_table.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Faults that only programs of the user's own can meet, or guests of qemu.
bool needsPrograms(const injector::FaultKind& kind) {
  return kind.target == injector::TargetKind::kRdma || !kind.parameters.empty();
}

TEST(StarterScenarioTest, EveryWorkloadAndFaultMakesAScenarioOrSaysWhyNot) {
  int written = 0;
  for (const scenario::Word& workload : scenario::workloadKinds()) {
    for (const injector::FaultKind& kind : injector::faultKinds()) {
      Starter starter;
      starter.workload = workload.name;
      starter.faults = {std::string(kind.name)};
      starter.nodes = 4;
      const auto text = starterScenario(starter);
      const std::string both = std::string(workload.name) + " with " + std::string(kind.name);
      if (!text.ok()) {
        EXPECT_TRUE(needsPrograms(kind)) << both << ": " << text.status().message();
        EXPECT_NE(workload.name, "command") << both << ": " << text.status().message();
        EXPECT_THAT(text.status().message(), HasSubstr("this makes no scenario: ")) << both;
        continue;
      }
      ++written;
      const auto read = scenario::readScenario(*text, both);
      EXPECT_TRUE(read.ok()) << both;
      EXPECT_THAT(*text, HasSubstr(std::string(kind.summary)));
    }
  }
  const auto faults = injector::faultKinds().size();
  EXPECT_GE(written, static_cast<int>(2 * faults));
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
