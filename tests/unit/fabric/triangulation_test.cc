#include "resilient_ccl/fabric/triangulation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

// The confusion matrix of the places: what is broken in a network of four processes, and what each
// of them says about it; and all that two witnesses can say.

namespace faultline::fabric {
namespace {

constexpr int kRail = 1;

/// A network in which every process triangulates. Notes arrive at the next step; a probe tells
/// after some steps whether the path answers.
class World {
 public:
  explicit World(int processes) {
    for (int self = 0; self < processes; ++self) {
      ends_.push_back(std::make_unique<End>(*this, self, processes));
    }
  }

  void breakPath(int a, int b) { dead_.insert({std::min(a, b), std::max(a, b)}); }
  /// The process says nothing any more, over any path.
  void stop(int process) { stopped_.insert(process); }
  void wake(int process) { stopped_.erase(process); }
  /// The process has no path over the rail.
  void takeRail(int process) { withoutRail_.insert(process); }
  void begin(int self, int peer) { ends_[self]->triangulation.begin(peer, kRail, now_); }
  void ask(int asker, int witness, int about) {
    ends_[witness]->triangulation.asked(asker, about, kRail, now_);
  }

  void run(Duration time) {
    for (const TimePoint until = now_ + time; now_ < until; now_ += 5ms) {
      for (const auto& deliver : std::exchange(notes_, {})) deliver();
      for (const auto& end : ends_) {
        if (!stopped_.contains(end->self)) end->triangulation.onTick(now_);
      }
    }
  }
  /// What `self` found out about the path to `peer`; nothing when it has not said anything.
  std::optional<Where> found(int self, int peer) const {
    const auto it = ends_[self]->found.find(peer);
    return it == ends_[self]->found.end() ? std::nullopt : std::optional(it->second);
  }
  void seek(int self, int peer) { ends_[self]->triangulation.seek(peer, now_); }
  /// Whether `peer` answers others, as `self` was told; nothing when it was told nothing.
  std::optional<Reach> elsewhere(int self, int peer) const {
    const auto it = ends_[self]->elsewhere.find(peer);
    return it == ends_[self]->elsewhere.end() ? std::nullopt : std::optional(it->second);
  }
  int questions() const { return questions_; }
  int answers() const { return answers_; }

 private:
  struct End : TriangulationIo {
    End(World& inWorld, int inSelf, int processes)
        : world(inWorld), self(inSelf), triangulation(inSelf, processes, *this) {}

    std::uint32_t examine(int peer) override {
      begun[peer] = world.now_;
      return static_cast<std::uint32_t>(peer);
    }
    Reach reach(int peer, int rail, std::uint32_t after) const override {
      EXPECT_EQ(after, static_cast<std::uint32_t>(peer));
      if (world.stopped_.contains(peer)) return Reach::kUnknown;  // answers nowhere
      const Duration taken = world.now_ - begun.at(peer);
      if (rail == Triangulation::kAnyPath) {  // there is always the management network
        return taken >= 5ms ? Reach::kAnswers : Reach::kUnknown;
      }
      EXPECT_EQ(rail, kRail);
      const bool dead = world.dead_.contains({std::min(self, peer), std::max(self, peer)});
      if (!dead) return taken >= 5ms ? Reach::kAnswers : Reach::kUnknown;
      return taken >= 20ms ? Reach::kSilent : Reach::kUnknown;
    }
    bool reachable(int process, int rail) const override {
      return process != self && !(rail == kRail && world.withoutRail_.contains(process));
    }
    void ask(int witness, int about, int rail) override {
      ++world.questions_;
      world.notes_.push_back([this, witness, about, rail] {
        if (world.stopped_.contains(witness)) return;
        world.ends_[witness]->triangulation.asked(self, about, rail, world.now_);
      });
    }
    void answer(int asker, int about, int rail, Reach reach) override {
      ++world.answers_;
      world.notes_.push_back([this, asker, about, rail, reach] {
        world.ends_[asker]->triangulation.answered(self, about, rail, reach);
      });
    }
    void located(int peer, int rail, Where where) override {
      EXPECT_EQ(rail, kRail);
      EXPECT_TRUE(found.emplace(peer, where).second) << "said twice";
    }
    void sought(int peer, Reach reach) override { elsewhere[peer] = reach; }

