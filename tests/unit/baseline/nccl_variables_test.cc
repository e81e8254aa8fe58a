#include "harness/baseline/nccl_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/baseline/strategy_table.h"

namespace faultline::baseline {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<std::string, std::string> variables(std::string_view strategy,
                                             const std::map<std::string, std::string>& texts = {}) {
  const StrategySpec& spec = *findStrategy(strategy);
  return ncclVariables(strategy, Parameters::parse(spec.name, spec.options, texts).value());
}

TEST(NcclVariablesTest, StockIsSaidSoThatNothingElseTurnsFailoverOn) {
  EXPECT_THAT(
      variables("nccl"),
      UnorderedElementsAre(Pair("NCCL_NET_PLUGIN", "none"), Pair("FAULTLINE_NCCL_RECOVERY", "none"),
                           Pair("NCCL_IB_RESILIENCY_PORT_FAILOVER", "0"),
                           Pair("NCCL_IB_RESILIENCY_PORT_RECOVERY", "0")));
}

TEST(NcclVariablesTest, FailoverNeedsAMergedNic) {
  EXPECT_THAT(
      variables("nccl", {{"mode", "port_failover"}}),
      UnorderedElementsAre(Pair("NCCL_NET_PLUGIN", "none"), Pair("NCCL_NET_MERGE_LEVEL", "SYS"),
                           Pair("FAULTLINE_NCCL_RECOVERY", "none"),
                           Pair("NCCL_IB_RESILIENCY_PORT_FAILOVER", "1"),
                           Pair("NCCL_IB_RESILIENCY_PORT_RECOVERY", "1")));
}

TEST(NcclVariablesTest, AProgramIsToldWhatItIsToDoItself) {
  for (const char* mode : {"abort_reinit", "shrink"}) {
    EXPECT_THAT(variables("nccl", {{"mode", mode}, {"wait", "1500us"}}),
                UnorderedElementsAre(
                    Pair("NCCL_NET_PLUGIN", "none"), Pair("NCCL_IB_RESILIENCY_PORT_FAILOVER", "0"),
                    Pair("NCCL_IB_RESILIENCY_PORT_RECOVERY", "0"),
                    Pair("FAULTLINE_NCCL_RECOVERY", mode), Pair("FAULTLINE_NCCL_WAIT_MS", "2"),
                    Pair("FAULTLINE_NCCL_RECOVERY_FILE", "{output}/recovery.txt")))
        << mode;
  }
}

TEST(NcclVariablesTest, OtherStrategiesHaveNone) {
  for (const StrategySpec& spec : strategies()) {
    if (spec.written) continue;  // it has no usual file
    EXPECT_EQ(variables(spec.name).empty(), !spec.setsUpNccl) << spec.name;
  }
}

}  // namespace
}  // namespace faultline::baseline
