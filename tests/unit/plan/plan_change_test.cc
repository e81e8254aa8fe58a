#include "resilient_ccl/plan/plan_change.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/random.h"

namespace faultline::plan {
namespace {

struct Letter {
  int from, to;
  ChangeMessage message;
};

struct Outbox : PlanChangeIo {
  Outbox(int number, std::vector<Letter>& all) : from(number), letters(all) {}
  void send(int rank, const ChangeMessage& message) override {
    letters.push_back({from, rank, message});
  }
  int from;
  std::vector<Letter>& letters;
};

/// Ranks that issue operations whenever they like, over a network that delivers in any order, and
/// some things twice.
class World {
 public:
  World(int ranks, std::uint64_t seed) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      outboxes_.push_back(std::make_unique<Outbox>(rank, letters_));
      ranks_.push_back(std::make_unique<PlanChange>(rank, ranks, kFirstPlan, *outboxes_.back()));
      issued_.push_back(0);
    }
  }

  static constexpr std::uint64_t kFirstPlan = 1000;

  PlanChange& rank(int number) { return *ranks_[number]; }
  std::vector<Letter>& letters() { return letters_; }

  void deliver(std::size_t which) {
    const Letter letter = letters_[which];
    if (random_.below(4) != 0) {  // else it will come again
      letters_[which] = letters_.back();
      letters_.pop_back();
    }
    ranks_[letter.to]->onMessage(letter.from, letter.message);
  }

  void issue(int number) {
    if (!ranks_[number]->mayIssue()) return;
    const auto [operation, plan] = ranks_[number]->issue();
    ASSERT_EQ(operation, issued_[number]++);
    const auto [entry, isNew] = planOf_.try_emplace(operation, plan);
    ASSERT_EQ(entry->second, plan) << "rank " << number << " mixes plans at " << operation;
  }

  void step() {
    const auto which = static_cast<int>(random_.below(ranks_.size()));
    if (!letters_.empty() && random_.below(3) == 0) return deliver(random_.below(letters_.size()));
    if (random_.below(20) == 0) {
      now_ += random_.below(300) * 1ms;
      for (auto& one : ranks_) one->onTick(now_);
      return;
    }
    if (random_.below(15) == 0) ranks_[0]->begin(++plans_ + kFirstPlan, now_);
    if (random_.below(15) == 0) ranks_[0]->begin(ranks_[0]->plan(), now_);
    // Once everybody has stopped; or before, when that is given up.
    if (random_.below(10) == 0) endPause(random_.below(20) == 0);
    issue(which);
  }

  void endPause(bool early) {
    std::uint64_t stopped = ~std::uint64_t{0};
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      stopped = std::min(stopped, ranks_[i]->pauses());
      if (!ranks_[i]->paused() || early) continue;
      const auto [place, isNew] = pausedAt_.try_emplace(ranks_[i]->pauses(), issued_[i]);
      ASSERT_EQ(place->second, issued_[i]) << "not all stop before the same operation";
    }
    if (early) stopped = ranks_[0]->pauses();
    for (auto& one : ranks_) one->resume(stopped);
    pauses_ = std::max(pauses_, stopped);
  }

  /// Everything that is on its way arrives, and everybody goes on issuing.
  void settle() {
    for (int round = 0; round < 200; ++round) {
      endPause(false);
      while (!letters_.empty()) deliver(random_.below(letters_.size()));
      const auto furthest = *std::max_element(issued_.begin(), issued_.end());
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        while (issued_[i] < furthest + 1 && ranks_[i]->mayIssue()) issue(static_cast<int>(i));
      }
    }
  }

  TimePoint now_{};
  std::uint64_t plans_ = 0;
  std::uint64_t pauses_ = 0;  // over

 private:
  Random random_;
  std::vector<Letter> letters_;
  std::vector<std::unique_ptr<Outbox>> outboxes_;
  std::vector<std::unique_ptr<PlanChange>> ranks_;
  std::vector<std::uint64_t> issued_;
  std::map<std::uint64_t, std::uint64_t> pausedAt_;  // operations issued, by pause
  std::map<std::uint64_t, std::uint64_t> planOf_;    // of each operation, at whoever came first
};

