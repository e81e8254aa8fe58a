#include "tests/netns/nccl/plugin_fixture.h"

// Which rail carries what; and nodes, peers and all rails that are lost or do not fit: when nothing
// is left, NCCL must hear so in time.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// For those that hear that nothing is left: by then their process has ended. The link gives up
/// 1 s sooner.
constexpr Duration kGiveUp = 5s;
#ifdef FAULTLINE_THREAD_SANITIZER
constexpr Duration kInTime = 2 * kGiveUp;
#else
constexpr Duration kInTime = kGiveUp;
#endif

std::string versionName(const ::testing::TestParamInfo<int>& its) {
  return fmt::format("v{}", its.param);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclPluginVersionTest, kVersions, versionName);

// Smaller ones are done before it matters who carries them.
TEST_F(NcclPluginTest, RailsShareMessagesOfAnySize) {
  for (const int bytes : {20'000, 65'536, 1'000'000}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    startPeers({.bytes = bytes});
    for (int side = 0; side < 2; ++side) {
      const std::string word = lastWord(side);
      EXPECT_THAT(word, StartsWith("ok ")) << word;
      const nlohmann::json peer = counters(side)["peers"][0];
      ASSERT_EQ(peer["weight_by_rail"].size(), 2U) << peer;
      for (const double weight : peer["weight_by_rail"]) EXPECT_GT(weight, 0.25) << bytes;
    }
  }
}

TEST_F(NcclPluginTest, AConnectionPrefersItsNic) {
  const auto told = undisturbed({.seconds = 0.5, .bytes = 20'000, .connections = 1, .first = 1},
                                {{"FAULTLINE_NET_STRATEGY", "hot_repair"}});
  ASSERT_TRUE(told) << "rails failed or were slow in each of several talks";
  for (const nlohmann::json& peer : *told) {
    const auto sent = peer["bytes_sent_by_rail"].get<std::vector<double>>();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0], 0) << peer;
    EXPECT_GT(sent[1], 20'000);
  }
}

// With little under way, also where rails take what they can.
TEST_F(NcclPluginTest, AConnectionOfShortMessagesKeepsToItsNic) {
  const auto told = undisturbed({.seconds = 0.5, .bytes = 2000, .connections = 1, .first = 1});
  ASSERT_TRUE(told) << "rails failed or were slow in each of several talks";
  for (const nlohmann::json& peer : *told) {
    EXPECT_GT(peer["weight_by_rail"][1].get<double>(), 0.8) << peer;
  }
}

