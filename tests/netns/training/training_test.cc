#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "injector/faults/registry.h"
#include "tests/netns/training/training_job.h"

// Whole jobs: real processes in a real cluster, damaged by the real injector.

namespace faultline::workload {
namespace {

constexpr int kNodes = 4;
constexpr int kRails = 2;
constexpr int kTargetNode = 1;
constexpr int kTargetRail = 0;
constexpr Bytes kGradientBytes = 4 << 20;
/// What a rail of a node sends in one iteration: a ring, shared by the rails.
constexpr Bytes kRailBytes = 2 * (kNodes - 1) * kGradientBytes / kNodes / kRails;

class TrainingTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(
        cluster_,
        netns::Cluster::create({.nodes = kNodes, .rails = kRails, .rail_rate = 400'000'000}));
    std::string pattern = testing::TempDir() + "/training.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  RankConfig shape(scenario::DataKind data) const {
    RankConfig config;
    config.workload.iterations = 8;
    config.workload.warmupIterations = 1;
    config.workload.gradient.size = kGradientBytes;
    config.workload.gradient.data = data;
    config.seed = 11;
    return config;
  }

  std::unique_ptr<TrainingJob> startJob(const RankConfig& config) {
    auto job = TrainingJob::start(*cluster_, config);
    EXPECT_TRUE(job.ok()) << job.status().toString();
    return job.ok() ? std::move(*job) : nullptr;
  }

  std::unique_ptr<injector::Fault> preparedFault() {
    const auto parameters =
        injector::FaultParameters::parse(*injector::findFaultKind("port_down"), {});
    auto fault = injector::makeFault("port_down", *parameters,
                                     cluster_->railTarget(kTargetNode, kTargetRail));
    EXPECT_OK((*fault)->prepare());
    return std::move(*fault);
  }

  Bytes targetSent() {
    std::vector<netns::RailCounters> counters;
    EXPECT_OK(cluster_->readRailCounters(counters));
    return static_cast<Bytes>(counters[kTargetNode * kRails + kTargetRail].tx_bytes);
  }

  /// Applies the fault when all ranks are in this iteration and the target has sent a third of it.
  void hit(TrainingJob& job, injector::Fault& fault, std::size_t iteration) {
    ASSERT_TRUE(job.await<wire::End>(iteration));  // the next begins after a barrier
    const Bytes before = targetSent();
    ASSERT_TRUE(test::pollUntil(kLong, [&] { return targetSent() > before + kRailBytes / 3; }));
    ASSERT_OK(fault.apply());
  }

  /// How many ranks were inside that iteration at that moment.
  static int inside(const TrainingJob& job, std::size_t iteration, TimePoint moment) {
    int count = 0;
    for (int rank = 0; rank < kNodes; ++rank) {
      const auto ends = job.of<wire::End>(rank);
      if (ends.size() <= iteration) continue;
      const wire::End& end = ends[iteration];
      if (end.at - end.took < moment && moment < end.at) ++count;
    }
    return count;
  }

  /// No wrong element; every rank has ended every iteration, in order, with the same digest.
  /// Returns the digests by iteration.
  static std::map<std::uint64_t, std::string> expectRight(const TrainingJob& job,
                                                          const RankConfig& config,
                                                          std::uint64_t firstIteration = 0) {
    const bool integers = config.workload.gradient.data == scenario::DataKind::kIntegers;
    std::map<std::uint64_t, std::string> digests;
    for (int rank = 0; rank < kNodes; ++rank) {
      int next = static_cast<int>(firstIteration);
      for (const wire::End& end : job.of<wire::End>(rank)) {
        EXPECT_EQ(end.iteration, next);
        EXPECT_EQ(end.wrong, 0);
        EXPECT_EQ(end.checked, integers ? kGradientBytes / 4 : 0);
        EXPECT_EQ(end.digest.empty(), integers);
        EXPECT_EQ(digests.try_emplace(next, end.digest).first->second, end.digest);
        ++next;
      }
      EXPECT_EQ(next, config.workload.iterations);
    }
    return digests;
  }

  /// The digest of the model, which must be the same on all ranks.
  static std::string stateOf(const TrainingJob& job) {
    const std::string state = job.of<wire::Done>(0).at(0).stateDigest;
    for (int rank = 1; rank < kNodes; ++rank) {
      EXPECT_EQ(job.of<wire::Done>(rank).at(0).stateDigest, state);
    }
    return state;
  }