    World& world;
    int self;
    Triangulation triangulation;
    std::map<int, TimePoint> begun;
    std::map<int, Where> found;
    std::map<int, Reach> elsewhere;
  };

  TimePoint now_ = TimePoint(1s);
  std::vector<std::unique_ptr<End>> ends_;
  std::set<std::pair<int, int>> dead_;
  std::set<int> stopped_;
  std::set<int> withoutRail_;
  std::vector<std::function<void()>> notes_;
  int questions_ = 0, answers_ = 0;
};

TEST(LocateTest, AllThatTwoWitnessesCanSay) {
  constexpr std::array kAll{Reach::kUnknown, Reach::kAnswers, Reach::kSilent};
  int places[4] = {};
  for (const Reach mine0 : kAll) {
    for (const Reach theirs0 : kAll) {
      for (const Reach mine1 : kAll) {
        for (const Reach theirs1 : kAll) {
          const std::array sights{Sight{0, mine0, theirs0}, Sight{1, mine1, theirs1}};
          const auto either = [](Reach a, Reach b, Reach value) {
            return a == value || b == value;
          };
          // The silence of a witness counts only when it answers the other end.
          const auto one = [&](Reach mine, Reach theirs) {
            return (mine0 == mine && theirs0 == theirs) || (mine1 == mine && theirs1 == theirs);
          };
          const bool meAlive = either(mine0, mine1, Reach::kAnswers);
          const bool meSilent = !meAlive && one(Reach::kSilent, Reach::kAnswers);
          const bool peerAlive = either(theirs0, theirs1, Reach::kAnswers);
          const bool peerSilent = !peerAlive && one(Reach::kAnswers, Reach::kSilent);
          const Where where = locate(sights);
          ++places[static_cast<int>(where)];
          EXPECT_EQ(where == Where::kBetween, meAlive && peerAlive);
          EXPECT_EQ(where == Where::kRemote, meAlive && peerSilent);
          EXPECT_EQ(where == Where::kLocal, meSilent && peerAlive);
          // The same seen from the other end: the two columns change places.
          std::array mirrored = sights;
          for (Sight& sight : mirrored) std::swap(sight.mine, sight.theirs);
          const Where other = locate(mirrored);
          if (where == Where::kLocal) {
            EXPECT_EQ(other, Where::kRemote);
          } else if (where != Where::kRemote) {
            EXPECT_EQ(other, where);
          }
        }
      }
    }
  }
  for (const int count : places) EXPECT_GT(count, 0);
  EXPECT_EQ(locate({}), Where::kUnknown);
}

TEST(TriangulationTest, ANodesUplinkIsLocalThereAndRemoteElsewhere) {
  for (const int processes : {3, 4, 8}) {
    World world(processes);
    for (int other = 0; other < processes; ++other) {
      if (other != 1) world.breakPath(1, other);
    }
    for (int other = 0; other < processes; ++other) {
      if (other == 1) continue;
      world.begin(1, other);
      world.begin(other, 1);
    }
    world.run(500ms);
    for (int other = 0; other < processes; ++other) {
      if (other == 1) continue;
      EXPECT_EQ(world.found(1, other), Where::kLocal) << other << " of " << processes;
      EXPECT_EQ(world.found(other, 1), Where::kRemote) << other << " of " << processes;
    }
  }
}

TEST(TriangulationTest, APathBetweenTwoIsBetweenAtBothEnds) {
  World world(4);
  world.breakPath(0, 2);
  world.begin(0, 2);
  world.begin(2, 0);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 2), Where::kBetween);
  EXPECT_EQ(world.found(2, 0), Where::kBetween);
}

