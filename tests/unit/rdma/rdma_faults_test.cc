#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "injector/faults/rdma_counters.h"
#include "injector/faults/rdma_port_down.h"
#include "injector/faults/rdma_rate_change.h"
#include "injector/faults/rdma_silent_drop.h"
#include "injector/faults/registry.h"

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;

constexpr TimePoint kStart{1h};

std::vector<FaultKind> ofDevices() {
  std::vector<FaultKind> kinds;
  for (const FaultKind& kind : faultKinds()) {
    if (kind.target == TargetKind::kRdma) kinds.push_back(kind);
  }
  return kinds;
}

TEST(RdmaFaultKindTest, EveryFaultIsDocumentedAndCanBeMade) {
  std::set<std::string_view> names;
  for (const FaultKind& kind : ofDevices()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    for (const auto text : {kind.summary, kind.sees, kind.evidence, kind.undo, kind.unproven}) {
      EXPECT_FALSE(text.empty()) << kind.name;
    }
    std::map<std::string, std::string> texts;
    for (const ParameterSpec& spec : kind.parameters) {
      if (spec.required()) texts[std::string(spec.name)] = "10Mbit";
    }
    const auto parameters = FaultParameters::parse(kind, texts);
    ASSERT_TRUE(parameters.ok()) << parameters.status().message();
    const auto fault = makeRdmaFault(kind.name, *parameters, {.device = "none"});
    ASSERT_TRUE(fault.ok()) << fault.status().message();
    EXPECT_TRUE((*fault)->revert().ok()) << "without apply() there is nothing to undo";
  }
  EXPECT_GE(names.size(), 4u);
  EXPECT_EQ(makeRdmaFault("meteor", {}, {}).status().code(), Code::kNotFound);
  EXPECT_EQ(makeRdmaFault("throttle", {}, {}).status().code(), Code::kNotFound);
}

