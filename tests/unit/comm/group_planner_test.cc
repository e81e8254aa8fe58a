#include "resilient_ccl/comm/group_planner.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {
namespace {

constexpr std::uint32_t kNumber = 7;

/// Ranks that call one collective after the other, over a network that delivers in any order, and
/// planners that take their time.
class World {
 public:
  World(int ranks, std::uint64_t seed) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank));
    for (auto& rank : ranks_) rank->start(ranks);
  }

  struct Letter {
    int from, to;
    PlanWord word;
  };
  struct Order {
    int rank;
    std::uint64_t hash;
    plan::HealthVector health;
    PlanKey key;
    Choice choice;
  };
  struct Used {
    PlanKey key;
    std::uint64_t plan = 0;
    std::uint64_t tried = 0;

    bool operator==(const Used&) const = default;
  };

  class Rank : public GroupPlannerIo {
   public:
    Rank(World& world, int number) : world_(world), number_(number) {}
    void start(int ranks) {
      planner_ = std::make_unique<GroupPlanner>(number_, ranks, kNumber, *this);
    }
    GroupPlanner& planner() { return *planner_; }

    void tell(int rank, const PlanWord& word) override {
      const auto parsed = PlanWord::parse(word.bytes());
      ASSERT_TRUE(parsed.has_value());
      world_.letters.push_back({number_, rank, *parsed});
    }
    void plan(std::uint64_t hash, const plan::HealthVector& health, const PlanKey& key,
              Choice choice) override {
      world_.orders.push_back({number_, hash, health, key, choice});
    }
    void failed(const Status& why) override {
      if (world_.failure.ok()) world_.failure = why;
    }

    std::size_t calls = 0;
    std::uint64_t epochs = 0;  // seen at a first use

   private:
    World& world_;
    const int number_;
    std::unique_ptr<GroupPlanner> planner_;
  };

  Rank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// The call of every rank at this place; some are not planned for.
  std::optional<PlanKey> callAt(std::size_t place) const {
    if (place % 5 == 4) return std::nullopt;
    return PlanKey{static_cast<std::int64_t>(100 * (place % 3)), 4, place % 4 == 1};
  }

  void deliver(std::size_t which) {
    const Letter letter = letters[which];
    letters[which] = letters.back();
    letters.pop_back();
    rank(letter.to).planner().onWord(letter.from, letter.word, now);
  }
  void deliverAll() {
    while (!letters.empty()) deliver(random_.below(letters.size()));
  }

  /// A plan whose hash says what it was made from.
  void makePlan(std::size_t which) {
    const Order order = orders[which];
    orders[which] = orders.back();
    orders.pop_back();
    PlannedProgram planned;
    planned.plan.predicted = predicted;
    planned.plan.hash = GroupPlanner::hashOf(
        static_cast<std::uint64_t>(order.key.elements) + (order.rank == liar ? 1 : 0),
        order.health);
    const Choice& choice = order.choice;
    if (choice != Choice{}) {
      planned.plan.hash += Random::mix(std::uint64_t{choice.algorithm} << 16 | choice.segments);
    }
    for (int i = 0; i < candidates && choice == Choice{}; ++i) {
      const auto place = static_cast<std::size_t>(i);
      planned.plan.candidates.push_back(
          {std::string(schedule::algorithms()[place].name), 1, 0.001 * (1 + i)});
    }
    rank(order.rank).planner().planned(order.hash, order.key, order.choice, planned);
  }

  /// Of the last candidate, while the health is what it was first.
  std::uint64_t bestHash(const PlanKey& key) const {
    const auto last = static_cast<std::uint64_t>(candidates - 1);
    return GroupPlanner::hashOf(static_cast<std::uint64_t>(key.elements), given) +
           Random::mix(last << 16 | 1);
  }

  void call(int number) {
    Rank& who = rank(number);
    const auto key = callAt(who.calls);
    const auto go = who.planner().next(key, now);
    if (!go) return;
    ASSERT_EQ(go->operation, who.calls);
    if (go->first) who.epochs = std::max(who.epochs, go->first->epoch);
    if (key) {
      // Of the candidates the last one is the fastest.
      const bool best = !go->planned.plan.candidates.empty()
                            ? candidates == 1
                            : go->planned.plan.hash == bestHash(*key);
      if (number == 0 && candidates > 0)
        who.planner().done(go->operation, now + (best ? 1ms : 2ms));
      if (number == 0 && go->first) (go->tried ? triedPlans : settledPlans) += 1;
      if (best && !go->tried) ++callsOfTheBest;
      ++plannedCalls;
      const Used mine{*key, go->planned.plan.hash, go->tried ? 1u : 0u};
      if (used.size() <= who.calls) used.resize(who.calls + 1);
      auto& all = used[who.calls];
      if (!all) all = mine;
      ASSERT_EQ(*all, mine) << "rank " << number << " mixes plans at " << who.calls;
    }
    ++who.calls;
  }

  void step(bool mayChange = true) {
    const std::uint64_t what = random_.below(8);
    if (what < 3 && !letters.empty()) return deliver(random_.below(letters.size()));
    if (what == 3 && !orders.empty()) return makePlan(random_.below(orders.size()));
    if (what == 4) {
      now += random_.below(100) * 1ms;
      if (mayChange && random_.below(20) == 0) given[random_.below(given.size())].send -= 10;
      for (auto& one : ranks_) one->planner().onTick(&given, now);
      return;
    }
    call(static_cast<int>(random_.below(ranks_.size())));
  }

  void settle(std::size_t target) {
    for (int round = 0; round < 3000; ++round) {
      deliverAll();
      while (!orders.empty()) makePlan(random_.below(orders.size()));
      now += 50ms;
      for (auto& one : ranks_) one->planner().onTick(&given, now);
      for (int i = 0; i < size(); ++i) {
        if (rank(i).calls < target) call(i);
      }
    }
  }

  std::vector<Letter> letters;
  std::vector<Order> orders;
  std::vector<std::optional<Used>> used;
  plan::HealthVector given;
  double predicted = 0;  // seconds, by all plans
  int candidates = 0;    // for each size
  int triedPlans = 0, settledPlans = 0, callsOfTheBest = 0, plannedCalls = 0;
  Status failure = okStatus();
  int liar = -1;
  TimePoint now{};

 private:
  Random random_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST(GroupPlannerTest, NoOperationIsDoneByTwoPlansAndNobodyWaitsForEver) {
  std::uint64_t changes = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 1 + static_cast<int>(seed % 5);
    World world(ranks, seed);
    world.given = plan::HealthVector(static_cast<std::size_t>(ranks));
    for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) world.step();
    std::size_t furthest = 0;
    for (int i = 0; i < ranks; ++i) furthest = std::max(furthest, world.rank(i).calls);
    world.settle(furthest + 20);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(world.failure.ok()) << world.failure.message();
    for (int i = 0; i < ranks; ++i) {
      ASSERT_EQ(world.rank(i).calls, furthest + 20) << "rank " << i << " is held";
      ASSERT_EQ(world.rank(i).planner().epoch(), world.rank(0).planner().epoch());
      ASSERT_EQ(world.rank(i).planner().health(), world.given);
    }
    changes += world.rank(0).planner().epoch();
  }
  EXPECT_GT(changes, 300u);
}

