#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/msccl/exporter.h"
#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/verifier.h"

namespace faultline::schedule {
namespace {

std::string problemOf(const Schedule& schedule) {
  const auto report = verifySchedule(schedule);
  if (!report.ok()) return report.status().toString();
  if (report->ok()) return "";
  const Problem& problem = report->problems.front();
  return fmt::format("rank {} lane {} op {}: {}", problem.rank, problem.lane, problem.op,
                     problem.text);
}

/// A request whose pieces often have a common unit.
ScheduleRequest divisibleRequest(Random& random) {
  ScheduleRequest request;
  request.ranks = 2 + static_cast<int>(random.below(7));
  if (request.ranks % 2 == 0 && random.below(2) == 0) request.ranksPerNode = 2;
  request.segments = 1 + static_cast<int>(random.below(4));
  PortBandwidths& bandwidths = request.bandwidths;
  bandwidths = std::vector<double>(static_cast<std::size_t>(request.ranks), 1.0);
  if (random.below(2) == 0) {
    const auto slow = random.below(static_cast<std::uint64_t>(request.ranks));
    bandwidths.send[slow] = bandwidths.receive[slow] = random.below(2) == 0 ? 0.5 : 0.25;
  }
  // What the shares of the algorithms add up to for up to 8 ranks and 4 segments, and more.
  request.elements = 5040LL * 17 * 19 * 23 * (1 + static_cast<std::int64_t>(random.below(3)));
  return request;
}

class EveryMscclAlgorithm : public testing::TestWithParam<std::string> {};

constexpr int kSeeds = 60;

TEST_P(EveryMscclAlgorithm, WhatIsExportedComesBack) {
  int fitted = 0;
  int rewritten = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    const ScheduleRequest request = divisibleRequest(random);
    SCOPED_TRACE(
        fmt::format("seed {}: {} ranks, {} segments", seed, request.ranks, request.segments));
    const auto original = makeSchedule(GetParam(), request);
    ASSERT_TRUE(original.ok());
    const auto exported = msccl::exportSchedule(**original);
    if (!exported.ok()) {
      ASSERT_EQ(exported.status().code(), Code::kUnsupported) << exported.status().toString();
      continue;
    }
    ++fitted;
    const auto xml = msccl::toXml(*exported);
    ASSERT_TRUE(xml.ok()) << xml.status().toString();
    auto algo = msccl::fromXml(*xml);
    ASSERT_TRUE(algo.ok()) << algo.status().toString();
    const std::int64_t data = dataElements((*original)->collective(), (*original)->elements());
    const auto imported = msccl::importSchedule(*algo, data);
    ASSERT_TRUE(imported.ok()) << imported.status().toString();
    ASSERT_EQ(problemOf(**imported), "");

    // The same schedule: it costs the same, whatever latencies are, and exports to the same file.
    for (const double alpha : {0.0, 0.01}) {
      const CostOptions options{.alpha = alpha, .perMessage = alpha / 10};
      const auto before = costOf(**original, request.bandwidths, options);
      const auto after = costOf(**imported, request.bandwidths, options);
      ASSERT_TRUE(before.ok() && after.ok());
      ASSERT_NEAR(after->time, before->time, 1e-9 * before->time);
      ASSERT_EQ(after->messagesPerRankMax, before->messagesPerRankMax);
      ASSERT_EQ(after->depth, before->depth);
    }

    // As MSCCL sees it, without the lanes: the waits in the file are enough.
    for (msccl::Gpu& gpu : algo->gpus) {
      for (msccl::ThreadBlock& block : gpu.blocks) {
        for (msccl::Step& step : block.steps) step.order = -1;
      }
    }
    const auto foreign = msccl::importSchedule(*algo, data);
    ASSERT_TRUE(foreign.ok()) << foreign.status().toString();
    ASSERT_EQ(problemOf(**foreign), "");

    // And what was read from a file of others can be written again.
    const auto again = msccl::exportSchedule(**foreign);
    if (again.status().code() == Code::kUnsupported) continue;  // more waits than steps have room
    ASSERT_TRUE(again.ok()) << again.status().toString();
    const auto read = msccl::fromXml(*msccl::toXml(*again));
    ASSERT_TRUE(read.ok()) << read.status().toString();
    const auto twice = msccl::importSchedule(*read, data);
    ASSERT_TRUE(twice.ok()) << twice.status().toString();
    ASSERT_EQ(problemOf(**twice), "");
    ++rewritten;
  }
  EXPECT_GE(rewritten, fitted * 9 / 10);
  // A shift along a ring is no collective of MSCCL.
  EXPECT_GE(fitted, GetParam() == "ring_send_recv" ? 0 : kSeeds / 4);
}

std::vector<std::string> allNames() {
  std::vector<std::string> all;
  for (const Algorithm& algorithm : allAlgorithms()) all.emplace_back(algorithm.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Msccl, EveryMscclAlgorithm, testing::ValuesIn(allNames()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace faultline::schedule