  /// A job without fault, and the digest of its model.
  std::string faultFreeState(const RankConfig& config,
                             std::map<std::uint64_t, std::string>* digests = nullptr) {
    const auto job = startJob(config);
    EXPECT_TRUE(job->begin());
    job->expectDone();
    EXPECT_EQ(job->failovers(), 0);
    const auto found = expectRight(*job, config);
    if (digests != nullptr) *digests = found;
    return stateOf(*job);
  }

  std::unique_ptr<netns::Cluster> cluster_;
  std::string directory_;
};

TEST_F(TrainingTest, WithoutAFaultEveryElementIsRight) {
  const RankConfig config = shape(scenario::DataKind::kIntegers);
  const auto job = startJob(config);
  ASSERT_TRUE(job->begin());
  job->expectDone();
  expectRight(*job, config);
  stateOf(*job);
  EXPECT_EQ(job->failovers(), 0);
  for (int rank = 0; rank < kNodes; ++rank) {
    // An iteration begins after the one before has ended everywhere.
    const auto begins = job->of<wire::Begin>(rank);
    const auto ends = job->of<wire::End>((rank + 1) % kNodes);
    ASSERT_EQ(begins.size(), ends.size());
    for (std::size_t i = 1; i < begins.size(); ++i) EXPECT_GT(begins[i].at, ends[i - 1].at);
    EXPECT_GT(job->of<wire::Done>(rank).at(0).network.counters.at("bytes_sent"), 0);
  }
}

TEST_F(TrainingTest, ACorruptedElementIsSeen) {
  RankConfig config = shape(scenario::DataKind::kIntegers);
  config.workload.iterations = 2;
  config.corruptOneElement = true;
  const auto job = startJob(config);
  ASSERT_TRUE(job->begin());
  job->expectDone();
  for (int rank = 0; rank < kNodes; ++rank) {
    EXPECT_EQ(job->of<wire::End>(rank).at(0).wrong, rank == 0 ? 1 : 0);
    EXPECT_EQ(job->of<wire::End>(rank).at(1).wrong, 0);
  }
}

/// What carries an AllReduce: which rail takes a chunk, and in which order ranks add.
struct Carried {
  const char* name;
  channel::Policy policy;
  const char* algorithm;
};

class FailoverTest : public TrainingTest, public testing::WithParamInterface<Carried> {};

TEST_P(FailoverTest, APortThatGoesDownChangesNoBit) {
  RankConfig config = shape(scenario::DataKind::kRandom);
  config.policy = GetParam().policy;
  config.algorithm = GetParam().algorithm;
  std::map<std::uint64_t, std::string> expected;
  const std::string state = faultFreeState(config, &expected);

  // A strike between two iterations shows nothing. On a busy machine one can come there, and the
  // next job is struck instead.
  constexpr std::size_t kIteration = 3;
  constexpr int kAttempts = 5;
  std::unique_ptr<injector::Fault> fault;
  std::unique_ptr<TrainingJob> job;
  int struck = 0;
  for (int attempt = 0; attempt < kAttempts && struck < 2; ++attempt) {
    fault = preparedFault();
    job = startJob(config);
    ASSERT_TRUE(job->begin());
    hit(*job, *fault, kIteration);
    ASSERT_TRUE(job->await<wire::End>(kIteration + 2));
    ASSERT_OK(fault->revert());
    job->expectDone();
    struck = inside(*job, kIteration, fault->transitions().at(0).after);
  }
  ASSERT_GE(struck, 2);

  EXPECT_EQ(expectRight(*job, config), expected);
  EXPECT_EQ(stateOf(*job), state);
  // Both ends of both links of the node's ring neighbours.
  EXPECT_GE(job->failovers(), 4);
  for (const wire::Failover& failover : job->failoversOf(kTargetNode)) {
    EXPECT_EQ(failover.rail, kTargetRail);
    EXPECT_GE(failover.detected, fault->transitions().at(0).before);
    EXPECT_GE(failover.fenced, failover.detected);
  }
}

INSTANTIATE_TEST_SUITE_P(, FailoverTest,
                         testing::Values(Carried{"Pinned", channel::Policy::kPinned, "ring"},
                                         Carried{"Pull", channel::Policy::kPull, "ring"},
                                         Carried{"Optcc", channel::Policy::kPull, "optcc"},
                                         Carried{"HalvingDoubling", channel::Policy::kPull,
                                                 "halving_doubling"}),
                         [](const auto& carried) { return carried.param.name; });