// The same while candidates are tried, which changes plans all the time.
TEST(GroupPlannerTest, TriesMixNoPlansAndEndWithTheFastest) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 1 + static_cast<int>(seed % 5);
    World world(ranks, seed);
    world.given = plan::HealthVector(static_cast<std::size_t>(ranks));
    world.candidates = 2 + static_cast<int>(seed % 3);
    const auto callUntil = [&](std::size_t calls) {
      for (int i = 0; i < 100'000 && world.rank(0).calls < calls; ++i) {
        world.step(/*mayChange=*/false);
        if (testing::Test::HasFatalFailure()) return;
      }
    };
    callUntil(500);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(world.failure.ok()) << world.failure.message();
    ASSERT_GE(world.rank(0).calls, 500u);
    EXPECT_GE(world.triedPlans, 3 * world.candidates) << "three sizes";
    EXPECT_GE(world.settledPlans, 3);
    EXPECT_EQ(world.rank(0).planner().epoch(), 0u) << "no change of health";
    world.plannedCalls = world.callsOfTheBest = 0;
    callUntil(700);
    ASSERT_GE(world.rank(0).calls, 700u);
    EXPECT_EQ(world.callsOfTheBest, world.plannedCalls);

    // What was found is of the health that was.
    world.given[0] = {512, 512};
    const int tried = world.triedPlans;
    world.settle(900);
    for (int i = 0; i < ranks; ++i) EXPECT_EQ(world.rank(i).calls, 900u);
    EXPECT_EQ(world.rank(0).planner().epoch(), 1u);
    EXPECT_GT(world.triedPlans, tried);
  }
}