TEST_P(NcclPluginVersionTest, ARailThatBecomesSlowLosesItsLoad) {
  startPeers({.version = GetParam(), .seconds = 60});
  const auto fault = makeTestFault(1, 0, "throttle", {{"rate", "20%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  // Far more than both rails had carried before.
  awaitLoad(1, 60'000'000);
  ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  const std::ofstream stop(folder_ / "stop");
  for (int side = 0; side < 2; ++side) {
    const std::string word = lastWord(side);
    ASSERT_THAT(word, StartsWith("ok ")) << word;
    const nlohmann::json peer = counters(side)["peers"][0];
    const double weight = peer["weight_by_rail"][0];
    EXPECT_LT(weight, 0.35) << peer;  // a sixth of the rates
    EXPECT_GT(weight, 0) << peer;
    EXPECT_EQ(peer["failovers"], 0) << "slow is not dead: " << peer << railEvents(side);
    EXPECT_GE(peer["degradations"], 1) << peer;
  }
  EXPECT_OK(fault->revert());
}

TEST_P(NcclPluginVersionTest, NodesThatDoNotFitTogetherSayWhatIsDifferentAndWhatToSet) {
  spawnPeers({.version = GetParam()},
             {Variables{}, Variables{{"FAULTLINE_NICS", "rail0"}, {"FAULTLINE_CHUNK", "32KiB"}}});
  const std::string words = lastWord(0) + lastWord(1);
  // Who hears it first ends, and the other one may hear no more than that.
  EXPECT_THAT(words, AllOf(HasSubstr("error 6 "), HasSubstr("2 rails, chunks of 65536 bytes"),
                           HasSubstr("1 rails, chunks of 32768 bytes"),
                           HasSubstr("set FAULTLINE_NICS, FAULTLINE_CHUNK")));
}

// What is copied is done for the sender, which ends while the other side has not asked for it.
TEST_F(NcclPluginTest, WhatIsDoneIsDeliveredThoughItsSenderEnds) {
  startPeers({.bytes = 2000, .late = 1.5});
  for (int side = 0; side < 2; ++side) EXPECT_THAT(lastWord(side), StartsWith("ok "));
}

// Version 10 has no end but the process's. Rails are slow, so that much is on its way then.
TEST_F(NcclPluginTest, WhatIsDoneIsDeliveredThoughItsProcessIsGoneWithItsLastConnection) {
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(0, rail, "throttle", {{"rate", "5%"}, {"direction", "tx"}}));
    ASSERT_OK(faults_.back()->prepare());
    ASSERT_OK(faults_.back()->apply());
  }
  startPeers({.version = 10, .bytes = 16'000, .quits = true});
  for (int side = 0; side < 2; ++side) EXPECT_THAT(lastWord(side), StartsWith("ok "));
}

TEST_P(NcclPluginVersionTest, APeerThatStandsStillForAWhileIsWaitedFor) {
  constexpr Duration kStop = 1s;
  startPeers({.version = GetParam(), .seconds = 60});
  awaitLoad(0);
  ASSERT_OK(peers_[0]->signal(SIGSTOP));
  const TimePoint stopped = now();
  EXPECT_TRUE(pollUntil(kLong, [&] { return now() - stopped >= kStop; }));
  ASSERT_OK(peers_[0]->signal(SIGCONT));
  for (int rail = 0; rail < 2; ++rail) awaitLoad(rail);
  const std::ofstream stop(folder_ / "stop");
  EXPECT_THAT(lastWord(0), StartsWith("ok "));
  std::istringstream word(lastWord(1));
  std::string ok;
  double messages = 0, longestPauseMs = 0;
  word >> ok >> messages >> longestPauseMs;
  EXPECT_EQ(ok, "ok");
  EXPECT_GT(longestPauseMs, toMilliseconds(kStop) / 2);
}

TEST_P(NcclPluginVersionTest, AllRailsOfANodeMayBeGoneForLessThanTheBudget) {
  constexpr Duration kGone = 1s;
  startPeers({.version = GetParam(), .seconds = 60},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(1, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
    awaitLoad(rail);
  }
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  const TimePoint gone = now();
  for (const auto& fault : faults_) {
    ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
  }
  EXPECT_TRUE(pollUntil(kLong, [&] { return now() - gone >= kGone; }));
  for (const auto& fault : faults_) ASSERT_OK(fault->revert());
  for (int rail = 0; rail < 2; ++rail) awaitLoad(rail);
  const std::ofstream stop(folder_ / "stop");
  for (int side = 0; side < 2; ++side) {
    std::istringstream word(lastWord(side));
    std::string ok;
    double messages = 0, pauseMs = 0;
    word >> ok >> messages >> pauseMs;
    EXPECT_EQ(ok, "ok") << word.str();  // of each message every byte was right
    EXPECT_GT(pauseMs, toMilliseconds(kGone) / 2) << "nothing can have come meanwhile";
    const nlohmann::json peer = counters(side)["peers"][0];
    EXPECT_GE(peer["failovers"].get<int>(), 2) << peer;
    EXPECT_GE(peer["failbacks"].get<int>(), 2) << peer;
    EXPECT_EQ(peer["failure"], "");
  }
}

TEST_P(NcclPluginVersionTest, WhenNoRailIsLeftNcclHearsItInTimeWithRailPeerAndReason) {
  startPeers({.version = GetParam(), .seconds = 20},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(1, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
  }
  awaitLoad(0);
  const TimePoint begin = now();
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  for (int side = 0; side < 2; ++side) {
    const std::string word = lastWord(side);
    EXPECT_THAT(word, StartsWith("error 6 "));  // ncclRemoteError
    EXPECT_THAT(word, AllOf(HasSubstr("rail 0: "), HasSubstr("rail 1: "),
                            HasSubstr(fmt::format("10.0.0.{}", 2 - side))))
        << side;
    EXPECT_THAT(word, HasSubstr(side == 1 ? "local_nic" : "remote_nic"));
    EXPECT_THAT(word, HasSubstr("budget of 4s"));  // the rest of it is for NCCL
    EXPECT_THAT(word, HasSubstr("[rail 0 (rail0), rail 1 (rail1)]"));
  }
  EXPECT_LT(now() - begin, kInTime);
}

/// Three nodes in a row: the last one has no link to the first one.
class NcclPluginRowTest : public NcclPluginTest {
 protected:
  int nodes() const override { return 3; }
};

// In one version: what processes tell each other knows none, and waiting takes as long each time.
TEST_F(NcclPluginRowTest, WhoHasNoLinkToTheLostNodeHearsRailPeerAndReasonToo) {
  const Variables environment{{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}};
  spawn(0, 0, {"--seconds", "20"}, 11, environment);
  spawn(1, 1, {"--seconds", "20", "--next", "second"}, 11, environment);
  spawn(2, 1, {"--seconds", "20", "--meeting", "second"}, 11, environment);
  ASSERT_TRUE(pollUntil(kLong,
                        [&] {
                          return output(0).starts_with("ready") && output(1).starts_with("ready") &&
                                 output(2).starts_with("ready");
                        }))
      << output(0) << output(1) << output(2);
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(0, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
  }
  const TimePoint begin = now();
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  const std::string lost =
      "no rail to .*10\\.0\\.0\\.1\\) came back within the give-up budget of 4s "
      "\\(rail 0: .*, rail 1: .*\\) \\[rail 0 \\(rail0\\), rail 1 \\(rail1\\)\\]";
  EXPECT_THAT(lastWord(0), StartsWith("error 6 "));
  EXPECT_THAT(lastWord(1), AllOf(StartsWith("error 6 "), ContainsRegex(lost)));
  EXPECT_THAT(
      lastWord(2),
      AllOf(StartsWith("error 6 "),
            ContainsRegex("10\\.0\\.0\\.2\\) .* nothing in this stream any more; its reason, "
                          "told [0-9]+m?s before: .*10\\.0\\.0\\.2\\): " +
                          lost)));
  EXPECT_LT(now() - begin, kInTime);
}

TEST_P(NcclPluginVersionTest, APeerThatIsKilledIsAnErrorInTime) {
  startPeers({.version = GetParam(), .seconds = 20},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  awaitLoad(0);
  ASSERT_OK(peers_[0]->signal(SIGKILL));
  const TimePoint begin = now();
  const std::string word = lastWord(1);
  EXPECT_THAT(word, StartsWith("error 6 "));
  EXPECT_THAT(word, AllOf(HasSubstr("10.0.0.1"), HasSubstr("[rail 0 (rail0), rail 1 (rail1)]")));
  EXPECT_LT(now() - begin, kInTime);
}

}  // namespace
}  // namespace faultline::test