TEST(RdmaFaultKindTest, DescriptionsSayWhatIsNotProven) {
  for (const FaultKind& kind : ofDevices()) {
    const std::string page = describeFault(kind, "cluster: {kind: guests}");
    EXPECT_THAT(page, HasSubstr("unproven")) << page;
    EXPECT_THAT(page, HasSubstr("docs/rdma_faults.md"));
    EXPECT_THAT(page, ::testing::Not(HasSubstr("is found as")));
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(RdmaCountersTest, TheFirstKnownCounterCounts) {
  EXPECT_EQ(receivedPackets(rdma::Counters{{"rcvd_pkts", 5}, {"sent_pkts", 7}}), 5u);
  EXPECT_EQ(sentPackets(rdma::Counters{{"rcvd_pkts", 5}, {"sent_pkts", 7}}), 7u);
  EXPECT_EQ(receivedPackets(rdma::Counters{{"rx_write_requests", 9}}), 9u);
  EXPECT_EQ(receivedPackets(rdma::Counters{{"out_of_sequence", 1}}), std::nullopt);
}

class RdmaPortViewTest : public ::testing::Test {
 protected:
  RdmaPortViewTest() {
    view_.state = rdma::PortState::kDown;
    view_.physical = rdma::PhysicalState::kDisabled;
    view_.received.observe(5, kStart);
    view_.received.observe(5, kStart + kStill);
  }
  RdmaPortView view_;
};

TEST_F(RdmaPortViewTest, DownAndSilentIsDown) { EXPECT_TRUE(view_.isDown()); }

TEST_F(RdmaPortViewTest, WhatIsStillActiveOrLinkedOrReceivesIsNot) {
  RdmaPortView view = view_;
  view.state = rdma::PortState::kActive;
  EXPECT_FALSE(view.isDown());
  view = view_;
  view.physical = rdma::PhysicalState::kLinkUp;
  EXPECT_FALSE(view.isDown());
  view = view_;
  view.received.observe(6, kStart + kStill + 1ms);
  EXPECT_FALSE(view.isDown());
}

class SilentDropViewTest : public ::testing::Test {
 protected:
  SilentDropViewTest() {
    view_.carrier = true;
    view_.state = rdma::PortState::kActive;
    view_.probes = 8;
    view_.left.observe(0, kStart);
    view_.left.observe(0, kStart + kStill);
    view_.accepted.observe(100, kStart);
    view_.accepted.observe(100, kStart + kStill);
  }
  SilentDropView view_;
};

TEST_F(SilentDropViewTest, NothingPassesWhileThePortIsActive) { EXPECT_TRUE(view_.proven()); }

TEST_F(SilentDropViewTest, ALossThatEverybodySeesIsAnotherFault) {
  view_.carrier = false;
  EXPECT_FALSE(view_.proven());
  view_.carrier = true;
  view_.state = rdma::PortState::kDown;
  EXPECT_FALSE(view_.proven());
}

TEST_F(SilentDropViewTest, WithoutProbesNothingIsKnown) {
  view_.probes = 7;
  EXPECT_FALSE(view_.proven());
}

TEST_F(SilentDropViewTest, WhatLeavesOrArrivesDisproves) {
  SilentDropView leaks = view_;
  leaks.left.observe(1, kStart + kStill + 1ms);
  EXPECT_FALSE(leaks.proven());
  SilentDropView receives = view_;
  receives.accepted.observe(101, kStart + kStill + 1ms);
  EXPECT_FALSE(receives.proven());
  receives.in = false;
  EXPECT_TRUE(receives.proven()) << "only what goes out is to be lost";
}

TEST_F(SilentDropViewTest, IncomingPacketsAreMissedOnlyWhenSomeCome) {
  view_.out = false;
  EXPECT_FALSE(view_.proven());
  view_.arrived = 1;
  EXPECT_TRUE(view_.proven());
}

// With nobody's answers on their way the port may be idle.
TEST_F(SilentDropViewTest, WhatWasAskedForAndNotSeenIsTold) {
  constexpr std::string_view kUnseen =
      "; nothing came, so that the loss of what comes in was not seen";
  for (const bool out : {true, false}) {
    view_.out = out;
    view_.in = true;
    view_.arrived = 0;
    EXPECT_EQ(view_.unseen(), kUnseen);
    view_.arrived = 1;
    EXPECT_EQ(view_.unseen(), "");
    view_.in = false;
    view_.arrived = 0;
    EXPECT_EQ(view_.unseen(), "") << "nobody asked for that";
  }
}

TEST(RdmaSilentDropTest, WithoutApplyNothingIsObserved) {
  const auto parameters = FaultParameters::parse(*findFaultKind("rdma_silent_drop"), {});
  ASSERT_TRUE(parameters.ok()) << parameters.status().message();
  RdmaSilentDrop fault(*parameters, {.device = "none"});
  const auto evidence = fault.evidence([] { return true; });
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_FALSE(evidence->ok);
  EXPECT_EQ(evidence->observed, "nothing was observed");
}

class RateChangeTest : public ::testing::Test {
 protected:
  static constexpr BitsPerSecond kLimit = 10'000'000'000;
  static std::uint64_t bytesOf(BitsPerSecond rate, Duration time) {
    return static_cast<std::uint64_t>(static_cast<double>(rate) / 8 * toSeconds(time));
  }
  /// One window at the given rate, looked at every 100 ms.
  void sendFor(BitsPerSecond rate) {
    for (Duration at{}; at <= 1s; at += 100ms) change_.observe(kStart + at, bytesOf(rate, at));
  }
  RateChange change_{kLimit};
};

TEST_F(RateChangeTest, FasterBeforeAndLimitedNow) {
  change_.setBefore(500ms, bytesOf(40'000'000'000, 500ms));
  EXPECT_FALSE(change_.proven()) << "nothing was seen yet";
  sendFor(9'900'000'000);
  EXPECT_TRUE(change_.proven());
  EXPECT_NEAR(static_cast<double>(*change_.during()), 9.9e9, 1e8);
  change_.restart();
  EXPECT_FALSE(change_.proven());
}

TEST_F(RateChangeTest, WithoutLoadBeforeThereIsNoProof) {
  change_.setBefore(500ms, bytesOf(11'000'000'000, 500ms));
  sendFor(9'900'000'000);
  EXPECT_FALSE(change_.proven());
}

TEST_F(RateChangeTest, WhatIsFasterThanTheLimitDisproves) {
  change_.setBefore(500ms, bytesOf(40'000'000'000, 500ms));
  sendFor(12'000'000'000);
  EXPECT_FALSE(change_.proven());
}

TEST_F(RateChangeTest, AJobThatHasEndedIsNotALimit) {
  change_.setBefore(500ms, bytesOf(40'000'000'000, 500ms));
  sendFor(1'000'000'000);
  EXPECT_FALSE(change_.proven());
}

}  // namespace
}  // namespace faultline::injector
