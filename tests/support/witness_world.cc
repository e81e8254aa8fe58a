#include "tests/support/witness_world.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/random.h"
#include "tests/support/sim_clock.h"

namespace faultline::test {
namespace {

using channel::Reach;
using channel::Where;
using fabric::Triangulation;

constexpr int kRail = 1;
constexpr Duration kTick = 5ms;
constexpr Duration kAnswerTime = 5ms;    // until a probe of a path that lives is answered
constexpr Duration kSilenceTime = 20ms;  // until a dead one has missed enough of them
constexpr Duration kLonger = Triangulation::kDeadline + 2 * kTick;

class WitnessWorld {
 public:
  explicit WitnessWorld(std::uint64_t seed) : random_(seed) {
    const int processes = 3 + static_cast<int>(random_.below(3));
    for (int self = 0; self < processes; ++self) {
      ends_.push_back(std::make_unique<End>(*this, self, processes));
    }
    for (int process = 0; process < processes; ++process) {
      if (random_.below(4) == 0) deadNics_.insert(process);
      if (random_.below(6) == 0) stopped_.insert(process);
    }
    for (int one = 0; one < processes; ++one) {
      const int other = static_cast<int>(random_.below(processes));
      if (one != other && !paired(one) && !paired(other))
        deadPaths_.insert(std::minmax(one, other));
    }
    if (random_.below(3) == 0) cut_ = std::minmax(0, 1 + static_cast<int>(random_.below(2)));
    loss_ = random_.below(3) == 0 ? 0.5 * random_.unit() : 0;
    delay_ = random_.below(3) == 0 ? Duration(150ms) : Duration(40ms);
  }

  WitnessOutcome run() {
    for (const auto& asker : ends_) {
      if (stopped_.contains(asker->self)) continue;
      for (const auto& peer : ends_) {
        if (asker == peer) continue;
        clock_.after(upTo(60ms), [this, &asker, &peer] { begin(*asker, peer->self); });
      }
    }
    const TimePoint until = clock_.now() + 60ms + kLonger;
    for (TimePoint tick = clock_.now(); tick < until; tick += kTick) {
      while (clock_.step(tick)) {
      }
      time_ = tick;
      for (const auto& end : ends_) {
        if (!stopped_.contains(end->self)) end->triangulation.onTick(tick);
      }
    }
    for (const auto& end : ends_) judge(*end);
    return std::move(outcome_);
  }

 private:
  struct End : fabric::TriangulationIo {
    End(WitnessWorld& inWorld, int inSelf, int processes)
        : world(inWorld), self(inSelf), triangulation(inSelf, processes, *this) {}

    std::uint32_t examine(int peer) override {
      examined.push_back({peer, world.time_});
      return static_cast<std::uint32_t>(examined.size() - 1);
    }
    Reach reach(int peer, int rail, std::uint32_t after) const override {
      if (examined.at(after).first != peer) world.problem("an examination of another process");
      if (world.stopped_.contains(peer) || world.cut(self, peer)) {
        return Reach::kUnknown;  // answers nowhere
      }
      const Duration taken = world.time_ - examined.at(after).second;
      const bool lives = rail == Triangulation::kAnyPath || world.carries(self, peer);
      if (lives) return taken >= kAnswerTime ? Reach::kAnswers : Reach::kUnknown;
      return taken >= kSilenceTime ? Reach::kSilent : Reach::kUnknown;
    }
    bool reachable(int process, int) const override { return process != self; }
    void ask(int witness, int about, int rail) override {
      world.send(self, witness, [this, witness, about, rail] {
        world.ends_[witness]->triangulation.asked(self, about, rail, world.time_);
      });
    }
    void answer(int asker, int about, int rail, Reach reach) override {
      world.send(self, asker, [this, asker, about, rail, reach] {
        world.ends_[asker]->triangulation.answered(self, about, rail, reach);
      });
    }
    void located(int peer, int, Where where) override { places[peer].push_back(where); }
    void sought(int peer, Reach reach) override { missed[peer].push_back(reach); }

    WitnessWorld& world;
    int self;
    Triangulation triangulation;
    std::vector<std::pair<int, TimePoint>> examined;
    std::set<int> asked, seeks;
    std::map<int, std::vector<Where>> places;
    std::map<int, std::vector<Reach>> missed;
  };

  Duration upTo(Duration most) { return Duration(random_.below(most.count())); }
  bool paired(int process) const {
    return std::ranges::any_of(deadPaths_, [&](const auto& path) {
      return path.first == process || path.second == process;
    });
  }
  bool cut(int one, int other) const {
    return cut_ && *cut_ == std::pair<int, int>(std::minmax(one, other));
  }
  bool carries(int one, int other) const {
    return !deadNics_.contains(one) && !deadNics_.contains(other) &&
           !deadPaths_.contains(std::minmax(one, other));
  }
  void problem(std::string text) { outcome_.problems.push_back(std::move(text)); }

