#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "injector/verbs/held_queue.h"
#include "injector/verbs/send_log.h"

namespace faultline::injector::verbs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TimePoint at(int ms) { return TimePoint(std::chrono::milliseconds(ms)); }

std::vector<int> taken(HeldQueue<int>& queue, TimePoint now, std::size_t most = 100) {
  std::vector<int> items;
  const std::size_t count =
      queue.take(now, most, [&](const auto& held) { items.push_back(held.item); });
  EXPECT_EQ(count, items.size());
  return items;
}

TEST(HeldQueueTest, GivesWhatIsDueAndNoMoreThanAskedFor) {
  HeldQueue<int> queue(10);
  EXPECT_TRUE(queue.empty());
  queue.push(1, 7, at(0), at(10));
  queue.push(2, 7, at(0), at(20));
  queue.push(3, 8, at(0), at(10));
  EXPECT_EQ(queue.nextDue(), at(10));
  EXPECT_THAT(taken(queue, at(9)), IsEmpty());
  EXPECT_THAT(taken(queue, at(10), 1), ElementsAre(1));
  EXPECT_THAT(taken(queue, at(10)), ElementsAre(3));
  EXPECT_THAT(taken(queue, at(20)), ElementsAre(2));
  EXPECT_TRUE(queue.empty());
}

TEST(HeldQueueTest, NothingPassesWhatIsHeldOfItsQueuePair) {
  HeldQueue<int> queue(10);
  queue.push(1, 7, at(0), at(50));
  queue.push(2, 7, at(0), at(0));  // waits for 1
  queue.push(3, 8, at(0), at(0));  // does not
  EXPECT_TRUE(queue.holds(7));
  EXPECT_FALSE(queue.holds(9));
  EXPECT_THAT(taken(queue, at(1)), ElementsAre(3));
  EXPECT_THAT(taken(queue, at(50)), ElementsAre(1, 2));
}

TEST(HeldQueueTest, ReleasedAtOnceInOrder) {
  HeldQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) queue.push(i, 1, at(0), at(1000));
  EXPECT_EQ(queue.room(), 0u);
  queue.releaseAll();
  EXPECT_THAT(taken(queue, at(0)), ElementsAre(0, 1, 2));
  EXPECT_EQ(queue.room(), 3u);
}

TEST(HeldQueueTest, WhatBelongsToAQueuePairGoesWithIt) {
  HeldQueue<int> queue(10);
  for (int i = 0; i < 6; ++i) queue.push(i, static_cast<std::uint32_t>(i % 2), at(0), at(1));
  std::vector<int> dropped;
  queue.drop(1, [&](const auto& held) { dropped.push_back(held.item); });
  EXPECT_THAT(dropped, ElementsAre(1, 3, 5));
  EXPECT_THAT(taken(queue, at(1)), ElementsAre(0, 2, 4));
}

TEST(HeldQueueTest, AllCanBeDroppedAndTheirPlacesAreFreeAgain) {
  HeldQueue<int> queue(6);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 6; ++i) queue.push(i, static_cast<std::uint32_t>(i % 4), at(0), at(1));
    int dropped = 0;
    queue.dropAll([&](const auto&) { ++dropped; });
    EXPECT_EQ(dropped, 6);
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(queue.holds(0));
  }
  queue.push(1, 1, at(0), at(1));
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.room(), 6u);
  EXPECT_FALSE(queue.holds(1));
}

