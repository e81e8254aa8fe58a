#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "injector/faults/rdma_adapter_silence.h"
#include "injector/faults/rdma_counters.h"

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AdapterCountsTest, AreSumsOfWhatMlx5Counts) {
  const AdapterCounts counts = transportCounts({{"rx_write_requests", 1},
                                                {"rx_read_requests", 2},
                                                {"rx_atomic_requests", 4},
                                                {"local_ack_timeout_err", 8},
                                                {"roce_adp_retrans", 16},
                                                {"roce_adp_retrans_to", 32},
                                                {"duplicate_request", 64},
                                                {"out_of_sequence", 1000},
                                                {"lifespan", 12}});
  EXPECT_EQ(counts.requests, 7u);
  EXPECT_EQ(counts.repeats, 56u);
  EXPECT_EQ(counts.duplicates, 64u);
  EXPECT_EQ(counts.sent, 0u);
  EXPECT_EQ(transportCounts({}).requests, 0u);
}

/// Plays what an adapter counts: each look is 100 ms after the one before, and adds `each`.
class AdapterSilenceTest : public ::testing::Test {
 protected:
  static constexpr AdapterCounts kIdle{};
  // In half a second.
  static constexpr AdapterCounts kSender{.sent = 50'000, .received = 4'000};
  static constexpr AdapterCounts kReceiver{.sent = 4'000, .received = 50'000, .requests = 40'000};
  static constexpr AdapterCounts kBothWays{.sent = 54'000, .received = 54'000, .requests = 40'000};

  void before(const AdapterCounts& load) {
    const AdapterCounts first{7'000'000, 6'000'000, 5'000'000, 400, 300};
    counts_ = first;
    add(load);
    for (AdapterSilence* const silence : {&out_, &in_, &both_}) silence->setBefore(first, counts_);
  }
  void look(int times, const AdapterCounts& each, bool port_lives = true) {
    for (int i = 0; i < times; ++i) {
      add(each);
      now_ += 100ms;
      for (AdapterSilence* const silence : {&out_, &in_, &both_}) {
        silence->observe(now_, counts_, port_lives);
      }
    }
  }
  void add(const AdapterCounts& each) {
    counts_.sent += each.sent;
    counts_.received += each.received;
    counts_.requests += each.requests;
    counts_.repeats += each.repeats;
    counts_.duplicates += each.duplicates;
  }

  AdapterSilence out_{true, false};
  AdapterSilence in_{false, true};
  AdapterSilence both_{true, true};
  AdapterCounts counts_;
  TimePoint now_{1h};
};

TEST_F(AdapterSilenceTest, ASenderRepeatsAndNothingLeaves) {
  before(kSender);
  look(1, kIdle);
  look(9, {.repeats = 3});
  EXPECT_FALSE(out_.proven()) << "no second of it yet";
  look(1, {.repeats = 3});
  EXPECT_TRUE(out_.proven());
  EXPECT_TRUE(both_.proven());
  EXPECT_THAT(out_.describe(), HasSubstr("none for 1000 ms, in which 30 requests"));
  EXPECT_THAT(out_.describe(), Not(HasSubstr("the port has received")));
  out_.restart();
  EXPECT_FALSE(out_.proven()) << "that was another time";
  look(10, {.repeats = 3});
  EXPECT_FALSE(out_.proven()) << "no second of this time yet";
  look(1, {.repeats = 3});
  EXPECT_TRUE(out_.proven()) << "the load before is the same";
}

TEST_F(AdapterSilenceTest, AReceiversAnswersDoNotLeave) {
  before(kReceiver);
  look(12, {.received = 5, .duplicates = 5});
  EXPECT_TRUE(out_.proven());
  EXPECT_TRUE(both_.proven()) << "no request has got as far as the transport";
  look(1, {.received = 5, .requests = 1});
  EXPECT_FALSE(both_.proven());
  EXPECT_TRUE(out_.proven()) << "what comes in is none of its business";
}

TEST_F(AdapterSilenceTest, OnePacketThatLeavesDisproves) {
  before(kSender);
  look(12, {.repeats = 3});
  ASSERT_TRUE(out_.proven());
  look(1, {.sent = 1, .repeats = 3});
  EXPECT_FALSE(out_.proven());
  EXPECT_FALSE(both_.proven());
  look(9, {.repeats = 3});
  EXPECT_FALSE(out_.proven());
  look(1, {.repeats = 3});
  EXPECT_TRUE(out_.proven()) << "a new second";
}

TEST_F(AdapterSilenceTest, AJobThatHasEndedIsNoLoss) {
  before(kBothWays);
  look(3, {.sent = 100, .received = 100, .requests = 50, .repeats = 5, .duplicates = 5});
  look(40, kIdle);
  EXPECT_FALSE(out_.proven()) << "the repeats were before the silence";
  EXPECT_FALSE(in_.proven());
  EXPECT_FALSE(both_.proven());
}

TEST_F(AdapterSilenceTest, WithoutLoadBeforeNothingIsKnown) {
  before({.sent = 99, .received = 99, .requests = 99});
  look(20, {.repeats = 3, .duplicates = 3});
  EXPECT_FALSE(out_.proven());
  EXPECT_FALSE(in_.proven());
  EXPECT_FALSE(both_.proven());
  before({.sent = 100, .received = 100, .requests = 99});
  EXPECT_TRUE(out_.proven());
  EXPECT_TRUE(in_.proven());
  EXPECT_TRUE(both_.proven());
}

TEST_F(AdapterSilenceTest, ALossThatEverybodySeesIsAnotherFault) {
  before(kSender);
  look(20, {.repeats = 3}, /*port_lives=*/false);
  EXPECT_FALSE(out_.proven());
  EXPECT_FALSE(in_.proven());
  EXPECT_FALSE(both_.proven());
  look(1, {.repeats = 3});
  EXPECT_TRUE(out_.proven());
}

TEST_F(AdapterSilenceTest, ASenderWithoutAnswersHearsNothing) {
  before(kSender);
  look(12, {.sent = 20, .repeats = 20});
  EXPECT_TRUE(in_.proven());
  EXPECT_FALSE(out_.proven());
  EXPECT_FALSE(both_.proven());
  EXPECT_THAT(in_.describe(), HasSubstr("the port has received no packet for 1100 ms"));
  look(1, {.sent = 20, .received = 1, .repeats = 20});
  EXPECT_FALSE(in_.proven());
  look(12, {.sent = 20, .repeats = 20});
  ASSERT_TRUE(in_.proven());
  in_.restart();
  look(10, {.sent = 20, .repeats = 20});
  EXPECT_FALSE(in_.proven()) << "no second of this time yet";
}

TEST_F(AdapterSilenceTest, TheLoadBeforeIsToldAsWhatWasCountedMeanwhile) {
  before({.sent = 4'000, .received = 50'000, .requests = 40'000, .repeats = 12});
  EXPECT_THAT(out_.describe(),
              HasSubstr("the port sent 4000 packets and received 50000, 40000 requests reached its "
                        "transport, and 12 were repeated"));
}

// Where the port counts in front of the steering tables.
TEST_F(AdapterSilenceTest, AReceiverGetsPacketsAndNoRequest) {
  before(kReceiver);
  look(12, {.received = 7});
  EXPECT_TRUE(in_.proven());
  EXPECT_THAT(in_.describe(), HasSubstr("in which 77 packets arrived"));
  look(1, {.received = 7, .requests = 1});
  EXPECT_FALSE(in_.proven());
  look(12, {.received = 7});
  ASSERT_TRUE(in_.proven());
  in_.restart();
  look(10, {.received = 7});
  EXPECT_FALSE(in_.proven()) << "no second of this time yet";
}

TEST_F(AdapterSilenceTest, AReceiverOfWhichThePortHearsNothingIsNoEvidence) {
  before(kReceiver);
  look(30, kIdle);
  EXPECT_FALSE(in_.proven()) << "its peers may have ended";
}

TEST_F(AdapterSilenceTest, RequestsThatPauseWhileTheNodeSendsAreNoLoss) {
  before(kBothWays);
  look(30, {.sent = 10'000, .received = 800});
  EXPECT_FALSE(in_.proven()) << "what arrives are answers";
  EXPECT_FALSE(both_.proven());
}

TEST_F(AdapterSilenceTest, BothWaysTheNodeRepeatsItsOwnAndGetsNone) {
  before(kBothWays);
  look(12, {.sent = 20, .received = 30, .repeats = 20});
  EXPECT_TRUE(in_.proven());
}

TEST_F(AdapterSilenceTest, ANetworkThatLosesPacketsAnywayRepeatsAnyway) {
  AdapterCounts load = kBothWays;
  load.repeats = 1;
  before(load);
  look(12, {.sent = 20, .received = 30, .repeats = 20});
  EXPECT_FALSE(in_.proven());
}

TEST_F(AdapterSilenceTest, AFaultWithoutEffectIsNotProven) {
  for (const AdapterCounts& load : {kSender, kReceiver, kBothWays}) {
    before(load);
    look(40, {.sent = load.sent / 5 + 1,
              .received = load.received / 5 + 1,
              .requests = load.requests / 5,
              .repeats = 2,
              .duplicates = 2});
    EXPECT_FALSE(out_.proven());
    EXPECT_FALSE(in_.proven());
    EXPECT_FALSE(both_.proven());
  }
}

}  // namespace
}  // namespace faultline::injector
