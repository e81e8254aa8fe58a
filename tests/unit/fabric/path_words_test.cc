#include "resilient_ccl/fabric/path_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::fabric {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const PathEnds kRailEnds{.path = "rail 1 (eth1) to node1",
                         .device = "eth1",
                         .from = 0x0a000101,
                         .to = {0x0a000102, 4242}};

TEST(PathWordsTest, ASilentRailIsNamedWithWhatWasTriedAndWhatToDo) {
  const std::string words = wordsOf(kRailEnds, {.path = 1,
                                                .direction = channel::DeadDirection::kOutgoing,
                                                .rounds = 5,
                                                .within = 251432us,
                                                .othersAnswer = true});
  EXPECT_THAT(words,
              AllOf(HasSubstr("rail 1 (eth1) to node1 carries no datagrams: 5 probes within 251ms "
                              "from 10.0.1.1 (eth1) to 10.0.1.2:4242 (UDP) had no answer"),
                    HasSubstr("those over other paths had"),
                    HasSubstr("nothing that this end sends arrives"), HasSubstr("firewall"),
                    HasSubstr("ip route get 10.0.1.2 from 10.0.1.1 oif eth1"),
                    HasSubstr("net.ipv4.conf.eth1.rp_filter")));
}

TEST(PathWordsTest, AMissingRouteIsTheCauseAndNothingElseIsLookedFor) {
  PathEnds ends = kRailEnds;
  ends.noRoute = "this node has no route from 10.0.1.1";
  const std::string words = wordsOf(ends, {.path = 1, .rounds = 5, .within = 251ms});
  EXPECT_THAT(words, AllOf(HasSubstr("The cause: this node has no route from 10.0.1.1"),
                           Not(HasSubstr("firewall"))));
}

TEST(PathWordsTest, OfTheManagementNetworkNoDeviceIsKnown) {
  const std::string words = wordsOf(
      {.path = "the management network to node1",
       .device = "",
       .from = 0x0a090001,
       .to = {0x0a090002, 17}},
      {.path = 2, .direction = channel::DeadDirection::kBoth, .rounds = 16, .within = 800ms});
  EXPECT_THAT(words, AllOf(HasSubstr("from 10.9.0.1 to 10.9.0.2:17"), HasSubstr("neither"),
                           Not(HasSubstr("other paths")), Not(HasSubstr(" oif "))));
}

TEST(PathWordsTest, ThatItCarriesSomeAtLastIsOneLine) {
  EXPECT_EQ(wordsOf(kRailEnds, {.path = 1, .passes = true}),
            "rail 1 (eth1) to node1 carries datagrams now");
}

}  // namespace
}  // namespace faultline::fabric
