#include "tests/unit/scenario/expect_mistake.h"
#include "tests/unit/scenario/quickstart.h"

// Faults that are commands of the user's.

namespace faultline::scenario {
namespace {

std::string withExternal(const std::string& commands) {
  return minimal(
      "faults:\n  - {kind: external, target: {node: 1, rail: 0}, at: 1s, duration: 1s, " +
      commands + "}\n");
}

TEST(FaultCommandTest, ProgramsOfThisMachineAreFine) {
  EXPECT_THAT(mistakesOf(withExternal("apply: sh -c true, revert: /bin/sh, evidence: echo it")),
              ::testing::IsEmpty());
}

TEST(FaultCommandTest, AProgramThatIsNotHereIsNamedWhereItStands) {
  expectMistake(withExternal("apply: no-such-program 7, revert: sh, evidence: sh"), "6:79",
                "apply: there is no program 'no-such-program' in PATH");
  expectMistake(withExternal("apply: sh, revert: sh, evidence: sh, prepare: ./nowhere"), "6:118",
                "prepare: there is no program './nowhere'");
}

/// A scenario that was run elsewhere can still be read.
TEST(FaultCommandTest, ProgramsMatterOnlyWhereTheScenarioIsToBeRun) {
  EXPECT_TRUE(
      readScenario(withExternal("apply: no-such-program, revert: sh, evidence: sh"), "f").ok());
}

TEST(FaultCommandTest, WhatIsNoCommandIsAMistake) {
  expectMistake(withExternal("apply: \"sh 'x\", revert: sh, evidence: sh"), "6:79",
                "apply: 'sh 'x' has an open '");
  expectMistake(withExternal("apply: sh, evidence: sh"), "6:5", "external needs the key 'revert'");
}

}  // namespace
}  // namespace faultline::scenario
