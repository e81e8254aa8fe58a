#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

// What each fault takes of its link's bandwidth.

namespace faultline::injector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Texts = std::map<std::string, std::string>;

/// "tx rx begin+length" of each loss; a length of "-" lasts until the end.
std::vector<std::string> lossesOf(std::string_view name, const Texts& texts = {},
                                  BitsPerSecond rate = 0, Duration longest = 10s) {
  const FaultKind& kind = *findFaultKind(name);
  const auto parameters = FaultParameters::parse(kind, texts);
  EXPECT_TRUE(parameters.ok()) << parameters.status().message();
  std::vector<std::string> all;
  for (const LinkLoss& loss : kind.damage(*parameters, rate, longest)) {
    const std::string length = loss.length ? formatDuration(*loss.length) : "-";
    all.push_back(
        fmt::format("{:.2f} {:.2f} {}+{}", loss.tx, loss.rx, formatDuration(loss.begin), length));
  }
  return all;
}

TEST(DamageModelTest, WhatCutsALinkTakesAllOfItUntilItsEnd) {
  for (const char* name : {"port_down", "blackhole"}) {
    EXPECT_THAT(lossesOf(name), ElementsAre("1.00 1.00 0s+-")) << name;
  }
  EXPECT_THAT(lossesOf("one_way_loss"), ElementsAre("1.00 0.00 0s+-"));
  EXPECT_THAT(lossesOf("one_way_loss", {{"direction", "in"}}), ElementsAre("0.00 1.00 0s+-"));
}

TEST(DamageModelTest, AThrottleTakesWhatItDoesNotLeave) {
  EXPECT_THAT(lossesOf("throttle", {{"rate", "10%"}}), ElementsAre("0.90 0.90 0s+-"));
  EXPECT_THAT(lossesOf("throttle", {{"rate", "10%"}, {"direction", "tx"}}),
              ElementsAre("0.90 0.00 0s+-"));
  EXPECT_THAT(lossesOf("throttle", {{"rate", "100Mbit"}, {"direction", "rx"}}, 400'000'000),
              ElementsAre("0.00 0.75 0s+-"));
  EXPECT_THAT(lossesOf("throttle", {{"rate", "800Mbit"}}, 400'000'000),
              ElementsAre("0.00 0.00 0s+-"))
      << "faster than the link";
  EXPECT_THAT(lossesOf("throttle", {{"rate", "100Mbit"}}), ElementsAre("0.00 0.00 0s+-"))
      << "of a link whose rate is not known";
}

TEST(DamageModelTest, AFlapTakesAllOncePerPeriod) {
  const Texts slow{{"period", "1s"}, {"duty", "25%"}};
  for (const char* name : {"port_flap", "path_flap"}) {
    EXPECT_THAT(lossesOf(name, slow, 0, 2100ms),
                ElementsAre("1.00 1.00 0s+250ms", "1.00 1.00 1s+250ms", "1.00 1.00 2s+100ms"))
        << name << ": the last is cut off";
    EXPECT_THAT(lossesOf(name, slow, 0, 2s), ::testing::SizeIs(2)) << "none at the end";
  }
  EXPECT_THAT(lossesOf("port_flap", {{"period", "1s"}, {"count", "1"}}),
              ElementsAre("1.00 1.00 0s+500ms"));
  EXPECT_THAT(lossesOf("port_flap", {}, 0, 0s), IsEmpty());
}

TEST(DamageModelTest, OfOthersNothingIsTakenOrNobodyKnowsWhat) {
  EXPECT_THAT(lossesOf("connection_reset"), IsEmpty());
  EXPECT_THAT(lossesOf("none"), IsEmpty());
  std::set<std::string_view> unknown;
  for (const FaultKind& kind : faultKinds()) {
    if (kind.damage == nullptr) unknown.insert(kind.name);
    EXPECT_TRUE(!kind.slows || kind.damage != nullptr) << kind.name;
  }
  EXPECT_TRUE(unknown.contains("loss"));
  EXPECT_TRUE(unknown.contains("process_kill"));
}

}  // namespace
}  // namespace faultline::injector
