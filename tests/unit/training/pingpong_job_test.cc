#include "harness/workload/pingpong/job/pingpong_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/workload_kind.h"
#include "harness/workload/pingpong/section/values.h"
#include "harness/workload/rank_config.h"
#include "tests/unit/comm/thread_job.h"

namespace faultline::workload {
namespace {

scenario::Workload exchanges(Bytes size, int exchanges) {
  scenario::Workload workload;
  workload.kind = scenario::findWorkloadKind("pingpong");
  workload.iterations = 2;
  workload.warmupIterations = 1;
  workload.own = scenario::OwnSection::of(scenario::Pingpong{.size = size, .exchanges = exchanges});
  return workload;
}

TEST(PingpongJobTest, EveryByteIsCheckedAndACorruptOneSeen) {
  for (const Bytes size : {Bytes{1}, Bytes{40'001}}) {
    comm::runJob(4, [&](comm::Communicator& communicator) {
      const auto job =
          makePingpongJob(exchanges(size, 3), communicator.rank(), communicator.size());
      EXPECT_EQ(job->warmups(), 1u);
      ASSERT_EQ(job->iterations(), 2u);
      for (std::uint64_t index = 0; index < job->iterations(); ++index) {
        const DataKey key{5, index};
        job->prepare({.index = index, .warmup = false}, key);
        if (size > 1) {
          EXPECT_GT(job->check(key).wrong, 2 * size) << "poison";
        }
        int starts = 0;
        const auto time = job->run(communicator, [&](TimePoint) { ++starts; });
        ASSERT_TRUE(time.ok()) << time.status().message();
        EXPECT_EQ(starts, 1);
        EXPECT_EQ(job->check(key).wrong, 0);
        EXPECT_EQ(job->check(key).checked, 3 * size);
        if (size > 1) {
          EXPECT_GT(job->check({5, index + 1}).wrong, size) << "another iteration's";
        }
        job->corruptResult(index);
        EXPECT_EQ(job->check(key).wrong, 1);
      }
      EXPECT_EQ(job->goOnWith(std::vector{0, 1}).code(), Code::kUnsupported);
      EXPECT_TRUE(communicator.finish().ok());
    });
  }
}

TEST(PingpongJobTest, PartnersAreEachOthers) {
  for (const int ranks : {2, 4, 10}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int partner = scenario::partnerOf(rank, ranks);
      EXPECT_NE(partner, rank);
      EXPECT_EQ(scenario::partnerOf(partner, ranks), rank);
    }
  }
}

TEST(PingpongJobTest, ItsValuesReachRanksOrAreRefused) {
  RankConfig config;
  config.size = 2;
  config.nics = {{.device = "", .address = "127.0.0.1"}};
  config.workload = exchanges(123, 45);
  const auto read = rankConfigFromJson(toJson(config));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, config);
  EXPECT_NE(read->workload, exchanges(123, 46));
  const auto whyNot = [&](auto change) {
    nlohmann::json changed = toJson(config);
    change(changed);
    return std::string(rankConfigFromJson(changed).status().message());
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(whyNot([](auto& json) { json["own"]["size"] = 0; }),
              HasSubstr("configuration.own.size: expected 1 to"));
  EXPECT_THAT(whyNot([](auto& json) { json["own"]["exchanges"] = (std::int64_t{1} << 32) + 1; }),
              HasSubstr("configuration.own.exchanges: "));
  EXPECT_THAT(whyNot([](auto& json) { json["own"]["exchanges"] = "many"; }),
              HasSubstr("configuration.own.exchanges: expected an integer"));
  EXPECT_THAT(whyNot([](auto& json) { json["own"].erase("size"); }), HasSubstr("size"));
  EXPECT_THAT(whyNot([](auto& json) { json["own"]["more"] = 1; }), HasSubstr("configuration.own"));
  EXPECT_THAT(whyNot([](auto& json) { json["workload"]["kind"] = "training"; }),
              HasSubstr("a workload training has no values of its own"));
  EXPECT_THAT(whyNot([](auto& json) { json["workload"]["kind"] = "prayer"; }),
              HasSubstr("kind: expected one of"));
  EXPECT_THAT(whyNot([](auto& json) {
                json["workload"]["kind"] = "command";
                json["own"] = nullptr;
              }),
              HasSubstr("has no ranks"));
  EXPECT_THAT(whyNot([](auto& json) { json["size"] = 3; }), HasSubstr("odd"));
}

}  // namespace
}  // namespace faultline::workload
