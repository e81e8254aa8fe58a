#include "injector/verbs/armed_fault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

namespace faultline::injector::verbs {
namespace {

/// Which of `count` operations of `bytes` bytes each are struck.
std::vector<bool> strikesOf(const Trigger& trigger, int count, std::uint64_t bytes = 0) {
  ArmedFault fault({.effect = Effect::kPostError, .trigger = trigger});
  std::vector<bool> struck;
  for (int i = 0; i < count; ++i) struck.push_back(fault.strikes(bytes));
  return struck;
}

std::ptrdiff_t total(const std::vector<bool>& struck) {
  return std::count(struck.begin(), struck.end(), true);
}

// Against the definition, for every small combination.
TEST(ArmedFaultTest, TriggersAndBudgetsAreExact) {
  constexpr int kOperations = 12;
  for (std::uint64_t after = 0; after < 5; ++after) {
    for (std::uint64_t after_bytes = 0; after_bytes < 40; after_bytes += 5) {
      for (std::uint64_t budget = 0; budget < 5; ++budget) {
        for (const std::uint64_t bytes : {0, 1, 10}) {
          const Trigger trigger{after, after_bytes, 1, budget, 1};
          std::vector<bool> expected;
          std::uint64_t used = 0;
          for (std::uint64_t i = 0; i < kOperations; ++i) {
            const bool due = i >= after && i * bytes >= after_bytes;
            const bool strikes = due && (budget == 0 || used < budget);
            used += strikes;
            expected.push_back(strikes);
          }
          EXPECT_EQ(strikesOf(trigger, kOperations, bytes), expected)
              << after << " " << after_bytes << " " << budget << " " << bytes;
        }
      }
    }
  }
}

TEST(ArmedFaultTest, ASeedRepeatsItsChoicesAndTheyHaveTheProbability) {
  constexpr int kOperations = 20'000;
  for (const double probability : {0.01, 0.1, 0.5, 0.9}) {
    std::vector<bool> previous;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Trigger trigger{0, 0, probability, 0, seed};
      const auto struck = strikesOf(trigger, kOperations);
      EXPECT_EQ(strikesOf(trigger, kOperations), struck);
      EXPECT_NE(struck, previous);
      // Six standard deviations.
      const double wanted = probability * kOperations;
      const double margin = 6 * std::sqrt(wanted * (1 - probability));
      EXPECT_NEAR(static_cast<double>(total(struck)), wanted, margin) << "seed " << seed;
      previous = struck;
    }
  }
}

TEST(ArmedFaultTest, ABudgetCountsOnlyWhatStrikes) {
  const auto struck = strikesOf({100, 0, 0.3, 7, 5}, 10'000);
  EXPECT_EQ(total(struck), 7);
  EXPECT_EQ(std::count(struck.begin(), struck.begin() + 100, true), 0);
}

TEST(ArmedFaultTest, BytesThatOnlyMovedCountForTheTrigger) {
  ArmedFault fault({.trigger = {.afterBytes = 100}});
  EXPECT_FALSE(fault.strikes(0));
  fault.moved(99);
  EXPECT_FALSE(fault.strikes(0));
  fault.moved(1);
  EXPECT_TRUE(fault.strikes(0));
  EXPECT_EQ(fault.counters().bytes, 100u);
  EXPECT_EQ(fault.counters().operations, 3u);
}

// Whichever thread makes an operation: as many strike as with one thread, and never more than the
// budget.
TEST(ArmedFaultTest, ThreadsShareTriggerBudgetAndSeed) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  const auto inThreads = [](const Trigger& trigger) {
    ArmedFault fault({.effect = Effect::kPostError, .trigger = trigger});
    std::vector<std::thread> threads;
    std::vector<std::ptrdiff_t> struck(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) struck[static_cast<std::size_t>(t)] += fault.strikes(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::ptrdiff_t sum = 0;
    for (const std::ptrdiff_t part : struck) sum += part;
    EXPECT_EQ(fault.counters().struck, static_cast<std::uint64_t>(sum));
    EXPECT_EQ(fault.counters().operations, static_cast<std::uint64_t>(kThreads * kEach));
    return sum;
  };
  EXPECT_EQ(inThreads({0, 0, 1, 1000, 1}), 1000);
  EXPECT_EQ(inThreads({50'000, 0, 1, 0, 1}), kThreads * kEach - 50'000);
  const Trigger random{0, 0, 0.25, 0, 9};
  EXPECT_EQ(inThreads(random), total(strikesOf(random, kThreads * kEach)));
}

TEST(ArmedFaultTest, ALinkCarriesOneAfterTheOther) {
  ArmedFault fault({.effect = Effect::kQpRate, .bitsPerSecond = 8'000'000});  // a byte in 1 us
  const TimePoint start{1s};
  EXPECT_EQ(fault.carried(start, 1000), start + 1ms);
  EXPECT_EQ(fault.carried(start, 500), start + 1500us);  // queued
  EXPECT_EQ(fault.carried(start + 1s, 1000), start + 1001ms) << "an idle link saves nothing up";
}

TEST(ArmedFaultTest, ALinkIsFreeEarlierByWhatItNeedNotCarryAndIsStillToCome) {
  const TimePoint start{1s};
  const auto busy = [] {  // for 3 ms, a byte in 1 us
    auto fault =
        std::make_unique<ArmedFault>(Rule{.effect = Effect::kQpRate, .bitsPerSecond = 8'000'000});
    for (int i = 0; i < 3; ++i) fault->carried(TimePoint{1s}, 1000);
    return fault;
  };
  const auto free = [&](ArmedFault& fault) { return fault.carried(start, 0) - start; };
  auto fault = busy();
  fault->notCarried(start, start + 2ms, 1000);
  EXPECT_EQ(free(*fault), 2ms) << "all of it was to come";
  fault = busy();
  fault->notCarried(start + 2300us, start + 3ms, 1000);
  EXPECT_EQ(free(*fault), 2300us) << "0.3 ms of it have gone by";
  fault = busy();
  fault->notCarried(start + 2300us, start + 2ms, 1000);
  EXPECT_EQ(free(*fault), 3ms) << "it has been carried";
  fault = busy();
  fault->notCarried(start + 10ms, start + 20ms, 1000);
  EXPECT_EQ(free(*fault), 3ms) << "a link that is free is so since it was";
  fault = busy();
  fault->notCarried(start + 1ms, start + 1s, 1'000'000);
  EXPECT_EQ(free(*fault), 1ms) << "never before now";
}

TEST(ArmedFaultTest, ThreadsShareOneLinkAndTheShortestWait) {
  ArmedFault fault({.effect = Effect::kQpRate, .bitsPerSecond = 8'000'000'000});  // a byte in 1 ns
  constexpr int kThreads = 4;
  constexpr int kEach = 50'000;
  const TimePoint start{1s};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = kEach; i > 0; --i) {
        fault.carried(start, 3);
        fault.held();
        fault.released(1, Duration(kThreads * i + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fault.carried(start, 0), start + Duration(3 * kThreads * kEach));
  const Counters counters = fault.counters();
  EXPECT_EQ(counters.held, 0u);
  EXPECT_EQ(counters.releasedBytes, static_cast<std::uint64_t>(kThreads * kEach));
  EXPECT_EQ(counters.shortestNanoseconds, static_cast<std::uint64_t>(kThreads));
}

TEST(ArmedFaultTest, CountsWhatCameOfIt) {
  ArmedFault fault({.effect = Effect::kQpDelay});
  fault.held();
  fault.held();
  fault.held();
  fault.released(100, 5ms);
  fault.released(50, 3ms);
  fault.happened();
  fault.failed();
  fault.wasInErrorBefore();
  fault.wasInErrorBefore();
  fault.sawError(true);
  fault.sawError(false);
  fault.sawError(false);
  fault.postFailed(EIO);
  fault.postFailed(ENOMEM);
  fault.postFailed(ENOMEM);
  fault.passedUnseen();
  Counters counters = fault.counters();
  EXPECT_EQ(counters.held, 1u);
  EXPECT_EQ(counters.released, 2u);
  EXPECT_EQ(counters.releasedBytes, 150u);
  EXPECT_EQ(counters.heldNanoseconds, 8'000'000u);
  EXPECT_EQ(counters.shortestNanoseconds, 3'000'000u);
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.failures, 1u);
  EXPECT_EQ(counters.inErrorBefore, 2u);
  EXPECT_EQ(counters.flushErrors, 1u);
  EXPECT_EQ(counters.genuineErrors, 2u);
  EXPECT_EQ(counters.genuinePostErrors, 1u);
  EXPECT_EQ(counters.fullQueues, 2u);
  EXPECT_EQ(counters.uncovered, 1u);
  fault.dropped();
  EXPECT_EQ(fault.counters().held, 0u);
  EXPECT_EQ(fault.counters().dropped, 1u);
}

}  // namespace
}  // namespace faultline::injector::verbs
