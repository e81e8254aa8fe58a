#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resilient_ccl/nccl/pair.h"
#include "tests/support/log_lines.h"
#include "tests/unit/nccl/call_fixture.h"

// What a pair hears of its rails and of its peer: in the log, in the counters and in the trace.

namespace faultline::nccl {
namespace {

using channel::Cause;
using telemetry::EventKind;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kThePeer = 1;
constexpr TimePoint kFailoverTime{5s};

/// One end of a pair with two rails, which its test plays the fabric for.
class PairEventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto settings = pairSettings(/*side=*/0, /*rails=*/2, newIdentity());
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    auto pair = Pair::create(*std::move(settings));
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    pair_ = *pair;
    (void)log_.take();
  }

  /// Only the fabric of a pair may call it so; a cast in C's way is allowed to.
  fabric::FabricClient& told() const { return (fabric::FabricClient&)*pair_; }
  void sayGoodbye() const {
    constexpr std::string_view kWord = "done";
    told().wordArrived(kThePeer, std::as_bytes(std::span(kWord)));
  }
  static channel::Failover failover(Cause cause, Duration stall = 12ms) {
    return {.rail = 1,
            .cause = cause,
            .sending = true,
            .detected = kFailoverTime,
            .redelivered = kFailoverTime + 30ms,
            .resentBytes = 4096,
            .receiveStall = stall};
  }

  test::LogLines log_;
  std::shared_ptr<Pair> pair_;
};

TEST_F(PairEventsTest, AFailoverIsToldCountedAndTraced) {
  told().railLost(kThePeer, failover(Cause::kLocalNic));
  EXPECT_THAT(log_.take(), ElementsAre("rail 1 () to other is down: local_nic"));
  told().failedOver(kThePeer, failover(Cause::kLocalNic));
  EXPECT_THAT(log_.take(), ElementsAre(HasSubstr("4096 bytes sent again")));
  told().failedOver(kThePeer, failover(Cause::kLocalNic, 5ms));
  told().failedBack(kThePeer, 1, kFailoverTime + 1s);
  EXPECT_THAT(log_.take(), Contains("rail 1 () to other is back"));
  const Pair::Account account = pair_->account();
  EXPECT_EQ(account.failovers, 2U);
  EXPECT_EQ(account.failbacks, 1U);
  EXPECT_EQ(account.longestPause, 12ms);
  EXPECT_EQ(account.paused, 17ms);
  const auto& happenings = account.history.happenings();
  ASSERT_EQ(happenings.size(), 3U);
  EXPECT_EQ(happenings[0].event.kind, EventKind::kFailedOver);
  EXPECT_EQ(happenings[0].event.rail, 1);
  EXPECT_EQ(happenings[0].event.at, kFailoverTime);
  EXPECT_EQ(happenings[0].event.length, 30ms);
  EXPECT_EQ(happenings[0].event.bytes, 4096);
  EXPECT_EQ(happenings[0].cause, Cause::kLocalNic);
  EXPECT_EQ(happenings[0].pause, 12ms);
  EXPECT_EQ(happenings[2].event.kind, EventKind::kRailUp);
  EXPECT_EQ(happenings[2].event.at, kFailoverTime + 1s);
}

TEST_F(PairEventsTest, AnotherCauseThatIsKnownLaterIsToldOnce) {
  const auto aboutTheCause = HasSubstr("the cause was remote_nic");
  told().railLost(kThePeer, failover(Cause::kPath));
  (void)log_.take();
  told().failedOver(kThePeer, failover(Cause::kRemoteNic));
  EXPECT_THAT(log_.take(), Contains(aboutTheCause));
  told().failedOver(kThePeer, failover(Cause::kRemoteNic));
  EXPECT_THAT(log_.take(), Not(Contains(aboutTheCause)));
}

TEST_F(PairEventsTest, WhatAProbeOfAPathSaysIsToldAsItIs) {
  told().pathProved(kThePeer, {.passes = true}, "rail 1 passes long frames again");
  told().pathProved(kThePeer, {.passes = false}, "rail 1 passes no long frames");
  EXPECT_THAT(log_.take(),
              ElementsAre("rail 1 passes long frames again", "rail 1 passes no long frames"));
}

TEST_F(PairEventsTest, LostFramesAreToldWithWhereToLook) {
  told().framesLost(kThePeer, 1, 8192);
  EXPECT_THAT(log_.take(),
              ElementsAre(AllOf(HasSubstr("rail 1"), HasSubstr("datagrams of 8192 bytes are lost"),
                                HasSubstr("look at the MTU"))));
}

