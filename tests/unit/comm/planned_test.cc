#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/plan/health_feed.h"
#include "resilient_ccl/plan/probe_trigger.h"
#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

plan::HealthVector slowAt(int ranks, int slow, double share) {
  plan::HealthVector health(static_cast<std::size_t>(ranks));
  health[static_cast<std::size_t>(slow)] = {plan::quantise(share), plan::quantise(share)};
  return health;
}

/// Chooses plans; health is what `feed` says.
auto planning(std::shared_ptr<plan::HealthFeed> feed,
              std::string_view algorithm = CommunicatorOptions::kAnyAlgorithm) {
  return [feed = std::move(feed), algorithm](CommunicatorOptions& options) {
    options.planned = true;
    options.algorithm = algorithm;
    options.health = feed;
  };
}

/// What all ranks used, to be compared: plans by communicator and operation.
class Plans {
 public:
  void add(const Communicator& comm) {
    const std::lock_guard lock(mutex_);
    for (const PlanEvent& event : comm.events().plans) {
      const auto [known, isNew] = used_.try_emplace({event.communicator, event.operation}, event);
      EXPECT_EQ(known->second.plan.hash, event.plan.hash);
      EXPECT_EQ(known->second.epoch, event.epoch);
      EXPECT_EQ(known->second.health, event.health);
      EXPECT_EQ(known->second.elements, event.elements);
      ++tellers_[{event.communicator, event.operation}];
    }
  }
  /// Every plan was used by so many ranks.
  void expectTellers(int ranks) const {
    for (const auto& [operation, count] : tellers_) {
      EXPECT_EQ(count, ranks) << "operation " << operation.second;
    }
  }
  std::vector<PlanEvent> of(std::uint32_t communicator, std::int64_t elements) const {
    std::vector<PlanEvent> events;
    for (const auto& [operation, event] : used_) {
      if (event.communicator == communicator && event.elements == elements) {
        events.push_back(event);
      }
    }
    return events;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, PlanEvent> used_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> tellers_;
};

template <typename T>
void expectSum(Communicator& comm, DataType type, std::int64_t count) {
  std::vector<T> data(static_cast<std::size_t>(count)), sum = data;
  for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(i % 3 + comm.rank());
  ASSERT_TRUE(comm.allReduce(data.data(), sum.data(), count, type, ReduceOp::kSum)->wait().ok());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t ranks = comm.size();
    const std::int64_t expected = ranks * (i % 3) + ranks * (ranks - 1) / 2;
    ASSERT_EQ(sum[i], static_cast<T>(expected)) << i;
    ASSERT_EQ(data[i], static_cast<T>(i % 3 + comm.rank())) << "the source, at " << i;
  }
}

