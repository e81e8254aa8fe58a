#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/listing.h"
#include "resilient_ccl/schedule/verifier.h"
#include "resilient_ccl/schedule/written/read_schedule.h"
#include "resilient_ccl/schedule/written/schedule_json.h"

// Schedules that somebody wrote down, in JSON and in MSCCL XML.

namespace faultline::schedule {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json jsonOf(const Schedule& schedule, std::int64_t maxOps = -1) {
  json all = headAsJson(schedule);
  all["lanes"] = json::array();
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int lane = 0; lane < schedule.lanes(); ++lane) {
      all["lanes"].push_back(laneAsJson(schedule, rank, lane, maxOps));
    }
  }
  return all;
}

std::string listed(const Schedule& schedule) {
  std::string text;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int lane = 0; lane < schedule.lanes(); ++lane) {
      text += listLane(schedule, rank, lane, -1);
    }
  }
  return text;
}

std::string problemOf(const Schedule& schedule) {
  const auto report = verifySchedule(schedule);
  if (!report.ok()) return report.status().toString();
  return report->ok() ? "" : report->problems.front().text;
}

/// What is wrong with the text; "" for nothing.
std::string mistake(const std::string& text) {
  const auto source = readSchedule(text);
  return source.ok() ? "" : source.status().message();
}

json ringOfFour() {
  return jsonOf(**makeSchedule("ring", {.ranks = 4, .elements = 64, .segments = 2}));
}

/// The first operation of rank 1's first lane, changed.
std::string withOp(const char* key, const json& value) {
  json ring = ringOfFour();
  for (json& lane : ring["lanes"]) {
    if (lane["rank"] == 1 && lane["lane"] == 0) lane["ops"][0][key] = value;
  }
  return ring.dump();
}

class WrittenAlgorithm : public testing::TestWithParam<std::string> {};

TEST_P(WrittenAlgorithm, ComesBackFromJsonAndFitsOtherSizes) {
  for (const int ranks : {2, 4, 5}) {
    ScheduleRequest request{.ranks = ranks, .elements = 5040 * 4, .segments = 3, .window = 2};
    if (ranks == 4) {
      request.bandwidths = std::vector<double>(4, 1.0);
      request.bandwidths.send[1] = request.bandwidths.receive[1] = 0.5;
    }
    const auto original = makeSchedule(GetParam(), request);
    ASSERT_TRUE(original.ok()) << original.status().message();
    const auto source = readSchedule(jsonOf(**original).dump());
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ((*source)->ranks(), ranks);
    EXPECT_EQ((*source)->algorithm(), (*original)->algorithm());
    EXPECT_EQ((*source)->collective(), (*original)->collective());
    const std::int64_t data = dataElements((*original)->collective(), (*original)->elements());
    const auto same = (*source)->make(data);
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(listed(**same), listed(**original));
    EXPECT_EQ((*same)->elements(), (*original)->elements());
    EXPECT_TRUE(std::ranges::equal((*same)->layers(), (*original)->layers()));
    for (const std::int64_t elements :
         {(*source)->chunks(), (*source)->chunks() + 1, 2 * data + 7, std::int64_t{0}}) {
      const auto other = (*source)->make(elements);
      ASSERT_TRUE(other.ok());
      EXPECT_EQ(problemOf(**other), "") << ranks << " ranks, " << elements << " elements";
      if (hasOutput((*source)->collective())) continue;  // rounded up
      EXPECT_EQ((*other)->elements(), elements);
    }
  }
}

std::vector<std::string> allNames() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : allAlgorithms()) names.emplace_back(algorithm.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, WrittenAlgorithm, testing::ValuesIn(allNames()),
                         [](const auto& algorithm) { return algorithm.param; });

TEST(WrittenTest, ChunksAreTheLargestUnitOfAllPieces) {
  const auto source = readSchedule(ringOfFour().dump());
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->chunks(), 8);  // four ranks, two segments
  EXPECT_TRUE(fitsData(**source, 8));
  EXPECT_TRUE(fitsData(**source, 9));
  EXPECT_FALSE(fitsData(**source, 7));
}

TEST(WrittenTest, AnOutputOfItsOwnHasWholeChunksOnly) {
  const auto source = readSchedule(
      jsonOf(**makeSchedule("pairwise_all_to_all", {.ranks = 4, .elements = 64})).dump());
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(fitsData(**source, 2 * (*source)->chunks()));
  EXPECT_FALSE(fitsData(**source, 2 * (*source)->chunks() + 1));
}

/// With other sizes such chunks and blocks would have different borders.
TEST(WrittenTest, ChunksThatRanksCannotShareEvenlyAreRefused) {
  // (Our own all_to_all makes its blocks equal.)
  for (const char* algorithm : {"ring_all_gather", "ring_reduce_scatter"}) {
    const auto uneven = makeSchedule(algorithm, {.ranks = 4, .elements = 6});
    ASSERT_TRUE(uneven.ok()) << uneven.status().message();
    EXPECT_EQ(problemOf(**uneven), "") << "of itself it is right";
    EXPECT_THAT(mistake(jsonOf(**uneven).dump()),
                HasSubstr("6 chunks of the data, which 4 ranks cannot share evenly: write it for a "
                          "multiple of 4 elements"))
        << algorithm;
    EXPECT_EQ(mistake(jsonOf(**makeSchedule(algorithm, {.ranks = 4, .elements = 8})).dump()), "");
  }
  EXPECT_EQ(mistake(jsonOf(**makeSchedule("ring", {.ranks = 4, .elements = 6})).dump()), "");
}