// As deep as completion queues get. What looks through all of them is a thousand times slower with
// a thousand times as many.
TEST(HeldQueueTest, WhatACallCostsDoesNotDependOnHowManyAreHeld) {
  const auto cost = [](int held) {
    HeldQueue<int> queue(1 << 15);
    for (int i = 0; i < held; ++i) {
      queue.push(i, static_cast<std::uint32_t>(i % 64), at(0), at(1000));
    }
    Duration least = Duration::max();
    for (int attempt = 0; attempt < 20; ++attempt) {
      const TimePoint begin = now();
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(queue.holds(99));
        queue.push(i, 99, at(0), at(1));
        EXPECT_EQ(queue.take(at(2), 16, [](const auto&) {}), 1u);
        EXPECT_EQ(queue.nextDue(), at(1000));
      }
      least = std::min(least, now() - begin);
    }
    return least;
  };
  EXPECT_LT(cost(16'384), 50 * cost(16));
}

// Random pushes, takes and drops from seeds: nothing is lost, doubled, early, late, or out of its
// pair's order.
TEST(HeldQueueTest, KeepsOrderForAllSeeds) {
  /// What a plain list holds: by when it is due, then by age.
  using Entry = std::tuple<TimePoint, int, std::uint32_t>;  // due, number, queue pair
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    HeldQueue<int> queue(16);
    std::set<Entry> list;
    std::map<std::uint32_t, TimePoint> last;  // due, of a queue pair's youngest
    int clock = 0, number = 0;
    const auto isNext = [&](const auto& held) {
      ASSERT_FALSE(list.empty());
      EXPECT_EQ(Entry(held.due, held.item, held.queuePair), *list.begin());
      list.erase(list.begin());
    };
    for (int step = 0; step < 300; ++step) {
      clock += static_cast<int>(random.below(3));
      // Numbers of their own, or with places in common: there are 16.
      const auto pair = static_cast<std::uint32_t>(random.below(6) * (seed % 2 == 0 ? 1 : 8));
      if (random.below(2) == 0 && queue.room() > 0) {
        TimePoint due = at(clock + static_cast<int>(random.below(20)));
        queue.push(number, pair, at(clock), due);
        if (last.contains(pair)) due = std::max(due, last[pair]);
        last[pair] = due;
        list.emplace(due, number++, pair);
      } else if (random.below(10) == 0) {
        std::vector<Entry> dropped;
        queue.drop(pair, [&](const auto& held) {
          dropped.emplace_back(held.due, held.item, held.queuePair);
        });
        EXPECT_TRUE(std::ranges::is_sorted(dropped));
        for (const Entry& entry : dropped) EXPECT_EQ(list.erase(entry), 1u);
        last.erase(pair);
        EXPECT_TRUE(std::ranges::none_of(list, [&](const Entry& entry) {
          return std::get<2>(entry) == pair;
        })) << "some of it is still there";
      } else {
        const std::size_t most = random.below(5);
        const std::size_t taken = queue.take(at(clock), most, isNext);
        if (taken < most && !list.empty()) {
          EXPECT_GT(std::get<0>(*list.begin()), at(clock)) << "it was due";
        }
      }
      ASSERT_EQ(queue.size(), list.size());
      if (!queue.empty()) {
        EXPECT_EQ(queue.nextDue(), std::get<0>(*list.begin()));
      }
    }
    queue.releaseAll();
    std::vector<int> numbers;
    queue.take(at(clock), 1000, [&](const auto& held) { numbers.push_back(held.item); });
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
    EXPECT_EQ(numbers.size(), list.size());
  }
}

/// Bytes of what a success of this request stands for, oldest first; none when it is not known.
std::vector<std::uint64_t> carriedBy(SendLog& log, std::uint64_t work_request) {
  std::vector<std::uint64_t> bytes;
  const bool known = log.complete(
      work_request, [&](const SendLog::Entry& entry) { bytes.push_back(entry.bytes); });
  EXPECT_EQ(known, !bytes.empty());
  return bytes;
}

SendLog::Entry request(std::uint64_t id, std::uint64_t bytes, bool signalled = true) {
  return {id, bytes, at(static_cast<int>(id)), signalled};
}

TEST(SendLogTest, ACompletionStandsForWhatWasPostedUpToIt) {
  SendLog log(5);
  log.add(request(1, 10, false));
  log.add(request(1, 20, false));
  log.add(request(1, 30));
  log.add(request(2, 5));
  EXPECT_THAT(carriedBy(log, 1), ElementsAre(10, 20, 30));
  EXPECT_THAT(carriedBy(log, 2), ElementsAre(5));
  EXPECT_THAT(carriedBy(log, 2), IsEmpty());
}

TEST(SendLogTest, SaysWhenEachWasPosted) {
  SendLog log(4);
  log.add(request(3, 10, false));
  log.add(request(7, 10));
  std::vector<TimePoint> posted;
  log.complete(7, [&](const SendLog::Entry& entry) { posted.push_back(entry.posted); });
  EXPECT_THAT(posted, ElementsAre(at(3), at(7)));
}