TEST(TriangulationTest, ARailThatIsDeadForAllIsUnknown) {
  World world(3);
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) world.breakPath(a, b);
  }
  world.begin(0, 1);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 1), Where::kUnknown);
}

TEST(TriangulationTest, AWitnessThatIsDamagedItselfIsOutvoted) {
  World world(4);
  world.breakPath(0, 1);  // the question
  for (const int other : {0, 1, 3}) world.breakPath(2, other);
  world.begin(0, 1);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 1), Where::kBetween);
}

TEST(TriangulationTest, AWitnessThatSaysNothingIsNotWaitedForWithoutEnd) {
  World world(4);
  for (const int other : {0, 2, 3}) world.breakPath(1, other);
  world.stop(2);
  world.begin(0, 1);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 1), Where::kRemote);  // by the word of process 3
  World alone(3);
  alone.breakPath(0, 1);
  alone.stop(2);
  alone.begin(0, 1);
  alone.run(500ms);
  EXPECT_EQ(alone.found(0, 1), Where::kUnknown);
}

TEST(TriangulationTest, AWitnessWaitsForAPeerThatIsBusy) {
  World world(3);
  world.breakPath(0, 1);
  world.stop(1);
  world.begin(0, 1);
  world.run(100ms);
  world.wake(1);
  world.run(400ms);
  EXPECT_EQ(world.found(0, 1), Where::kBetween);
  EXPECT_EQ(world.answers(), 1);
}

TEST(TriangulationTest, WhoHasNoPathOverTheRailIsNoWitnessForItButForAllPaths) {
  World world(4);
  world.breakPath(0, 1);
  world.takeRail(2);
  world.begin(0, 1);
  EXPECT_EQ(world.questions(), 1) << "only process 3";
  world.ask(3, 3, 2);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 1), Where::kBetween);
  const int before = world.questions();
  world.seek(0, 1);
  EXPECT_EQ(world.questions(), before + 2);
}

TEST(TriangulationTest, APeerThatNobodyHearsIsGoneAndOneThatOthersHearIsNot) {
  World world(4);
  world.stop(2);
  world.seek(0, 2);  // is gone
  world.seek(0, 1);  // is there
  world.run(500ms);
  EXPECT_EQ(world.elsewhere(0, 2), Reach::kSilent);
  EXPECT_EQ(world.elsewhere(0, 1), Reach::kAnswers);
  EXPECT_EQ(world.found(0, 2), std::nullopt) << "a place is of a rail";
  World alone(3);
  alone.stop(1);
  alone.stop(2);
  alone.seek(0, 1);
  alone.run(500ms);
  EXPECT_EQ(alone.elsewhere(0, 1), Reach::kUnknown) << "the only witness says nothing";
}

TEST(TriangulationTest, TwoProcessesHaveNobodyToAsk) {
  World world(2);
  world.breakPath(0, 1);
  world.begin(0, 1);
  world.run(500ms);
  EXPECT_EQ(world.found(0, 1), std::nullopt);
}

TEST(TriangulationTest, TheSizeOfTheJobDoesNotMatterAndAskingTwiceIsAskingOnce) {
  World world(64);
  world.breakPath(0, 1);
  world.begin(0, 1);
  world.begin(0, 1);
  world.run(500ms);
  EXPECT_EQ(world.questions(), Triangulation::kMostWitnesses);
  EXPECT_EQ(world.found(0, 1), Where::kBetween);
}

TEST(TriangulationTest, QuestionsThatMakeNoSenseAndFloodsCostNothing) {
  World world(3);
  world.ask(0, 1, 1);   // about the witness
  world.ask(0, 1, 0);   // about the asker
  world.ask(0, 1, 77);  // about nobody
  world.ask(0, 1, -1);
  for (int i = 0; i < 1000; ++i) world.ask(0, 1, 2);
  world.run(500ms);
  EXPECT_EQ(world.answers(), 1);
}

}  // namespace
}  // namespace faultline::fabric
