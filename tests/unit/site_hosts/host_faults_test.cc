#include "harness/site/hosts/host_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "injector/faults/registry.h"
#include "injector/safety/host_fault.h"

// Which faults hosts can have. What they do there: tests/netns/hosts.

namespace faultline::hosts {
namespace {

using ::testing::HasSubstr;

site::Refusal refusalOf(const std::string& kind,
                        const std::map<std::string, std::string>& parameters) {
  const injector::FaultKind& row = *injector::findFaultKind(kind);
  const auto read = injector::FaultParameters::parse(row, parameters);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return refusal(row, read.ok() ? *read : injector::FaultParameters());
}

TEST(HostFaultsTest, TheirOwnInterfacesAndProcessesOfTheRun) {
  EXPECT_EQ(refusalOf("port_down", {{"how", "admin"}}).key, "");
  EXPECT_EQ(refusalOf("blackhole", {}).key, "");
  EXPECT_EQ(refusalOf("throttle", {{"rate", "1Mbit"}, {"direction", "tx"}}).key, "");
  EXPECT_EQ(refusalOf("throttle", {{"rate", "10%"}, {"direction", "tx"}}).key, "")
      << "of what is known later";
  EXPECT_EQ(refusalOf("process_kill", {}).key, "");
  EXPECT_EQ(refusalOf("process_stop", {}).key, "");
}

TEST(HostFaultsTest, WhatNeedsTheOtherEndSaysWhatToWrite) {
  const site::Refusal carrier = refusalOf("port_down", {});
  EXPECT_EQ(carrier.key, "how");
  EXPECT_THAT(carrier.reason, HasSubstr("on a host write 'admin': the carrier is lost"));
  const site::Refusal both = refusalOf("throttle", {{"rate", "10%"}});
  EXPECT_EQ(both.key, "direction");
  EXPECT_THAT(both.reason, HasSubstr("on a host write 'tx'"));
}

TEST(HostFaultsTest, OthersAreRefusedWithThoseThatThereAre) {
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    const site::Refusal refused = refusal(kind, {});
    const bool possible =
        kind.makeOnHost != nullptr || kind.name == "process_kill" || kind.name == "process_stop";
    EXPECT_EQ(refused.key == site::kRefusedKind, !possible) << kind.name;
    if (!possible) {
      EXPECT_THAT(refused.reason, HasSubstr("process_kill")) << kind.name;
      EXPECT_THAT(refused.reason, HasSubstr("blackhole")) << kind.name;
    }
  }
}

TEST(HostFaultsTest, ALossOfFewFramesMayLastUntilItIsProven) {
  const injector::FaultKind& loss = *injector::findFaultKind("loss");
  const auto spareFor = [&loss](const std::string& percent) {
    const auto read = injector::FaultParameters::parse(loss, {{"percent", percent}});
    EXPECT_TRUE(read.ok()) << read.status().message();
    const auto made = loss.makeOnHost(*read);
    EXPECT_TRUE(made.ok()) << made.status().message();
    const Duration spare = spareOf(loss, *read);
    EXPECT_GT(spare, made->watch->evidenceBudget()) << percent;
    return spare;
  };
  EXPECT_GT(spareFor("1%"), 2 * spareFor("50%"));
}

}  // namespace
}  // namespace faultline::hosts
