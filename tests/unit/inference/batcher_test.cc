#include "harness/inference/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace faultline::inference {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Batcher::Step::Kind;
using Role = Batcher::Role;

constexpr Batcher::Limits kWide{.batch = 8, .prefillTokens = 100, .kvTokens = 1000};

Request request(int id, int prompt, int output) {
  return {.id = id, .arrival = 0, .prompt = prompt, .output = output};
}

TEST(BatcherTest, WhoComesIsServedBeforeWhoIsUnderWay) {
  Batcher batcher(Role::kBoth, kWide);
  EXPECT_EQ(batcher.next().kind, Kind::kNone);
  batcher.arrive(request(0, 10, 3));
  Batcher::Step step = batcher.next();
  EXPECT_EQ(step.kind, Kind::kPrefill);
  EXPECT_THAT(step.tokens, ElementsAre(10));
  step = batcher.next();
  EXPECT_EQ(step.kind, Kind::kDecode);
  EXPECT_THAT(step.tokens, ElementsAre(11));
  EXPECT_THAT(step.ends, IsEmpty());
  batcher.arrive(request(1, 20, 2));
  step = batcher.next();
  EXPECT_EQ(step.kind, Kind::kPrefill);
  EXPECT_THAT(step.ids, ElementsAre(1));
  step = batcher.next();
  EXPECT_EQ(step.kind, Kind::kDecode);
  EXPECT_THAT(step.ids, ElementsAre(0, 1));
  EXPECT_THAT(step.tokens, ElementsAre(12, 21));
  EXPECT_THAT(step.ends, ElementsAre(0, 1));
  EXPECT_EQ(batcher.next().kind, Kind::kNone);
}

TEST(BatcherTest, APrefillStepHasSoManyTokensOrOnePrompt) {
  Batcher batcher(Role::kBoth, kWide);
  for (int id = 0; id < 3; ++id) batcher.arrive(request(id, 40, 2));
  batcher.arrive(request(3, 300, 2));
  EXPECT_THAT(batcher.next().ids, ElementsAre(0, 1));
  EXPECT_THAT(batcher.next().ids, ElementsAre(2));
  EXPECT_THAT(batcher.next().ids, ElementsAre(3));
}

TEST(BatcherTest, NobodyBeginsWithoutRoomForAllOfHisTokens) {
  Batcher batcher(Role::kBoth, {.batch = 8, .prefillTokens = 1000, .kvTokens = 30});
  batcher.arrive(request(0, 10, 5));
  batcher.arrive(request(1, 10, 6));
  EXPECT_THAT(batcher.next().ids, ElementsAre(0));
  for (int token = 0; token < 4; ++token) EXPECT_EQ(batcher.next().kind, Kind::kDecode);
  EXPECT_THAT(batcher.next().ids, ElementsAre(1));
}

TEST(BatcherTest, SoManyAreUnderWayAtMost) {
  Batcher batcher(Role::kBoth, {.batch = 2, .prefillTokens = 1000, .kvTokens = 1000});
  for (int id = 0; id < 3; ++id) batcher.arrive(request(id, 10, 2));
  EXPECT_THAT(batcher.next().ids, ElementsAre(0, 1));
  EXPECT_EQ(batcher.next().kind, Kind::kDecode);
  EXPECT_THAT(batcher.next().ids, ElementsAre(2));
}

TEST(BatcherTest, PrefillAloneIsOverWithTheFirstToken) {
  Batcher batcher(Role::kPrefill, kWide);
  batcher.arrive(request(0, 10, 5));
  const Batcher::Step step = batcher.next();
  EXPECT_THAT(step.ends, ElementsAre(0));
  EXPECT_EQ(batcher.next().kind, Kind::kNone);
}

TEST(BatcherTest, DecodeHasRoomForWhatIsOnItsWay) {
  Batcher batcher(Role::kDecode, {.batch = 2, .prefillTokens = 1, .kvTokens = 1000});
  batcher.expect(request(0, 10, 3));
  EXPECT_EQ(batcher.next().kind, Kind::kNone);
  batcher.expect(request(1, 10, 3));
  EXPECT_FALSE(batcher.hasRoomFor(request(2, 10, 3)));
  batcher.arrive(request(0, 10, 3));
  EXPECT_THAT(batcher.next().ids, ElementsAre(0));
  EXPECT_THAT(batcher.next().ends, ElementsAre(0));
  EXPECT_TRUE(batcher.hasRoomFor(request(2, 10, 3)));
  EXPECT_FALSE(batcher.hasRoomFor(request(2, 1000, 3)));
}

// Whatever comes: each request has one prefill, a decode step for each further token, and an end;
// limits hold.
TEST(BatcherTest, EveryRequestGetsEveryTokenOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Batcher::Limits limits{.batch = 1 + static_cast<int>(random.below(6)),
                                 .prefillTokens = 1 + static_cast<int>(random.below(60)),
                                 .kvTokens = 40 + static_cast<std::int64_t>(random.below(200))};
    Batcher batcher(Role::kBoth, limits);
    constexpr int kRequests = 40;
    std::map<int, Request> requests;
    std::map<int, int> tokens;
    std::set<int> ended;
    for (int steps = 0; std::ssize(ended) < kRequests; ++steps) {
      ASSERT_LT(steps, 10'000) << "seed " << seed;
      while (std::ssize(requests) < kRequests && random.below(3) == 0) {
        const int id = static_cast<int>(std::ssize(requests));
        requests[id] = request(id, 1 + static_cast<int>(random.below(30)),
                               1 + static_cast<int>(random.below(10)));
        batcher.arrive(requests[id]);
      }
      const Batcher::Step step = batcher.next();
      ASSERT_LE(std::ssize(step.ids), limits.batch) << "seed " << seed;
      std::int64_t kv = 0;
      for (std::size_t i = 0; i < step.ids.size(); ++i) {
        const Request& one = requests[step.ids[i]];
        const int had = tokens[one.id]++;
        ASSERT_EQ(step.kind == Kind::kPrefill, had == 0) << "seed " << seed;
        ASSERT_EQ(step.tokens[i], one.prompt + had) << "seed " << seed;
        kv += one.prompt + one.output;
      }
      ASSERT_LE(kv, limits.kvTokens) << "seed " << seed;
      for (const int id : step.ends) {
        ASSERT_TRUE(ended.insert(id).second) << "seed " << seed;
        ASSERT_EQ(tokens[id], requests[id].output) << "seed " << seed;
      }
    }
    EXPECT_EQ(batcher.next().kind, Kind::kNone);
  }
}

}  // namespace
}  // namespace faultline::inference
