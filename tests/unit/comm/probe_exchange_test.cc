#include "resilient_ccl/comm/probe_exchange.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "resilient_ccl/plan/port_test.h"

namespace faultline::comm {
namespace {

constexpr double kWhole = 50e6;  // bytes per second
constexpr std::uint64_t kToken = std::uint64_t{5} << 32;

/// A path from one exchange to another that lets `burst` bytes pass at once and then carries
/// `rate`.
class PathWorld : public MessagePort {
 public:
  /// `together`: bytes that arrive at once, when the last of them has been carried.
  PathWorld(double rate, Bytes burst, std::uint32_t round = 1, Bytes together = 0)
      : rate_(rate), burst_(burst), together_(together) {
    const channel::MessageKey key{.communicator = 1, .sequence = 0, .stream = probeStream(1, 1)};
    const auto shape = ProbeExchange::shapeFor(kWhole, 100e-6, round);
    sender_.emplace(shape, 1, std::nullopt, key, kToken, *this);
    receiver_.emplace(shape, std::nullopt, 0, key, kToken, *this);
  }

  void postSend(int peer, const channel::MessageKey& key, const std::byte*, Bytes length,
                std::uint64_t token) override {
    EXPECT_EQ(peer, 1);
    EXPECT_TRUE(sequences_.insert({key.sequence, {length, token}}).second);
    sends_.push_back(key.sequence);
  }
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token) override {
    EXPECT_EQ(peer, 0);
    region[0] = region[capacity - 1] = std::byte{1};
    EXPECT_TRUE(receives_.insert({key.sequence, token}).second);
  }

  /// Returns how long it took.
  Duration run() {
    sender_->start(now_);
    receiver_->start(now_);
    while (!sender_->finished() || !receiver_->finished()) {
      if (sends_.empty()) {
        ADD_FAILURE() << "nothing moves";
        break;
      }
      std::vector<std::uint32_t> arrived;
      Bytes bytes = 0;
      do {
        arrived.push_back(sends_.front());
        sends_.pop_front();
        bytes += sequences_.at(arrived.back()).length;
      } while (bytes < together_ && !sends_.empty());
      const Bytes waits = std::max<Bytes>(0, bytes - burst_);
      burst_ -= bytes - waits;
      now_ += std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(waits) / rate_));
      for (const std::uint32_t sequence : arrived) {
        receiver_->messageDone(receives_.at(sequence), sequences_.at(sequence).length, now_);
      }
      for (const std::uint32_t sequence : arrived) {
        sender_->messageDone(sequences_.at(sequence).token, 0, now_);
      }
    }
    EXPECT_EQ(sender_->sent(), receiver_->received());
    return now_ - TimePoint{100s};
  }
  double share() const { return receiver_->rate() / kWhole; }
  Bytes bytes() const { return receiver_->received(); }

 private:
  struct Sent {
    Bytes length;
    std::uint64_t token;
  };

  double rate_;
  Bytes burst_, together_;
  TimePoint now_{100s};
  std::optional<ProbeExchange> sender_, receiver_;
  std::map<std::uint32_t, Sent> sequences_;
  std::map<std::uint32_t, std::uint64_t> receives_;
  std::deque<std::uint32_t> sends_;
};

TEST(ProbeExchangeTest, MeasuresWhatThePathCarriesAfterItsBurst) {
  for (const double share : {1.0, 0.9, 0.5, 0.25, 0.1}) {
    for (const Bytes burst : {0, 16 << 10, 100'000, 400'000}) {
      PathWorld world(share * kWhole, burst);
      world.run();
      EXPECT_NEAR(world.share(), share, 0.02 * share) << "burst " << burst;
    }
  }
}

// Kernels let packets of 64 KiB pass as one.
TEST(ProbeExchangeTest, WhatArrivesInBurstsIsMeasuredFromBurstToBurst) {
  for (const double share : {1.0, 0.5, 0.25, 0.1}) {
    for (const Bytes together : {40'000, 64 << 10, 150'000}) {
      for (const Bytes burst : {0, 16 << 10, 100'000}) {
        PathWorld world(share * kWhole, burst, 2, together);
        world.run();
        EXPECT_NEAR(world.share(), share, 0.03 * share) << together << " at once, burst " << burst;
      }
    }
  }
}

TEST(ProbeExchangeTest, ASlowPathTakesALittleLongerAndLooksSlow) {
  PathWorld whole(kWhole, 0);
  EXPECT_NEAR(toSeconds(whole.run()), 0.035, 0.002);
  EXPECT_NEAR(static_cast<double>(whole.bytes()), kWhole * 0.035, 50'000);
  EXPECT_NEAR(toSeconds(PathWorld(kWhole, 0, 2).run()), 0.085, 0.002) << "after the glance";
  PathWorld slow(0.02 * kWhole, 0);
  EXPECT_LT(slow.run(), 600ms) << "the time, and the messages that were under way";
  EXPECT_NEAR(slow.share(), 0.02, 0.005);
  PathWorld snail(0.001 * kWhole, 0);
  snail.run();
  EXPECT_LT(snail.share(), 0.005);
  EXPECT_GT(snail.share(), 0);
}

TEST(ProbeExchangeTest, MessagesAreSmallAndFewWhateverTheBandwidth) {
  for (const double bandwidth : {1e5, 1e6, 1e8, 1e9, 50e9}) {
    const auto shape = ProbeExchange::shapeFor(bandwidth, 1e-3, 1);
    EXPECT_LE(shape.message, 1 << 20);
    EXPECT_GE(shape.message, 4 << 10);
    EXPECT_GE(shape.window * shape.message, static_cast<Bytes>(2e-3 * bandwidth));
    EXPECT_GE(shape.messages * shape.message, static_cast<Bytes>(0.035 * bandwidth));
  }
}

TEST(ProbeExchangeTest, AStreamOfATestIsNoOtherOnes) {
  EXPECT_NE(probeStream(1, 1), probeStream(1, 2));
  EXPECT_NE(probeStream(1, 1), probeStream(2, 1));
  // Also where two rounds have the same shift, and so the same two ranks.
  std::set<std::uint64_t> streams;
  constexpr std::uint32_t kRounds = 1 + plan::PortTest::kMostRounds;
  for (std::uint64_t test = 1; test <= 3; ++test) {
    for (std::uint32_t round = 1; round <= kRounds; ++round)
      streams.insert(probeStream(test, round));
  }
  EXPECT_EQ(streams.size(), 3 * kRounds);
  EXPECT_EQ(probeStream(1, 1) & ((1u << Executor::kLaneBits) - 1), 0u);
}

}  // namespace
}  // namespace faultline::comm