TEST_F(TrainingTest, WithoutResilienceItHangsAndGoesOnFromTheCheckpoint) {
  RankConfig config = shape(scenario::DataKind::kRandom);
  std::map<std::uint64_t, std::string> expected;
  const std::string state = faultFreeState(config, &expected);

  config.resilient = false;
  config.checkpointEvery = 2;
  config.checkpointPath = directory_ + "/checkpoint";
  constexpr std::size_t kIteration = 5;
  const auto fault = preparedFault();
  const auto first = startJob(config);
  ASSERT_TRUE(first->begin());
  hit(*first, *fault, kIteration);
  // Soon nothing ends any more: the barrier needs everybody. (On a busy machine the fault may come
  // an iteration late.)
  const auto ends = [&] {
    first->read();
    std::size_t count = 0;
    for (int rank = 0; rank < kNodes; ++rank) count += first->of<wire::End>(rank).size();
    return count;
  };
  std::size_t ended = ends();
  TimePoint since = now();
  ASSERT_TRUE(test::pollUntil(10s, [&] {
    if (const std::size_t count = ends(); count != ended) {
      ended = count;
      since = now();
    }
    return now() - since > 500ms;
  }));
  EXPECT_LT(ended, kNodes * static_cast<std::size_t>(config.workload.iterations));
  std::size_t checkpointed = std::numeric_limits<std::size_t>::max();
  for (int rank = 0; rank < kNodes; ++rank) {
    EXPECT_TRUE(first->of<wire::Error>(rank).empty());
    std::size_t saved = 0;
    for (const wire::End& end : first->of<wire::End>(rank)) {
      if (end.checkpoint > 0s) saved = static_cast<std::size_t>(end.iteration) + 1;
    }
    checkpointed = std::min(checkpointed, saved);
  }
  EXPECT_GE(checkpointed, kIteration - 1);
  first->killAll();
  ASSERT_OK(fault->revert());

  const auto second = startJob(config);
  ASSERT_TRUE(second->begin());
  second->expectDone();
  for (int rank = 0; rank < kNodes; ++rank) {
    EXPECT_EQ(second->of<wire::Joined>(rank).at(0).firstIteration, checkpointed);
  }
  for (const auto& [iteration, digest] : expectRight(*second, config, checkpointed)) {
    EXPECT_EQ(digest, expected.at(iteration));
  }
  EXPECT_EQ(stateOf(*second), state);
}

TEST_F(TrainingTest, StopEndsAllRanksInOrderAtTheSameIteration) {
  RankConfig config = shape(scenario::DataKind::kIntegers);
  config.workload.iterations = 1'000'000;
  const auto job = startJob(config);
  ASSERT_TRUE(job->begin());
  ASSERT_TRUE(job->await<wire::End>(2));
  job->tellAll(wire::Stop{});
  job->expectDone();
  for (int rank = 1; rank < kNodes; ++rank) {
    EXPECT_EQ(job->of<wire::End>(rank).size(), job->of<wire::End>(0).size());
  }
}

TEST_F(TrainingTest, TheDeathOfOneRankEndsTheOthersWithAnError) {
  const RankConfig config = shape(scenario::DataKind::kIntegers);
  const auto job = startJob(config);
  ASSERT_TRUE(job->await<wire::Ready>());
  ASSERT_OK(job->ranks()[2].process.signal(SIGKILL));
  ASSERT_OK(job->ranks()[2].process.waitFor(kLong).status());
  for (int rank : {0, 1, 3}) {
    job->tell(rank, wire::Start{});
  }
  for (int rank : {0, 1, 3}) {
    ASSERT_OK_AND_ASSIGN(const auto ended, job->ranks()[rank].process.waitFor(kLong));
    EXPECT_EQ(ended.code, 1) << ended.toString();
  }
  job->read();
  for (int rank : {0, 1, 3}) {
    ASSERT_EQ(job->of<wire::Error>(rank).size(), 1U);
    EXPECT_THAT(job->of<wire::Error>(rank)[0].message, testing::HasSubstr("rank 2"));
  }
}

}  // namespace
}  // namespace faultline::workload