TEST(SendLogTest, OneThatWasPostedBeforeTheLogBeganIsUnknown) {
  SendLog log(4);
  log.add(request(5, 100));
  EXPECT_THAT(carriedBy(log, 4), IsEmpty());
  EXPECT_EQ(log.size(), 1u);
  EXPECT_THAT(carriedBy(log, 5), ElementsAre(100));
}

TEST(SendLogTest, ALaterCompletionStandsForThoseSkippedToo) {
  SendLog log(4);
  for (std::uint64_t i = 0; i < 3; ++i) log.add(request(i, 10));
  EXPECT_THAT(carriedBy(log, 2), ElementsAre(10, 10, 10));
  EXPECT_EQ(log.size(), 0u);
}

TEST(SendLogTest, EqualNamesAreTakenInOrder) {
  SendLog log(4);
  log.add(request(0, 10));
  log.add(request(0, 20));
  EXPECT_THAT(carriedBy(log, 0), ElementsAre(10));
  EXPECT_THAT(carriedBy(log, 0), ElementsAre(20));
}

TEST(SendLogTest, TakesBackTheLatestAndForgetsTheOldest) {
  SendLog log(3);
  for (std::uint64_t i = 1; i <= 4; ++i) log.add(request(i, 10 * i));
  EXPECT_EQ(log.size(), 3u);
  EXPECT_THAT(carriedBy(log, 1), IsEmpty());
  log.takeBack(1);
  EXPECT_THAT(carriedBy(log, 4), IsEmpty());
  EXPECT_THAT(carriedBy(log, 3), ElementsAre(20, 30));
  log.add(request(5, 50));
  log.takeBack(5);
  EXPECT_EQ(log.size(), 0u);
}

TEST(SendLogTest, WhatFailedIsNotCarriedWhateverComesAfterIt) {
  SendLog log(4);
  log.add(request(0, 9));
  EXPECT_THAT(carriedBy(log, 0), ElementsAre(9));
  log.add(request(1, 10, false));
  log.add(request(2, 20, false));  // fails, and says so
  log.add(request(3, 30));
  log.add(request(4, 40));
  log.fail(2);
  log.fail(2);
  log.fail(77);
  EXPECT_EQ(log.size(), 3u);
  log.fail(3);
  EXPECT_THAT(carriedBy(log, 3), IsEmpty());
  EXPECT_THAT(carriedBy(log, 4), ElementsAre(10, 40));
}

TEST(SendLogTest, IsEmptyOnceCleared) {
  SendLog log(2);
  log.add(request(1, 10));
  log.add(request(2, 5, false));
  log.clear();
  EXPECT_EQ(log.size(), 0u);
  log.add(request(1, 10));
  EXPECT_THAT(carriedBy(log, 1), ElementsAre(10));
}

// Against a plain list, from seeds.
TEST(SendLogTest, DoesWhatAListDoesForAllSeeds) {
  constexpr std::size_t kCapacity = 8;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SendLog log(kCapacity);
    std::vector<SendLog::Entry> list;
    std::uint64_t bytes = 0;  // tells which is which
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t id = random.below(6);
      const auto named = [&](const SendLog::Entry& entry) { return entry.workRequest == id; };
      switch (random.below(8)) {
        case 0: {
          std::vector<std::uint64_t> expected;
          const auto end = std::ranges::find_if(
              list, [&](const SendLog::Entry& entry) { return entry.signalled && named(entry); });
          if (end != list.end()) {
            for (auto one = list.begin(); one <= end; ++one) expected.push_back(one->bytes);
            list.erase(list.begin(), end + 1);
          }
          EXPECT_EQ(carriedBy(log, id), expected);
          break;
        }
        case 1:
          log.fail(id);
          if (const auto failed = std::ranges::find_if(list, named); failed != list.end()) {
            list.erase(failed);
          }
          break;
        case 2: {
          const std::size_t count = random.below(3);
          log.takeBack(count);
          list.resize(list.size() - std::min(count, list.size()));
          break;
        }
        default:
          list.push_back(request(id, ++bytes, random.below(2) == 0));
          log.add(list.back());
          if (list.size() > kCapacity) list.erase(list.begin());
      }
      ASSERT_EQ(log.size(), list.size());
    }
  }
}

}  // namespace

}  // namespace faultline::injector::verbs
