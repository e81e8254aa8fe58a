#include "tests/netns/nccl/plugin_fixture.h"

// Two processes that meet for the first time while the host, or its network, is not as it should
// be.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NcclPluginStartTest : public NcclPluginTest {
 protected:
  /// Of node 1.
  void takePort(int rail) {
    faults_.push_back(makeTestFault(1, rail, "port_down"));
    ASSERT_OK(faults_.back()->prepare());
    ASSERT_OK(faults_.back()->apply());
  }
  /// Rail 0 is missing at first, and is taken when it comes.
  void beginWithoutARail(const Variables& environment, const std::string& grace) {
    takePort(0);
    startPeers({.seconds = 60}, environment);
    awaitLoad(1);
    ASSERT_OK(faults_.back()->revert());
    awaitLoad(0);
    const std::ofstream stop(folder_ / "stop");
    for (int side = 0; side < 2; ++side) {
      const std::string word = lastWord(side);
      EXPECT_THAT(word, AllOf(StartsWith("ok "), HasSubstr("without rail 0 (rail0) to "),
                              HasSubstr(fmt::format("10.0.0.{}): ", 2 - side)),
                              HasSubstr("(not connected within " + grace + ")")));
      EXPECT_THAT(lastWord(1), HasSubstr("(10.0.0.1): this port is down"));
      EXPECT_THAT(word, ::testing::Not(HasSubstr("rail 1 (rail1)")));
      EXPECT_GE(counters(side)["peers"][0]["failbacks"], 1);
      EXPECT_EQ(counters(side)["peers"][0]["failure"], "");
    }
  }
};

TEST_F(NcclPluginStartTest, ItBeginsWithoutARailThatIsDownAndTakesItWhenItComes) {
  beginWithoutARail({}, "1s");
}

// One rail is missing, and not the peer.
TEST_F(NcclPluginStartTest, TheGraceForAllRailsIsNoLongerThanTheBudget) {
  beginWithoutARail({{"FAULTLINE_RAIL_GRACE", "30s"}, {"FAULTLINE_GIVE_UP", "3s"}}, "3s");
}

TEST_F(NcclPluginStartTest, WithoutARailNcclHearsWhichPeerAndWhy) {
  for (int rail = 0; rail < 2; ++rail) takePort(rail);
  const Variables environment{{"FAULTLINE_GIVE_UP", "2s"}};
  spawnPeers({}, {environment, environment});
  for (int side = 0; side < 2; ++side) {
    const std::string peer = fmt::format("10.0.0.{}): ", 2 - side);
    EXPECT_THAT(lastWord(side),
                AllOf(StartsWith("error 6 "),  // ncclRemoteError
                      HasSubstr("came up within FAULTLINE_GIVE_UP=2s (rail 0 (rail0) to "),
                      HasSubstr("; rail 1 (rail1) to "), HasSubstr(peer)));
  }
  EXPECT_THAT(lastWord(1), AllOf(HasSubstr("(10.0.0.1): this port is down; rail 1 (rail1) to "),
                                 HasSubstr("(10.0.0.1): this port is down): ")));
}

// As on hosts whose administrators leave only what FIPS approves.
TEST_F(NcclPluginStartTest, WhatOpensslOfTheHostIsToldDoesNotMatter) {
  const std::string configuration = (folder_ / "openssl.cnf").string();
  std::ofstream(configuration) << "openssl_conf = all\n"
                                  "[all]\nproviders = providers\nalg_section = algorithms\n"
                                  "[providers]\nbase = base\n[base]\nactivate = 1\n"
                                  "[algorithms]\ndefault_properties = fips=yes\n";
  startPeers({.seconds = 0.2}, {{"OPENSSL_CONF", configuration}});
  for (int side = 0; side < 2; ++side) EXPECT_THAT(lastWord(side), StartsWith("ok "));
}

}  // namespace
}  // namespace faultline::test
