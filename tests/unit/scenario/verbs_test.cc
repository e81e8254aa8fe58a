#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/scenario/reader.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

using ::testing::HasSubstr;

class VerbsScenarioTest : public ::testing::Test {
 protected:
  static constexpr const char* kPlain = "{kind: command, command: {run: [ib_write_bw]}}";

  /// What is wrong with a fault of queue pairs under this workload; empty: nothing.
  static std::string problems(const std::string& workload, const std::string& strategies,
                              const std::string& kind = "qp_error") {
    const std::string rate = kind == "qp_rate" ? ", rate: 1Mbit" : "";
    const std::string delay = kind == "qp_delay" ? ", delay: 5ms" : "";
    std::string lines;
    const auto read = readScenario(
        fmt::format("version: 1\nname: verbs\ncluster: {{nodes: 4, rails: 2}}\nworkload: {}\n"
                    "strategies: {}\nfaults:\n"
                    "  - {{kind: {}{}{}, target: {{node: 1}}, at: 1s, duration: 1s}}\n",
                    workload, strategies, kind, rate, delay),
        "f.yaml");
    for (const Mistake& mistake : read.mistakes) lines += mistake.toString() + "\n";
    return lines;
  }
};

TEST_F(VerbsScenarioTest, RanksOfOursHaveNoQueuePairs) {
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (!kind.ofQueuePairs) continue;
    const std::string told =
        problems("{kind: training}", "[fault_free, hot_repair]", std::string(kind.name));
    EXPECT_THAT(told, HasSubstr(fmt::format("f.yaml:7:12: {}: strikes queue pairs", kind.name)));
    EXPECT_THAT(told, HasSubstr("write 'workload: {kind: command}'"));
  }
}

TEST_F(VerbsScenarioTest, AProgramThatNothingGivesTheShimIsAMistakeWithItsCure) {
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (!kind.ofQueuePairs) continue;
    const std::string told = problems(kPlain, "[unprotected]", std::string(kind.name));
    EXPECT_THAT(told, HasSubstr("f.yaml:7:12: "));
    EXPECT_THAT(told, HasSubstr("has the verbs shim"));
    EXPECT_THAT(told, HasSubstr("env: {LD_PRELOAD: \"{verbs_shim}\"}"));
  }
}

TEST_F(VerbsScenarioTest, EachWayToTheShimIsOne) {
  for (const char* const command :
       {"run: [x], env: {LD_PRELOAD: '{verbs_shim}'}", "run: [x], env: {NCCL_IBVERBS_LIB: /a.so}",
        "run: [x], env: {MSCCLPP_IBV_SO: /a.so}", "run: [sh, -c, 'LD_PRELOAD={verbs_shim} x']",
        "run: [sh, -c, 'x --library /b/libfaultline-verbs.so']"}) {
    EXPECT_EQ(problems(fmt::format("{{kind: command, command: {{{}}}}}", command), "[unprotected]"),
              "")
        << command;
  }
  EXPECT_EQ(problems(kPlain, "[{unprotected: {env: {LD_PRELOAD: '{verbs_shim}'}}}]"), "");
}

}  // namespace
}  // namespace faultline::scenario