TEST(PlannedTest, MeasuresAgreesAndReducesRight) {
  for (const int size : {1, 2, 3, 5}) {
    Plans plans;
    runJob(
        size,
        [&](Communicator& comm) {
          for (const std::int64_t count : {0, 1, 1000, 300'000}) {
            expectSum<std::int32_t>(comm, DataType::kI32, count);
            expectSum<double>(comm, DataType::kF64, count);
            expectSum<std::int64_t>(comm, DataType::kI64, count);
          }
          std::vector<float> average(1000, static_cast<float>(comm.rank()));
          ASSERT_TRUE(
              comm.allReduce(average.data(), average.data(), 1000, DataType::kF32, ReduceOp::kAvg)
                  ->wait()
                  .ok());
          for (const float value : average) ASSERT_EQ(value, static_cast<float>(size - 1) / 2);
          EXPECT_TRUE(comm.barrier()->wait().ok());
          plans.add(comm);
          EXPECT_TRUE(comm.finish().ok());
        },
        planning(nullptr));
    plans.expectTellers(size);
    // Of 4 and of 8 bytes; the average of 4 bytes has the plan of the sum.
    const auto used = plans.of(1, 1000);
    ASSERT_EQ(used.size(), 2u);
    EXPECT_EQ(used[0].epoch, 0u);
    if (size == 1) continue;
    EXPECT_GT(used[0].link.bandwidth, 1e6);
    EXPECT_LT(used[0].link.bandwidth, 1e12);
    EXPECT_GT(used[0].link.latency, 0);
    EXPECT_LT(used[0].link.latency, 1);
    EXPECT_EQ(used[0].link.bandwidth, used[1].link.bandwidth);
  }
}

TEST(PlannedTest, AChangeOfHealthTakesEffectAtOneOperationWithSeveralInFlight) {
  constexpr int kRanks = 4, kInFlight = 3, kRounds = 400;
  constexpr std::int64_t kCount = 200'000;
  Plans plans;
  auto feed = std::make_shared<plan::HealthFeed>();
  std::atomic<int> changes{0};
  runJob(
      kRanks,
      [&](Communicator& comm) {
        std::vector<std::vector<std::int32_t>> data(kInFlight);
        std::vector<std::shared_ptr<Work>> works(kInFlight);
        int round = 0;
        // Until all ranks have seen three changes; they agree on when that is.
        for (bool more = true; more && round < kRounds * kInFlight; ++round) {
          auto& work = works[static_cast<std::size_t>(round % kInFlight)];
          auto& mine = data[static_cast<std::size_t>(round % kInFlight)];
          if (work) {
            ASSERT_TRUE(work->wait().ok());
            ASSERT_EQ(std::ranges::count(mine, 10 + 4 * (round - kInFlight)), kCount);
          }
          mine.assign(kCount, comm.rank() + 1 + round);
          work = comm.allReduce(mine.data(), mine.data(), kCount, DataType::kI32, ReduceOp::kSum);
          if (comm.rank() == 0 && round % 40 == 20) {
            feed->set(slowAt(kRanks, changes++ % kRanks, 0.5));
          }
          if (round % 20 != 19) continue;
          std::int32_t epochs = 0;
          for (const PlanEvent& event : comm.events().plans) {
            epochs = std::max(epochs, static_cast<std::int32_t>(event.epoch));
          }
          ASSERT_TRUE(
              comm.allReduce(&epochs, &epochs, 1, DataType::kI32, ReduceOp::kMin)->wait().ok());
          more = epochs < 3;
        }
        for (const auto& work : works) ASSERT_TRUE(work->wait().ok());
        plans.add(comm);
        EXPECT_TRUE(comm.finish().ok());
      },
      planning(feed));
  plans.expectTellers(kRanks);
  auto used = plans.of(1, kCount);
  // What is tried under one health follows the first plan for it.
  const auto sameHealth = [](const PlanEvent& a, const PlanEvent& b) { return a.epoch == b.epoch; };
  used.erase(std::unique(used.begin(), used.end(), sameHealth), used.end());
  ASSERT_GE(used.size(), 4u) << "health never changed";
  for (std::size_t i = 0; i < used.size(); ++i) EXPECT_EQ(used[i].epoch, i);
  EXPECT_EQ(used[0].health, plan::HealthVector(kRanks));
  EXPECT_EQ(used[1].health, slowAt(kRanks, 0, 0.5));
}

TEST(PlannedTest, PlansThatDifferAreAnErrorEverywhere) {
  runJob(
      3,
      [&](Communicator& comm) {
        std::vector<float> data(100'000, 1);
        const Status status =
            comm.allReduce(data.data(), data.data(), 100'000, DataType::kF32, ReduceOp::kSum)
                ->wait();
        EXPECT_FALSE(status.ok());
        EXPECT_NE(status.message().find("communicator 1"), std::string::npos) << status.message();
        // With rank 0 or rank 2, whose word came first.
        EXPECT_NE(status.message().find("rank 1 "), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("has the plan"), std::string::npos) << status.message();
      },
      [](CommunicatorOptions& options) {
        options.planned = true;
        options.algorithm = options.rank == 1 ? "tree" : "ring";
      });
}

TEST(PlannedTest, OneAlgorithmIsPlannedAsAskedFor) {
  for (const std::string_view algorithm :
       {"ring", "optcc", "optcc_r2", "tree", "halving_doubling", "r2_allreduce"}) {
    Plans plans;
    auto feed = std::make_shared<plan::HealthFeed>();
    feed->set(slowAt(4, 2, 0.5));
    runJob(
        4,
        [&](Communicator& comm) {
          expectSum<std::int32_t>(comm, DataType::kI32, 100'000);
          plans.add(comm);
          EXPECT_TRUE(comm.finish().ok());
        },
        planning(feed, algorithm));
    const auto used = plans.of(1, 100'000);
    ASSERT_FALSE(used.empty());
    EXPECT_EQ(used[0].plan.algorithm, algorithm);
  }
}

TEST(PlannedTest, AnUnknownAlgorithmIsRefusedAtTheStart) {
  const std::uint16_t port = freePort();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([rank, port] {
      CommunicatorOptions options = optionsOf(rank, 2, port);
      options.planned = true;
      options.algorithm = "teleport";
      const auto comm = Communicator::create(options);
      ASSERT_FALSE(comm.ok());
      EXPECT_EQ(comm.status().code(), Code::kNotFound) << comm.status().message();
    });
  }
  for (auto& thread : ranks) thread.join();
}

TEST(PlannedTest, ARankThatNeverCallsIsNamedWithinTheTimeout) {
  runJob(
      3,
      [&](Communicator& comm) {
        if (comm.rank() == 1) {
          // It lives, and calls nothing until the others have given up.
          std::int32_t word = 0;
          EXPECT_FALSE(comm.receive(&word, 1, DataType::kI32, 0)->wait().ok());
          return;
        }
        std::vector<float> data(1000, 1);
        const Status status =
            comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum)->wait();
        EXPECT_NE(status.message().find("rank(s) 1 have not called it"), std::string::npos)
            << status.message();
      },
      [](CommunicatorOptions& options) {
        options.planned = true;
        options.algorithm = CommunicatorOptions::kAnyAlgorithm;
        options.collectiveTimeout = options.rank == 1 ? Duration(1min) : Duration(700ms);
      });
}

TEST(PlannedTest, MessagesDoNotWaitForACollectiveThatWaitsForItsPlan) {
  runJob(
      2,
      [&](Communicator& comm) {
        std::vector<float> data(1000, 1);
        std::int32_t word = comm.rank();
        const auto reduce = [&] {
          return comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum);
        };
        if (comm.rank() == 0) {
          const auto work = reduce();  // begins when rank 1 has called it, too
          EXPECT_TRUE(comm.send(&word, 1, DataType::kI32, 1)->wait().ok());
          EXPECT_TRUE(work->wait().ok());
        } else {
          EXPECT_TRUE(comm.receive(&word, 1, DataType::kI32, 0)->wait().ok());
          EXPECT_EQ(word, 0);
          EXPECT_TRUE(reduce()->wait().ok());
        }
        EXPECT_TRUE(comm.finish().ok());
      },
      [](CommunicatorOptions& options) {
        options.planned = true;
        options.algorithm = CommunicatorOptions::kAnyAlgorithm;
        options.collectiveTimeout = 20s;
      });
}

TEST(PlannedTest, SplitCommunicatorsPlanForTheirMembers) {
  Plans plans;
  auto feed = std::make_shared<plan::HealthFeed>();
  feed->set(slowAt(5, 3, 0.5));
  runJob(
      5,
      [&](Communicator& comm) {
        auto part = comm.split(comm.rank() % 2, -comm.rank());
        ASSERT_TRUE(part.ok());
        // The odd ranks are 3 and 1, in this order; who is slow is rank 0 there.
        // Until all have seen the change; they agree on when that is.
        bool more = true;
        for (int round = 0; more && round < 5000; ++round) {
          expectSum<std::int32_t>(**part, DataType::kI32, 5000);
          if (round % 20 != 19) continue;
          expectSum<std::int32_t>(comm, DataType::kI32, 7000);
          std::int32_t done = comm.rank() % 2 == 0 ? 1 : 0;
          for (const PlanEvent& event : comm.events().plans) {
            if (event.communicator > 1 && event.elements == 5000 && event.epoch > 0) done = 1;
          }
          ASSERT_TRUE(comm.allReduce(&done, &done, 1, DataType::kI32, ReduceOp::kMin)->wait().ok());
          more = done == 0;
        }
        EXPECT_TRUE((*part)->finish().ok());
        if (comm.rank() % 2 == 1) plans.add(**part);
        EXPECT_TRUE(comm.finish().ok());
      },
      planning(feed));
  bool seen = false;
  for (std::uint32_t communicator = 2; communicator < 10; ++communicator) {
    for (const PlanEvent& event : plans.of(communicator, 5000)) {
      EXPECT_EQ(event.health.size(), 2u);
      if (event.epoch == 0) continue;
      seen = true;
      EXPECT_EQ(event.health, slowAt(2, 0, 0.5));
    }
  }
  EXPECT_TRUE(seen);
}

TEST(PlannedTest, ARankThatDiesWhileAChangeIsPreparedEndsTheJob) {
  auto feed = std::make_shared<plan::HealthFeed>();
  runJob(
      3,
      [&](Communicator& comm) {
        std::vector<float> data(20'000, 1);
        for (int round = 0;; ++round) {
          ASSERT_LT(round, 100'000);
          if (comm.rank() == 2 && round == 50) return;  // gone, without a goodbye
          if (comm.rank() == 0) feed->set(slowAt(3, round % 3, 0.3 + 0.1 * (round % 5)));
          const Status status =
              comm.allReduce(data.data(), data.data(), 20'000, DataType::kF32, ReduceOp::kSum)
                  ->wait();
          if (status.ok()) continue;
          EXPECT_GE(round, 49);
          EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
          return;
        }
      },
      planning(feed));
}

/// Calls that rank 1 makes late, so that the ports are tested; one after the other while `more`
/// says so of their number. The first error.
template <typename More>
Status lateCalls(Communicator& comm, More more) {
  constexpr std::int64_t kCount = 1'000'000;
  std::vector<std::int32_t> data(kCount);
  for (int round = 0; more(round); ++round) {
    std::ranges::fill(data, round + comm.rank());
    if (comm.rank() == 1) std::this_thread::sleep_for(60ms);
    RETURN_IF_ERROR(
        comm.allReduce(data.data(), data.data(), kCount, DataType::kI32, ReduceOp::kSum)->wait());
    const int ranks = comm.size();
    const int sum = ranks * round + ranks * (ranks - 1) / 2;
    EXPECT_EQ(std::ranges::count(data, sum), kCount) << round;
  }
  return okStatus();
}

TEST(PlannedTest, LateCallsHaveThePortsTestedAndGoOn) {
  // Where processors are busy at its start, a job may measure a latency or a bandwidth by which no
  // call is late: then it has nothing to test, and another job begins at another moment.
  constexpr int kMostJobs = 5;
  constexpr Duration kLongEnough = 5s;
  for (const int size : {2, 5}) {
    std::vector<PortTestEvent> tests;
    for (int job = 0; job < kMostJobs && tests.empty(); ++job) {
      runJob(
          size,
          [&](Communicator& comm) {
            // Until rank 0 knows of a test, or has had enough; they agree on when that is.
            const TimePoint begin = now();
            const auto more = [&](int) {
              std::int32_t enough = 0;
              if (comm.rank() == 0) {
                tests = comm.events().portTests;
                enough = !tests.empty() || now() - begin > kLongEnough ? 1 : 0;
              }
              EXPECT_TRUE(
                  comm.allReduce(&enough, &enough, 1, DataType::kI32, ReduceOp::kMax)->wait().ok());
              return enough == 0;
            };
            EXPECT_TRUE(lateCalls(comm, more).ok());
            EXPECT_TRUE(lateCalls(comm, [](int round) { return round < 3; }).ok());
            EXPECT_TRUE(comm.finish().ok());
          },
          planning(nullptr));
    }
    ASSERT_FALSE(tests.empty()) << "calls are late, and the ports have not been tested";
    const TestReport& report = tests[0].report;
    EXPECT_EQ(tests[0].communicator, 1u);
    EXPECT_TRUE(report.complete);
    EXPECT_GE(report.rounds, 1);
    EXPECT_LE(report.rounds, 1 + static_cast<int>(plan::PortTest::kMostRounds))
        << "a glance, and shifts that come again where busy processors make looks differ";
    EXPECT_GT(report.lateness.value_or(0), plan::ProbeTrigger::kLate);
    EXPECT_GT(report.took, 1ms);
  }
}

// In each job it dies a little later: before, in, or after the first test.
TEST(PlannedTest, ARankThatDiesAboutWhenPortsAreTestedEndsTheJob) {
  for (const int last : {7, 9, 11}) {
    runJob(
        3,
        [&](Communicator& comm) {
          const auto more = [&](int round) { return comm.rank() != 2 || round < last; };
          const Status status = lateCalls(comm, more);
          if (comm.rank() == 2) return;  // gone, without a goodbye
          EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
        },
        planning(nullptr));
  }
}

}  // namespace
}  // namespace faultline::comm