TEST(PlanChangeTest, NoOperationIsDoneByTwoPlansAndNobodyIsHeldForEver) {
  std::uint64_t committed = 0, abandoned = 0, pauses = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 1 + static_cast<int>(seed % 6);
    World world(ranks, seed);
    for (int i = 0; i < 600 && !HasFatalFailure(); ++i) world.step();
    world.settle();
    ASSERT_FALSE(HasFatalFailure());
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_FALSE(world.rank(rank).underWay());
      ASSERT_TRUE(world.rank(rank).mayIssue());
      ASSERT_EQ(world.rank(rank).plan(), world.rank(0).plan());
      ASSERT_EQ(world.rank(rank).committed(), world.rank(0).committed());
    }
    committed += world.rank(0).committed();
    abandoned += world.rank(0).abandoned();
    pauses += world.pauses_;
  }
  EXPECT_GT(pauses, 1000u);
  EXPECT_GT(committed, 1000u);
  EXPECT_GT(abandoned, 100u);
}

void deliverAll(World& world) {
  while (!world.letters().empty()) world.deliver(0);
}

TEST(PlanChangeTest, ItTakesEffectWhereTheFurthestRankStands) {
  World world(3, 1);
  for (int i = 0; i < 5; ++i) world.issue(1);
  world.issue(0);
  ASSERT_TRUE(world.rank(0).begin(7, world.now_));
  EXPECT_FALSE(world.rank(0).mayIssue());
  deliverAll(world);
  for (const int rank : {0, 2}) {
    for (std::uint64_t i = rank == 0 ? 1 : 0; i < 5; ++i) {
      EXPECT_EQ(world.rank(rank).issue().plan, World::kFirstPlan) << i;
    }
    EXPECT_EQ(world.rank(rank).issue().plan, 7u);
  }
  EXPECT_EQ(world.rank(1).issue().plan, 7u);
}

TEST(PlanChangeTest, ToThePlanInUseIsAPauseBeforeOneOperation) {
  World world(3, 1);
  for (int i = 0; i < 5; ++i) world.issue(1);
  ASSERT_TRUE(world.rank(0).begin(World::kFirstPlan, world.now_));
  deliverAll(world);
  EXPECT_TRUE(world.rank(1).paused());
  for (int rank = 0; rank < 3; ++rank) {
    const std::uint64_t before = rank == 1 ? 5 : 0;
    for (std::uint64_t i = before; i < 5; ++i) world.issue(rank);
    deliverAll(world);
    EXPECT_FALSE(world.rank(rank).mayIssue()) << "rank " << rank;
    EXPECT_EQ(world.rank(rank).pauses(), 1u);
    EXPECT_EQ(world.rank(rank).committed(), 0u) << "no change";
  }
  world.rank(2).resume(1);
  EXPECT_TRUE(world.rank(2).mayIssue());
  EXPECT_EQ(world.rank(2).issue().operation, 5u);
  // One that is over before it has come to somebody does not hold him.
  ASSERT_TRUE(world.rank(0).begin(World::kFirstPlan, world.now_));
  world.rank(1).resume(2);
  deliverAll(world);
  EXPECT_FALSE(world.rank(1).paused());
}

TEST(PlanChangeTest, AMissingAnswerAbandonsTheChangeAndNotTheJob) {
  World world(3, 2);
  ASSERT_TRUE(world.rank(0).begin(7, world.now_));
  std::erase_if(world.letters(), [](const Letter& letter) { return letter.to == 2; });
  deliverAll(world);
  EXPECT_FALSE(world.rank(1).mayIssue());
  world.rank(0).onTick(world.now_ + PlanChange::kPatience);
  deliverAll(world);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(world.rank(rank).mayIssue());
    EXPECT_EQ(world.rank(rank).plan(), World::kFirstPlan);
  }
  EXPECT_TRUE(world.rank(0).begin(8, world.now_)) << "the next one may begin";
}

}  // namespace
}  // namespace faultline::plan
