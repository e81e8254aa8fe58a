#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "resilient_ccl/comm/group_planner.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {

inline constexpr std::uint32_t kNumber = 7;

/// Ranks that call one collective after the other, over a network that delivers in any order, and
/// planners that take their time.
class World {
 public:
  World(int ranks, std::uint64_t seed) : given(static_cast<std::size_t>(ranks)), random_(seed) {
    ports.resize(static_cast<std::size_t>(ranks));
    seen.resize(ports.size());
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
  struct Exchange {
    int rank;
    TestRound round;
  };
  struct Used {
    PlanKey key;
    std::uint64_t plan = 0;
    bool tried = false;

    bool operator==(const Used&) const = default;
  };

  class Rank : public GroupPlannerIo {
   public:
    Rank(World& world, int number) : world_(world), number_(number) {}
    void start(int ranks) {
      planner_ = std::make_unique<GroupPlanner>(number_, ranks, kNumber, /*ranksPerNode=*/1, *this);
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
    void exchange(const TestRound& round) override {
      // No operation may be under way; but the rounds of a test that was given up come late.
      if (!world_.givesUp) {
        for (const auto& one : world_.ranks_) {
          ASSERT_TRUE(one->open.empty()) << "an operation is under way";
        }
      }
      world_.exchanges.push_back({number_, round});
    }
    void tested(const TestReport& report) override { world_.reports.push_back(report); }
    void failed(const Status& why) override {
      if (world_.failure.ok()) world_.failure = why;
    }

    std::size_t calls = 0;
    std::deque<std::uint64_t> open;  // operations under way
    std::uint64_t epochs = 0;        // seen at a first use

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
    const bool prepares =
        letter.word.kind == PlanWord::Kind::kChange &&
        letter.word.first == static_cast<std::uint32_t>(plan::ChangeMessage::Kind::kPrepare);
    const bool unheard = deafToPrepare ? prepares : letter.word.kind == PlanWord::Kind::kTestRound;
    if (letter.to == deaf && unheard) return kept.push_back(letter);
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
    planned.plan.bound = bandwidthShare * predicted;
    planned.plan.hash = GroupPlanner::hashOf(
        static_cast<std::uint64_t>(order.key.elements) + (order.rank == liar ? 1 : 0),
        order.health);
    if (order.choice != Choice{}) {
      planned.plan.hash += hashOf(order.choice);
    } else {
      for (int i = 0; i < candidates; ++i) {
        const auto place = static_cast<std::size_t>(i);
        planned.plan.candidates.push_back(
            {std::string(schedule::algorithms()[place].name), 1, 0.001 * (1 + i)});
      }
    }
    rank(order.rank).planner().planned(order.hash, order.key, order.choice, planned);
  }

  static std::uint64_t hashOf(const Choice& choice) {
    return Random::mix(std::uint64_t{choice.algorithm} << 16 | choice.segments);
  }
  /// Of the candidates the last one is the fastest.
  bool isBest(const PlanKey& key, const plan::Plan& plan) const {
    const Choice last{static_cast<std::uint16_t>(candidates - 1), 1};
    return plan.hash ==
           GroupPlanner::hashOf(static_cast<std::uint64_t>(key.elements), given) + hashOf(last);
  }

  void call(int number) {
    Rank& who = rank(number);
    const auto key = callAt(who.calls);
    const auto go = who.planner().next(key, now);
    if (!go) return;
    ASSERT_EQ(go->operation, who.calls);
    if (go->first) who.epochs = std::max(who.epochs, go->first->epoch);
    who.open.push_back(go->operation);
    ++furthest[go->operation];
    if (key) {
      const bool best = isBest(*key, go->planned.plan);
      if (number == 0 && candidates > 0) took[go->operation] = now + (best ? 1ms : 2ms);
      if (number == 0 && go->first) (go->tried ? triedPlans : settledPlans) += 1;
      if (best && !go->tried) ++callsOfTheBest;
      ++plannedCalls;
      const Used mine{*key, go->planned.plan.hash, go->tried};
      if (used.size() <= who.calls) used.resize(who.calls + 1);
      auto& all = used[who.calls];
      if (!all) all = mine;
      ASSERT_EQ(*all, mine) << "rank " << number << " mixes plans at " << who.calls;
    }
    ++who.calls;
  }

  /// The oldest operation of a rank, which is done once all have begun it.
  void finish(int number) {
    Rank& who = rank(number);
    if (who.open.empty() || furthest[who.open.front()] < size()) return;
    const std::uint64_t operation = who.open.front();
    who.open.pop_front();
    const auto end = took.find(operation);
    who.planner().done(operation, number == 0 && end != took.end() ? end->second : now);
  }
  void finishAll() {
    for (int i = 0; i < size(); ++i) {
      while (!rank(i).open.empty() && furthest[rank(i).open.front()] == size()) finish(i);
    }
  }

  /// A round's messages have been exchanged.
  void endExchange(std::size_t which) {
    const auto [number, round] = exchanges[which];
    exchanges[which] = exchanges.back();
    exchanges.pop_back();
    const auto from = static_cast<std::size_t>((number + size() - round.shift) % size());
    const double share =
        std::min(ports[from].send, ports[static_cast<std::size_t>(number)].receive);
    if (number == 0) rounds.insert({round.test, round.round});
    if (number == 0) shifts.push_back(round.shift);
    const double spoilt = spoils ? spoils(round, static_cast<int>(from)) : 1;
    rank(number).planner().exchanged(round, plan::quantise(share * spoilt), now);
  }
  void endExchanges() {
    while (!exchanges.empty()) endExchange(random_.below(exchanges.size()));
  }

  void tick() {
    for (int i = 0; i < size(); ++i) {
      rank(i).planner().observed(seen[static_cast<std::size_t>(i)]);
      rank(i).planner().onTick(fed ? &given : nullptr, now);
    }
  }

  void step(bool mayChange = true) {
    const std::uint64_t what = random_.below(10);
    if (what == 8) return finish(static_cast<int>(random_.below(ranks_.size())));
    if (what == 9 && !exchanges.empty()) return endExchange(random_.below(exchanges.size()));
    if (what < 3 && !letters.empty()) return deliver(random_.below(letters.size()));
    if (what == 3 && !orders.empty()) return makePlan(random_.below(orders.size()));
    if (what == 4) {
      now += random_.below(100) * 1ms;
      if (mayChange && fed && random_.below(20) == 0) given[random_.below(given.size())].send -= 10;
      if (!fed && random_.below(40) == 0) {
        ports[random_.below(ports.size())].send = random_.below(2) == 0 ? 0.5 : 1;
      }
      return tick();
    }
    call(static_cast<int>(random_.below(ranks_.size())));
  }

  void settle(std::size_t target) {
    for (int round = 0; round < 3000; ++round) {
      deliverAll();
      while (!orders.empty()) makePlan(random_.below(orders.size()));
      endExchanges();
      now += 50ms;
      tick();
      finishAll();
      for (int i = 0; i < size(); ++i) {
        if (rank(i).calls < target) call(i);
      }
    }
  }

  std::vector<Letter> letters;
  std::vector<Letter> kept;  // that the deaf one has not heard
  std::vector<Order> orders;
  std::vector<std::optional<Used>> used;
  std::vector<Exchange> exchanges;
  std::vector<TestReport> reports;
  std::map<std::uint64_t, int> furthest;                     // ranks that have begun it
  std::set<std::pair<std::uint64_t, std::uint32_t>> rounds;  // of tests
  std::vector<int> shifts;                                   // of tests, in order
  std::function<double(const TestRound&, int from)> spoils;  // what is left of a path's rate
  bool fed = true;                                           // health is what is given
  bool givesUp = false;                                      // tests may be given up
  plan::HealthVector given;
  std::vector<plan::PortShare> ports;  // what they can really do
  std::vector<plan::Observation> seen;
  double predicted = 0;                     // seconds, by all plans
  double bandwidthShare = 1;                // of that
  int candidates = 0;                       // for each size
  std::map<std::uint64_t, TimePoint> took;  // the end of calls at rank 0, where there are some
  int triedPlans = 0, settledPlans = 0, callsOfTheBest = 0, plannedCalls = 0;
  int deaf = -1;               // a rank that no beginnings of rounds reach
  bool deafToPrepare = false;  // but beginnings of changes
  Status failure = okStatus();
  int liar = -1;
  TimePoint now{};

 private:
  Random random_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// A job that calls one collective after the other, which take 10 ms, or as long as `taken` says,
/// and should take 10 ms.
class Job : public World {
 public:
  explicit Job(int ranks, std::uint64_t seed = 1) : World(ranks, seed) {
    predicted = 0.01;
    fed = false;
  }

  void run(Duration time) {
    for (const TimePoint end = now + time; now < end; now += taken) {
      for (int i = 0; i < 5; ++i) {
        deliverAll();
        while (!orders.empty()) makePlan(0);
        endExchanges();
      }
      for (int i = 0; i < size(); ++i) call(i);
      now += taken;
      finishAll();
      now -= taken;
      tick();
    }
  }
  const plan::HealthVector& health(int number) { return rank(number).planner().health(); }
  std::uint64_t tests() const { return rounds.empty() ? 0 : rounds.rbegin()->first; }

  Duration taken = 10ms;
};

}  // namespace faultline::comm