TEST(WrittenTest, TheDigestIsOfTheText) {
  const std::string ring = ringOfFour().dump();
  EXPECT_EQ((*readSchedule(ring))->digest(), (*readSchedule(ring))->digest());
  EXPECT_NE((*readSchedule(ring))->digest(), (*readSchedule(ring + " "))->digest());
  EXPECT_NE((*readSchedule(ring))->digest(), 0u);
}

TEST(WrittenTest, XmlOfOthersIsReadToo) {
  std::ifstream file(FAULTLINE_SOURCE_DIR "/tests/data/fuzz/msccl/fused_ring.xml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto source = readSchedule(text);
  if (!source.ok() && source.status().code() == Code::kUnsupported) {
    GTEST_SKIP() << source.status().message();
  }
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ((*source)->algorithm(), "ring_fused");
  EXPECT_EQ((*source)->ranks(), 4);
  EXPECT_EQ((*source)->chunks(), 4);
  EXPECT_EQ(problemOf(**(*source)->make(10)), "");
}

TEST(WrittenTest, MistakesNameTheLineOrTheOperation) {
  EXPECT_THAT(mistake(""), HasSubstr("neither MSCCL XML"));
  EXPECT_THAT(mistake("ring"), HasSubstr("neither MSCCL XML"));
  EXPECT_THAT(mistake("{\n\"ranks\": 4,\n]"), HasSubstr("line 3"));
  EXPECT_THAT(mistake("{}"), HasSubstr("ranks: a whole number from 1 to 4096"));
  json ring = ringOfFour();
  ring["collective"] = "all_gossip";
  EXPECT_THAT(mistake(ring.dump()), HasSubstr("there is no 'all_gossip'"));
  ring = ringOfFour();
  ring["lanes"].erase(0);
  EXPECT_THAT(mistake(ring.dump()), HasSubstr("4 ranks have equally many"));
  ring = ringOfFour();
  ring["lanes"][1] = ring["lanes"][0];
  EXPECT_THAT(mistake(ring.dump()), HasSubstr("rank 0 lane 0: is there twice"));
  ring = ringOfFour();
  ring["layers"] = {0, 0};
  EXPECT_THAT(mistake(ring.dump()), HasSubstr("layers: each of the 2 lanes once"));
  EXPECT_THAT(mistake(withOp("kind", "teleport")), HasSubstr("rank 1 lane 0 op 0: kind: send,"));
  EXPECT_THAT(mistake(withOp("peer", 4)), HasSubstr("rank 1 lane 0 op 0: peer: a whole number"));
  EXPECT_THAT(mistake(withOp("peer", 1)), HasSubstr("peer: is the rank itself"));
  EXPECT_THAT(mistake(withOp("peer", 18446744073709551615u)), HasSubstr("peer: a whole number"));
  EXPECT_THAT(mistake(withOp("offset", -1)), HasSubstr("offset: a whole number from 0 to 64"));
  EXPECT_THAT(mistake(withOp("count", 65)), HasSubstr("op 0: count: a whole number"));
  EXPECT_THAT(mistake(withOp("after", 1000)), HasSubstr("op 0: after: there is no such op"));
  EXPECT_THAT(mistake(withOp("waits", {{{"lane", 0}, {"op", 1000}, {"count", 1}}})),
              HasSubstr("op 0: waits: there is no such op"));
  EXPECT_THAT(mistake(withOp("waits", {{{"lane", 0}, {"op", 0}, {"count", 60}}})),
              HasSubstr("that operation has fewer elements"));
  EXPECT_THAT(mistake(withOp("waits", 3)), HasSubstr("waits: a list of at most 2"));
}

TEST(WrittenTest, OperationsThatWereLeftOutAreMissed) {
  const auto ring = makeSchedule("ring", {.ranks = 4, .elements = 64});
  EXPECT_THAT(mistake(jsonOf(**ring, 2).dump()), HasSubstr("has 2 of "));
}

TEST(WrittenTest, WhatIsReadMayBeWrong) {
  json ring = ringOfFour();
  for (json& lane : ring["lanes"]) {  // a contribution less
    for (json& op : lane["ops"]) {
      if (lane["rank"] == 2 && lane["lane"] == 1 && op["kind"] == "recvReduce") op["kind"] = "recv";
    }
  }
  const auto source = readSchedule(ring.dump());
  ASSERT_TRUE(source.ok());
  EXPECT_NE(problemOf(**(*source)->make((*source)->chunks())), "");
}

}  // namespace
}  // namespace faultline::schedule
