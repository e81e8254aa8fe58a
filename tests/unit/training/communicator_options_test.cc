#include "harness/workload/communicator_options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace faultline::workload {
namespace {

RankConfig smallConfig() {
  RankConfig config;
  config.size = 2;
  config.nics = {{"", "127.0.0.1"}, {"", "127.0.0.1"}};
  config.managementAddress = config.rendezvousAddress = "127.0.0.1";
  return config;
}

/// What a communicator is made with, of all that a scenario's limits name; by their names.
std::map<std::string, std::int64_t> effective(const RankConfig& config) {
  const auto made = communicatorOptions(config);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return {};
  const channel::LinkOptions& link = made->fabric.link;
  return {{"deadline", made->setupTimeout.count()},
          {"give_up", link.giveUp.count()},
          {"collective_timeout", made->collectiveTimeout.count()},
          {"longest_hold_off", link.longestHoldOff.count()},
          {"hold_off", link.holdOff.count()},
          {"hold_off_growth", link.holdOffGrowth},
          {"hold_off_memory", link.holdOffMemory.count()},
          {"suspect_after", link.suspectAfter.count()},
          {"probe_interval", link.suspectProbeInterval.count()},
          {"return_probe_interval", link.returnProbeInterval.count()},
          {"longest_return_probe_interval", link.longestReturnInterval.count()},
          {"answers_to_return", link.answersToReturn},
          {"idle_probe_interval", link.idleProbeInterval.count()},
          {"chunk", link.chunkBytes},
          {"window", link.windowTime.count()},
          {"tail_budget", link.tailBudget},
          {"connect_timeout", made->fabric.connectTimeout.count()},
          {"connect", made->railGrace.count()}};
}

std::int64_t numberOf(Duration limit) { return limit.count(); }
std::int64_t numberOf(std::int64_t limit) { return limit; }

TEST(CommunicatorOptionsTest, WhoWaitsToExcludeWaitsNoLonger) {
  RankConfig config = smallConfig();
  config.excludeAfter = 700ms;
  EXPECT_EQ(effective(config)["collective_timeout"], Duration(700ms).count());
}

TEST(CommunicatorOptionsTest, TheTextOfAScheduleIsRead) {
  RankConfig config = smallConfig();
  EXPECT_EQ(communicatorOptions(config)->written, nullptr);
  config.schedule = R"({"algorithm": "mine", "collective": "all_gather", "ranks": 1, "elements": 2,
                        "lanes": [{"rank": 0, "lane": 0, "ops": []}]})";
  const auto back = rankConfigFromJson(toJson(config));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->schedule, config.schedule) << "as it is written, for its digest";
  const auto made = communicatorOptions(*back);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_NE(made->written, nullptr);
  EXPECT_EQ(made->written->algorithm(), "mine");
  config.schedule = "{}";
  EXPECT_FALSE(communicatorOptions(config).ok());
}

TEST(CommunicatorOptionsTest, EveryLimitReachesItsPlaceAndNoOther) {
  const RankConfig usual = smallConfig();
  const auto before = effective(usual);
  std::size_t limits = 0;
  scenario::eachLimit(usual.limits, [&](const std::string& changed, const auto& value) {
    ++limits;
    EXPECT_TRUE(before.contains(changed)) << changed;
    RankConfig config = usual;
    scenario::eachLimit(config.limits, [&](const std::string& name, auto& limit) {
      if (name == changed) ++limit;
    });
    auto expected = before;
    expected[changed] = numberOf(value) + 1;
    EXPECT_EQ(effective(config), expected) << changed;
  });
  EXPECT_EQ(limits, before.size());
}

TEST(CommunicatorOptionsTest, WithoutAWordTheChannelsOwnDefaultsHold) {
  // What a scenario says by default, and what a library user gets, are the same.
  const comm::CommunicatorOptions own;
  const auto made = communicatorOptions(smallConfig());
  ASSERT_TRUE(made.ok()) << made.status().message();
  const fabric::FabricOptions& fabric = made->fabric;
  const channel::LinkOptions& link = fabric.link;
  const channel::LinkOptions& usual = own.fabric.link;
  EXPECT_EQ(link.giveUp, usual.giveUp);
  EXPECT_EQ(link.longestHoldOff, usual.longestHoldOff);
  EXPECT_EQ(link.holdOff, usual.holdOff);
  EXPECT_EQ(link.holdOffGrowth, usual.holdOffGrowth);
  EXPECT_EQ(link.holdOffMemory, usual.holdOffMemory);
  EXPECT_EQ(link.suspectAfter, usual.suspectAfter);
  EXPECT_EQ(link.suspectProbeInterval, usual.suspectProbeInterval);
  EXPECT_EQ(link.returnProbeInterval, usual.returnProbeInterval);
  EXPECT_EQ(link.longestReturnInterval, usual.longestReturnInterval);
  EXPECT_EQ(link.answersToReturn, usual.answersToReturn);
  EXPECT_EQ(link.idleProbeInterval, usual.idleProbeInterval);
  EXPECT_EQ(link.chunkBytes, usual.chunkBytes);
  EXPECT_EQ(link.windowTime, usual.windowTime);
  EXPECT_EQ(link.tailBudget, usual.tailBudget);
  EXPECT_EQ(fabric.connectTimeout, own.fabric.connectTimeout);
  EXPECT_EQ(made->railGrace, own.railGrace);
  EXPECT_EQ(made->collectiveTimeout, own.collectiveTimeout);
}

TEST(CommunicatorOptionsTest, WhatIsNoAddressIsNamed) {
  RankConfig config = smallConfig();
  config.nics[1].address = "rail one";
  const auto made = communicatorOptions(config);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("rail one"), std::string::npos);
}

}  // namespace
}  // namespace faultline::workload