  /// A dead path is a question of place; a peer may be missed whatever its rail does.
  void begin(End& asker, int peer) {
    time_ = clock_.now();
    if (!carries(asker.self, peer) && !cut(asker.self, peer)) {
      asker.asked.insert(peer);
      asker.triangulation.begin(peer, kRail, time_);
    }
    if (random_.below(2) != 0) return;
    asker.seeks.insert(peer);
    asker.triangulation.seek(peer, time_);
  }

  void send(int from, int to, std::function<void()> note) {
    if (random_.unit() < loss_ || cut(from, to)) return;
    clock_.after(upTo(delay_), [this, to, note = std::move(note)] {
      time_ = clock_.now();
      if (!stopped_.contains(to)) note();
    });
  }

  /// Whether what this one says of a path between the two is the truth, and arrives in time.
  bool reliable(int witness, int one, int other) const {
    return !stopped_.contains(witness) && !cut(witness, one) && !cut(witness, other) &&
           loss_ == 0 && delay_ <= 40ms;
  }
  bool clean(int witness, int one, int other) const {
    return reliable(witness, one, other) && !deadNics_.contains(witness) &&
           !deadPaths_.contains(std::minmax(witness, one)) &&
           !deadPaths_.contains(std::minmax(witness, other));
  }
  template <typename Rule>
  bool anyWitness(int one, int other, Rule rule) const {
    return std::ranges::any_of(ends_, [&](const auto& end) {
      return end->self != one && end->self != other && rule(end->self);
    });
  }

  void judge(const End& end) {
    for (const int peer : end.asked) {
      const auto said = end.places.find(peer);
      if (said == end.places.end() || said->second.size() != 1) {
        problem(fmt::format("{} asked where the path to {} is dead, and was not told once",
                            end.self, peer));
        continue;
      }
      const Where where = said->second.front();
      ++outcome_.places[where];
      const bool here = deadNics_.contains(end.self);
      const bool there = deadNics_.contains(peer);
      const Where truth = here && there ? Where::kUnknown
                          : here        ? Where::kLocal
                          : there       ? Where::kRemote
                                        : Where::kBetween;
      const bool known = !stopped_.contains(peer) && anyWitness(end.self, peer, [&](int witness) {
        return clean(witness, end.self, peer);
      });
      if (where == truth || (where == Where::kUnknown && !known)) continue;
      // A NIC that is dead is dead, whatever the other one is.
      if ((where == Where::kLocal && here) || (where == Where::kRemote && there)) continue;
      problem(fmt::format("{} says {} of the path to {}, and it is {}", end.self,
                          channel::whereName(where), peer, channel::whereName(truth)));
    }
    for (const int peer : end.seeks) {
      const auto said = end.missed.find(peer);
      if (said == end.missed.end() || said->second.size() != 1) {
        problem(fmt::format("{} misses {}, and was not told once", end.self, peer));
        continue;
      }
      const Reach reach = said->second.front();
      ++outcome_.sought[reach];
      const Reach truth = stopped_.contains(peer) ? Reach::kSilent : Reach::kAnswers;
      const bool known = anyWitness(end.self, peer,
                                    [&](int witness) { return reliable(witness, end.self, peer); });
      // Who has no path to it does not hear it.
      const bool cutOff =
          anyWitness(end.self, peer, [&](int witness) { return cut(witness, peer); });
      if (reach == Reach::kSilent && cutOff && !known) continue;
      if (reach == truth || (reach == Reach::kUnknown && !known)) continue;
      problem(fmt::format("{} was told wrongly whether others hear {}", end.self, peer));
    }
  }

  Random random_;
  SimClock clock_;
  TimePoint time_ = clock_.now();
  std::vector<std::unique_ptr<End>> ends_;
  std::set<int> deadNics_, stopped_;
  std::set<std::pair<int, int>> deadPaths_;
  std::optional<std::pair<int, int>> cut_;  // two that have no path to each other at all
  double loss_ = 0;
  Duration delay_{};
  WitnessOutcome outcome_;
};

}  // namespace

WitnessOutcome& WitnessOutcome::operator+=(const WitnessOutcome& other) {
  problems.insert(problems.end(), other.problems.begin(), other.problems.end());
  for (const auto& [place, count] : other.places) places[place] += count;
  for (const auto& [reach, count] : other.sought) sought[reach] += count;
  return *this;
}

WitnessOutcome playWitnesses(std::uint64_t seed) { return WitnessWorld(seed).run(); }

}  // namespace faultline::test