TEST_F(PairEventsTest, ASlowRailIsToldAndItsEndOnlyWhereTheRailIsNotLost) {
  told().degraded(kThePeer, {.rail = 0, .degraded = true, .share = 0.25});
  EXPECT_THAT(log_.take(), ElementsAre("rail 0 () to other is slow: 0.25 of the fastest"));
  told().degraded(kThePeer, {.rail = 0, .degraded = false});
  EXPECT_THAT(log_.take(), ElementsAre("rail 0 () to other is as fast as the others again"));
  told().railLost(kThePeer, failover(Cause::kPath));
  (void)log_.take();
  told().degraded(kThePeer, {.rail = 1, .degraded = false});
  EXPECT_THAT(log_.take(), IsEmpty());
  const Pair::Account account = pair_->account();
  EXPECT_EQ(account.degradations, 1U);
  ASSERT_EQ(account.history.happenings().size(), 3U);
  EXPECT_EQ(account.history.happenings()[0].event.kind, EventKind::kRailSlow);
  EXPECT_EQ(account.history.happenings()[1].event.kind, EventKind::kRailFast);
}

TEST_F(PairEventsTest, WhatHappensToRailsAfterAGoodbyeIsItsEnd) {
  told().railLost(kThePeer, failover(Cause::kPath));
  sayGoodbye();
  (void)log_.take();
  channel::Failover late = failover(Cause::kPath);
  late.detected = now() + 1h;
  told().railLost(kThePeer, late);
  told().failedOver(kThePeer, late);
  told().failedBack(kThePeer, 1, late.detected);
  told().degraded(kThePeer, {.rail = 0, .degraded = true});
  told().pathProved(kThePeer, {}, "a path");
  told().explained(kThePeer, 1, Cause::kLocalNic, {});
  EXPECT_THAT(log_.take(), IsEmpty());
  EXPECT_EQ(pair_->account().failovers, 0U);
  EXPECT_EQ(pair_->account().failbacks, 0U);
  EXPECT_EQ(pair_->account().degradations, 0U);
  told().failedOver(kThePeer, failover(Cause::kPath));
  EXPECT_EQ(pair_->account().failovers, 1U) << "it was before the goodbye, and is over now";
}

TEST_F(PairEventsTest, ANodeThatHasAnAddressOfThisOneIsNotMet) {
  const std::shared_ptr<const Identity> its = newIdentity();
  fabric::ProcessAddress address = pair_->address();
  address.management.address = 0x0a000002;  // another node
  const Status met = pair_->meet(its->keys.publicKey(), address, 1);
  EXPECT_EQ(met.code(), Code::kInvalidArgument);
  EXPECT_THAT(met.message(), HasSubstr("other has the address 127.0.0.1 of this node's rail 0"));
}

TEST_F(PairEventsTest, RailsWithoutAnAddressShareNone) {
  auto settings = pairSettings(/*side=*/0, /*rails=*/2, newIdentity());
  ASSERT_TRUE(settings.ok());
  settings->rails[1].address = 0;  // its interface has none now
  const auto pair = Pair::create(*std::move(settings));
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  fabric::ProcessAddress address = (*pair)->address();
  address.management.address = 0x0a000002;  // another node
  address.rails[0].data.address = 0x0a000002;
  ASSERT_EQ(address.rails[1].data.address, 0U);
  const Status met = (*pair)->meet(newIdentity()->keys.publicKey(), address, 1);
  EXPECT_TRUE(met.ok()) << met.message();
}

// A job may be given up before its processes have met.
TEST_F(PairEventsTest, AConnectionCanBeClosedThoughTheProcessesHaveNotMet) {
  auto settings = pairSettings(/*side=*/0, /*rails=*/1, newIdentity());
  ASSERT_TRUE(settings.ok());
  const auto failure = std::make_shared<FirstFailure>();
  settings->failure = failure;
  const auto pair = Pair::create(*std::move(settings));
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  const auto connection = Pair::open(*pair, 0, /*sends=*/true);
  failure->note("why calls fail", FirstFailure::Kind::kCause, now());
  EXPECT_TRUE((*pair)->close(*connection));
  EXPECT_FALSE((*pair)->failed());
}

}  // namespace
}  // namespace faultline::nccl
