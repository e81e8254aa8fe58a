#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

// A scenario puts faults into programs that have the verbs shim: of the node that is meant, and not
// of the other.
namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::runFaultline;
using testing::TemporaryFolder;

class VerbsCommandTest : public ::testing::Test {
 protected:
  Ran run(const std::string& fault, const std::string& preload, int per_node = 1) {
    const std::string scenario = folder_.write(
        "scenario.yaml",
        fmt::format("version: 1\nname: verbs\ncluster: {{nodes: 2, rails: 1, rail_rate: 100Mbit}}\n"
                    "limits: {{deadline: 20s}}\nworkload:\n  kind: command\n  command:\n"
                    "    run: [sh, -c, \"sleep 3 | {} FAULTLINE_VERBS_LIB={} exec {} 2\"]\n"
                    "    per_node: {}\n"
                    "strategies: [unprotected]\nfaults:\n  - {}\n",
                    preload, FAULTLINE_FAKE_IBVERBS, FAULTLINE_VERBS_VICTIM, per_node, fault));
    return runFaultline({"run", scenario, "--out", out()}, folder_.path());
  }
  std::string out() const { return folder_.path() / "out"; }

  /// The last line that the program of a rank wrote.
  nlohmann::json told(int rank) const {
    nlohmann::json last;
    for (const auto& entry : std::filesystem::directory_iterator(out())) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("command-unprotected-0")) continue;
      std::ifstream file(entry.path() / fmt::format("rank{}/stdout.txt", rank));
      for (std::string line; std::getline(file, line);) {
        if (line.starts_with("{")) last = nlohmann::json::parse(line);
      }
    }
    return last;
  }

  TemporaryFolder folder_;
};

TEST_F(VerbsCommandTest, OneNodesProgramGetsTheErrorsAndTheRunHasItsEvidence) {
  const Ran ran = run(
      "{kind: completion_rewrite, target: {node: 1}, at: 1s, duration: 500ms, status: rem_op_err, "
      "budget: 3}",
      fmt::format("LD_PRELOAD={}", FAULTLINE_VERBS_SHIM));
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_EQ(told(1)["statuses"]["11"], 3);
  EXPECT_EQ(told(0)["statuses"].size(), 1u) << "the other node's are successes";
  EXPECT_THAT(ran.out + ran.err, ::testing::Not(HasSubstr("INVALID")));
}

TEST_F(VerbsCommandTest, OneRankOfANodeGetsTheErrorsAndItsNeighbourDoesNot) {
  const Ran ran = run(
      "{kind: completion_rewrite, target: {rank: 3}, at: 1s, duration: 500ms, status: rem_op_err, "
      "budget: 3}",
      fmt::format("LD_PRELOAD={}", FAULTLINE_VERBS_SHIM), /*per_node=*/2);
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_EQ(told(3)["statuses"]["11"], 3) << "though its program is not the process of the rank";
  for (const int other : {0, 1, 2}) EXPECT_EQ(told(other)["statuses"].size(), 1u) << other;
}

TEST_F(VerbsCommandTest, WithoutTheShimTheRunSaysWhatIsMissing) {
  const Ran ran =
      run("{kind: post_error, target: {node: 1}, at: 1s, duration: 500ms}", "LD_PRELOAD=");
  EXPECT_NE(ran.exit, 0);
  EXPECT_THAT(ran.out + ran.err, HasSubstr("LD_PRELOAD"));
}

}  // namespace
}  // namespace faultline