TEST(GroupPlannerTest, PlansThatDifferEndTheJobWithBothHashes) {
  for (const int liar : {0, 1, 2}) {
    World world(3, 1);
    world.given = plan::HealthVector(3);
    world.liar = liar;
    world.settle(5);
    ASSERT_FALSE(world.failure.ok());
    const std::string message = world.failure.message();
    EXPECT_NE(message.find("operation 0 of communicator 7"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 0 has the plan"), std::string::npos) << message;
    for (const std::uint64_t lie : {0, 1}) {
      const auto hash = fmt::format("{:016x}", GroupPlanner::hashOf(lie, world.given));
      EXPECT_NE(message.find(hash), std::string::npos) << message;
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(world.rank(i).calls, 0u) << "nothing has begun";
  }
}

// The word that all agree on a plan, come when that plan has been replaced and all have agreed on
// the next one for the same operation.
TEST(GroupPlannerTest, AWordOfAnOldPlanDoesNotTakeTheNewOneBack) {
  World world(2, 1);
  world.given = plan::HealthVector(2);
  const auto callBoth = [&] {
    for (const int rank : {1, 0}) {
      world.call(rank);
      while (!world.orders.empty()) world.makePlan(0);
    }
  };
  callBoth();
  for (const int rank : {0, 1}) world.call(rank);  // both tell their plans
  ASSERT_EQ(world.letters.size(), 1u);
  world.deliver(0);
  ASSERT_EQ(world.letters.size(), 1u);
  const World::Letter late = world.letters[0];
  world.letters.clear();
  ASSERT_EQ(late.word.kind, PlanWord::Kind::kAgreed);

  world.given[1] = {512, 512};
  world.rank(0).planner().onTick(&world.given, world.now += 50ms);
  for (int i = 0; i < 20; ++i) {
    world.deliverAll();
    while (!world.orders.empty()) world.makePlan(0);
    world.rank(0).planner().onTick(&world.given, world.now += 1ms);
  }
  ASSERT_EQ(world.rank(1).planner().epoch(), 1u);
  callBoth();
  for (const int rank : {0, 1}) world.call(rank);
  world.deliverAll();
  world.letters.push_back(late);
  world.deliverAll();
  for (const int rank : {0, 1}) {
    if (world.rank(rank).calls == 0) world.call(rank);
    EXPECT_EQ(world.rank(rank).calls, 1u) << "rank " << rank;
  }
}

TEST(GroupPlannerTest, ACallThatNotAllMakeWaits) {
  World world(3, 1);
  world.given = plan::HealthVector(3);
  for (int round = 0; round < 50; ++round) {
    for (const int i : {0, 2}) world.call(i);
    while (!world.orders.empty()) world.makePlan(0);
    world.deliverAll();
  }
  EXPECT_EQ(world.rank(0).calls, 0u);
  EXPECT_EQ(world.rank(2).calls, 0u);
  world.settle(3);
  EXPECT_EQ(world.rank(0).calls, 3u);
}

TEST(GroupPlannerTest, OperationsGoOnWhileARankPlansAndOneThatNeverDoesIsNotWaitedFor) {
  World world(2, 1);
  world.given = plan::HealthVector(2);
  world.settle(60);  // all sizes are in use
  world.given[1] = {512, 512};
  const auto tick = [&] {
    world.now += 50ms;
    world.rank(0).planner().onTick(&world.given, world.now);
    world.deliverAll();
    std::erase_if(world.orders, [](const World::Order& order) { return order.rank == 1; });
    while (!world.orders.empty()) world.makePlan(0);
  };
  tick();
  for (int i = 0; i < 100; ++i) {
    tick();
    for (const int rank : {0, 1}) world.call(rank);
  }
  EXPECT_EQ(world.rank(1).calls, 160u) << "nobody is held by a change that is not ready";
  EXPECT_EQ(world.rank(1).planner().epoch(), 0u);
  for (int i = 0; i < 200; ++i) tick();
  world.settle(180);
  EXPECT_EQ(world.rank(1).calls, 180u);
}

/// What rank 0 takes the ports of four ranks for when those of rank 2 look half as fast in a ring,
/// and rank 3 has so much left of its rails; each call should take 10 ms and takes `taken`.
plan::HealthVector inferred(Duration taken, std::uint16_t live) {
  World world(4, 1);
  world.predicted = 0.01;
  std::vector<plan::Observation> seen(4, {.paths = std::vector<plan::PathRate>(4)});
  for (std::size_t from = 0; from < 4; ++from) {
    const std::size_t to = (from + 1) % 4;
    const auto share = static_cast<std::uint16_t>(from == 2 || to == 2 ? 512 : 1000);
    seen[from].paths[to].send = seen[from].paths[to].own = seen[to].paths[from].receive = share;
  }
  seen[3].live = live;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 4; ++i) {
      const std::size_t before = world.rank(i).calls;
      world.call(i);
      if (world.rank(i).calls > before) world.rank(i).planner().done(before, world.now + taken);
    }
    world.now += 50ms;
    for (int i = 0; i < 4 && round > 10; ++i) {
      world.rank(i).planner().observed(seen[static_cast<std::size_t>(i)]);
      world.rank(i).planner().onTick(nullptr, world.now);
    }
    world.deliverAll();
    while (!world.orders.empty()) world.makePlan(0);
  }
  return world.rank(1).planner().health();
}

TEST(GroupPlannerTest, WhileCallsTakeAsLongAsPlannedNoPortIsSlowerButLostRailsAreLost) {
  plan::HealthVector expected(4);
  EXPECT_EQ(inferred(10ms, plan::Health::kWhole), expected);
  expected[3] = {512, 512};
  EXPECT_EQ(inferred(10ms, 512), expected);
  plan::HealthVector slow(4);
  slow[2] = {512, 512};
  EXPECT_EQ(inferred(15ms, plan::Health::kWhole), slow);
}

TEST(GroupPlannerTest, HealthIsInferredFromWhatAllHaveSeen) {
  World world(4, 1);
  world.given = plan::HealthVector(4);
  std::vector<plan::Observation> seen(4, {.paths = std::vector<plan::PathRate>(4)});
  for (std::size_t from = 0; from < 4; ++from) {
    const std::size_t to = (from + 1) % 4;
    const auto share = static_cast<std::uint16_t>(from == 2 || to == 2 ? 512 : 1000);
    seen[from].paths[to].send = seen[from].paths[to].own = seen[to].paths[from].receive = share;
  }
  for (int round = 0; round < 20; ++round) {
    world.now += 50ms;
    for (int i = 0; i < 4; ++i) {
      world.rank(i).planner().observed(seen[static_cast<std::size_t>(i)]);
      world.rank(i).planner().onTick(nullptr, world.now);
    }
    world.deliverAll();
    while (!world.orders.empty()) world.makePlan(0);
    for (int i = 0; i < 4; ++i) world.call(i);
  }
  plan::HealthVector expected(4);
  expected[2] = {512, 512};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(world.rank(i).planner().health(), expected);
    EXPECT_EQ(world.rank(i).planner().epoch(), 1u);
  }
}

TEST(PlanWordTest, OnlyWholeWordsAreRead) {
  PlanWord word{.kind = PlanWord::Kind::kHealth, .about = 3, .count = 2};
  word.entries[1] = {5, 6, 7};
  const auto bytes = word.bytes();
  const auto parsed = PlanWord::parse(bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->about, 3u);
  EXPECT_EQ(parsed->entries[1].own, 7);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(PlanWord::parse(bytes.first(length)).has_value()) << length;
  }
  word.count = PlanWord::kMostEntries + 1;
  EXPECT_FALSE(PlanWord::parse(std::as_bytes(std::span(&word, 1))).has_value());
  word = {.communicator = 1, .kind = PlanWord::Kind::kHealth};
  EXPECT_FALSE(PlanWord::parse(word.bytes()).has_value());
  word = {.kind = static_cast<PlanWord::Kind>(3)};
  EXPECT_FALSE(PlanWord::parse(word.bytes()).has_value());
}

}  // namespace
}  // namespace faultline::comm
