#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {
namespace {

constexpr int kRanks = 4;

/// Ranks in one process; messages are delivered in an order drawn from a seed.
class Exchange {
 public:
  class Port final : public MessagePort {
   public:
    Port(Exchange& exchange, int rank) : exchange_(exchange), rank_(rank) {}
    void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                  std::uint64_t token) override {
      exchange_.sends_.push_back({rank_, peer, key, data, length, token});
    }
    void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes,
                     std::uint64_t token) override {
      exchange_.receives_.push_back({peer, rank_, key, region, token});
    }

   private:
    Exchange& exchange_;
    int rank_;
  };

  /// Moves one message that both ends have posted; false when there is none.
  bool step(std::vector<std::unique_ptr<Executor>>& executors, Random& random) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t s = 0; s < sends_.size(); ++s) {
      for (std::size_t r = 0; r < receives_.size(); ++r) {
        const bool match = sends_[s].from == receives_[r].from && sends_[s].to == receives_[r].to &&
                           sends_[s].key == receives_[r].key;
        if (match) pairs.push_back({s, r});
      }
    }
    if (pairs.empty()) return false;
    const auto [s, r] = pairs[random.below(pairs.size())];
    const Send send = sends_[s];
    const Receive receive = receives_[r];
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(s));
    receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(r));
    std::copy_n(send.data, send.length, receive.region);
    EXPECT_TRUE(executors[static_cast<std::size_t>(send.from)]->messageDone(send.token));
    EXPECT_TRUE(executors[static_cast<std::size_t>(receive.to)]->messageDone(receive.token));
    return true;
  }

 private:
  struct Send {
    int from, to;
    channel::MessageKey key;
    const std::byte* data;
    Bytes length;
    std::uint64_t token;
  };
  struct Receive {
    int from, to;
    channel::MessageKey key;
    std::byte* region;
    std::uint64_t token;
  };
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

TEST(ExecutorOrderTest, WhatArrivesEarlyIsReducedInTheOrderOfTheSchedule) {
  constexpr int kElements = 60;
  auto made =
      schedule::makeSchedule("optcc", {.ranks = kRanks, .elements = kElements, .segments = 3});
  ASSERT_TRUE(made.ok());
  const std::shared_ptr<const schedule::Schedule> plan = std::move(*made);
  std::vector<float> first;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random data(1);  // the same each time; only the order of arrival changes
    std::vector<std::vector<float>> buffers(kRanks);
    for (auto& buffer : buffers) {
      for (int i = 0; i < kElements; ++i) buffer.push_back(static_cast<float>(data.unit() - 0.5));
    }
    Exchange exchange;
    std::vector<std::unique_ptr<Exchange::Port>> ports;
    std::vector<std::unique_ptr<Executor>> executors;
    std::uint64_t tokens = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Executor::Job job = {
          .schedule = plan, .rank = rank, .buffer = buffers[static_cast<std::size_t>(rank)].data()};
      ports.push_back(std::make_unique<Exchange::Port>(exchange, rank));
      executors.push_back(std::make_unique<Executor>(job, *ports.back(), tokens));
    }
    for (auto& executor : executors) executor->start();
    Random random(seed);
    while (exchange.step(executors, random)) {
    }
    for (const auto& executor : executors) ASSERT_TRUE(executor->finished()) << "seed " << seed;
    if (first.empty()) first = buffers[0];
    for (const auto& buffer : buffers) ASSERT_EQ(buffer, first) << "seed " << seed;
  }
}

}  // namespace
}  // namespace faultline::comm
