#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "tests/support/net_driver.h"

// Options by environment, as whoever starts a job meets them.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConformanceOptionsTest, AWrongOptionIsAnErrorOfInitThatSaysWhatIsAllowed) {
  const std::array<std::array<const char*, 3>, 5> wrong{{
      {"FAULTLINE_NET_STRATEGY", "fastest", "balance"},
      {"FAULTLINE_NICS", "lo,eth99", "eth99"},
      {"FAULTLINE_MANAGEMENT", "eth99", "here are"},
      {"FAULTLINE_COUNTERS", "/no/such/folder/counters.json", "cannot be written"},
      {"FAULTLINE_GIVE_UP", "10", "GIVE_UP"},
  }};
  for (const auto& [variable, value, said] : wrong) {
    setenv("FAULTLINE_NICS", "lo", 1);
    setenv(variable, value, 1);
    NetDriver net(FAULTLINE_NET_PLUGIN, 11);
    EXPECT_NE(net.init(), NetResult::kSuccess) << variable;
    EXPECT_THAT(NetDriver::warnings().back(), AllOf(HasSubstr(variable), HasSubstr(said)));
    unsetenv(variable);
    setenv("FAULTLINE_NICS", "lo", 1);
    EXPECT_EQ(net.init(), NetResult::kSuccess);  // once it is right
    EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  }
}

TEST(ConformanceOptionsTest, AVariableThatIsMisspeltIsWarnedOf) {
  setenv("FAULTLINE_NICS", "lo", 1);
  setenv("FAULTLINE_NIC", "eth0", 1);
  NetDriver net(FAULTLINE_NET_PLUGIN, 11);
  EXPECT_EQ(net.init(), NetResult::kSuccess);
  EXPECT_THAT(NetDriver::warnings(), Contains(HasSubstr("did you mean FAULTLINE_NICS?")));
  EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  unsetenv("FAULTLINE_NIC");
  EXPECT_THAT(NetDriver::warnings(), Not(Contains(HasSubstr("without effect"))));
  setenv("FAULTLINE_QUICK", "1", 1);
  EXPECT_EQ(net.init(), NetResult::kSuccess);
  EXPECT_THAT(NetDriver::warnings(),
              Contains(AllOf(HasSubstr("without effect"), HasSubstr(": FAULTLINE_QUICK; it has"))));
  EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  unsetenv("FAULTLINE_QUICK");
}

}  // namespace
}  // namespace faultline::test
