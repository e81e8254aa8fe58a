#include "resilient_ccl/plan/candidate_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/distributions.h"
#include "base/random.h"

namespace faultline::plan {
namespace {

/// Candidates with true times, of which the trial knows what the model says.
struct Contest {
  std::vector<double> truly;  // seconds: the median of what calls take
  std::vector<double> predicted;
  double bound = 0;
  double noise = 0;   // standard deviation of the logarithm of a call's time
  double spikes = 0;  // share of calls that take three times as long

  double best() const { return *std::ranges::min_element(truly); }
};

/// Calls, one after the other; a change takes effect some calls after it is wanted.
struct Calls {
  Calls(const Contest& of, std::uint64_t seed)
      : contest(of), random(seed), trial(of.predicted, of.bound) {}

  void call(int count = 1) {
    for (int i = 0; i < count; ++i) {
      if (trial.wanted() == used) {
        delay = random.below(4);
      } else if (delay-- == 0) {
        used = trial.wanted();
        delay = random.below(4);
        ++changes;
      }
      double seconds = contest.truly[used] * std::exp(contest.noise * normal(random));
      if (random.unit() < contest.spikes) seconds *= 3;
      now += std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
      all += contest.truly[used];
      lost += contest.truly[used] - contest.best();
      trial.ended(used, seconds, now);
      ++calls;
    }
  }
  void settle(int most) {
    while (!trial.settled() && calls < most) call();
    while (trial.wanted() != used) call();
  }

  const Contest& contest;
  Random random;
  CandidateTrial trial;
  TimePoint now{};
  std::size_t used = 0;
  std::uint64_t delay = 0;
  int calls = 0, changes = 0;
  double all = 0, lost = 0;
};

/// Up to ten candidates; the model is wrong by up to `error`, either way. As many as `close` are
/// within a tenth of the best.
Contest randomContest(Random& random, double error, double scale, double bound) {
  Contest contest;
  const std::size_t count = 2 + random.below(9);
  for (std::size_t i = 0; i < count; ++i) {
    const double over = random.below(3) == 0 ? 0.1 * random.unit() : 4 * random.unit();
    contest.truly.push_back(scale * (1 + (i == 0 ? 0 : over)));
  }
  for (std::size_t i = count; i > 1; --i) {
    std::swap(contest.truly[i - 1], contest.truly[random.below(i)]);
  }
  std::vector<std::pair<double, double>> both;  // as the model orders them
  for (const double seconds : contest.truly) {
    both.emplace_back(seconds * std::pow(error, 2 * random.unit() - 1), seconds);
  }
  std::ranges::sort(both);
  contest.truly.clear();
  for (const auto& [predicted, seconds] : both) {
    contest.predicted.push_back(predicted);
    contest.truly.push_back(seconds);
  }
  contest.bound = bound;
  return contest;
}

constexpr int kContests = 1000;
constexpr double kGood = 1.05;

// Where latency decides the model may be wrong by ten times, and calls are noisy.
TEST(TrialTest, FindsAmongSmallOnesOneThatIsAsGoodAsTheBest) {
  int good = 0, calls = 0;
  double worstLoss = 0;
  for (std::uint64_t seed = 0; seed < kContests; ++seed) {
    Random random(seed);
    Contest contest = randomContest(random, 10, 1e-3, 0);
    contest.noise = 0.1 * random.unit();
    contest.spikes = 0.05;
    Calls run(contest, seed + kContests);
    run.settle(2000);
    ASSERT_TRUE(run.trial.settled()) << "seed " << seed;
    calls += run.calls;
    if (contest.truly[run.used] <= kGood * contest.best()) ++good;
    worstLoss = std::max(worstLoss, run.lost / contest.best());
  }
  EXPECT_GE(good, kContests * 99 / 100);
  EXPECT_LE(calls / kContests, 200);
  EXPECT_LE(worstLoss, 130);
}

// Where bandwidth decides the model is about right, and no more is tried than may win.
TEST(TrialTest, FindsTheBestOfLargeOnesAndTriesNoneThatCannotWin) {
  int good = 0, calls = 0;
  for (std::uint64_t seed = 0; seed < kContests; ++seed) {
    Random random(seed);
    Contest contest = randomContest(random, 1.1, 0.1, 0.09);
    contest.noise = 0.02 * random.unit();
    Calls run(contest, seed + kContests);
    while (!run.trial.settled() && run.calls < 2000) {
      run.call();
      const double predicted = contest.predicted[run.trial.wanted()];
      ASSERT_LE(predicted, 1.1 * CandidateTrial::kModelError * run.contest.truly[0])
          << "seed " << seed;
    }
    run.settle(2000);
    ASSERT_TRUE(run.trial.settled()) << "seed " << seed;
    calls += run.calls;
    if (contest.truly[run.used] <= kGood * contest.best()) ++good;
  }
  EXPECT_GE(good, kContests * 99 / 100);
  EXPECT_LE(calls / kContests, 40);
}

// A call of a second is dear, and what is as fast as the network can be will not be beaten.
TEST(TrialTest, NothingElseIsTriedWhereTheFirstIsAtTheBound) {
  Contest contest{.truly = {1.02, 1.5, 1.01, 1.3}, .predicted = {1, 1, 1.01, 1.01}, .bound = 1};
  contest.noise = 0.01;
  Calls run(contest, 1);
  run.settle(100);
  EXPECT_TRUE(run.trial.settled());
  EXPECT_EQ(run.calls, 1 + CandidateTrial::kTurn);
  EXPECT_EQ(run.used, 0u);

  contest.truly[0] = 1.4;  // for no reason that the model knows
  Calls other(contest, 1);
  other.settle(100);
  EXPECT_EQ(other.used, 2u);
}

// As measured: 1 MiB among four ranks of a whole network, four rails of 100 Mbit each. A ring
// passes in what the rails' shapers saved up, and is faster than the bound.
TEST(TrialTest, ShortCallsAreTriedAlsoAtTheBound) {
  Contest contest{.truly = {0.0346, 0.0352, 0.0316},
                  .predicted = {0.0335, 0.0336, 0.0338},
                  .bound = 0.033,
                  .noise = 0.01};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Calls run(contest, seed);
    run.settle(200);
    EXPECT_EQ(run.used, 2u) << "seed " << seed;
    EXPECT_LE(run.calls, 200) << "seed " << seed;
  }
}

// As measured: 2 MiB among three ranks of a whole network, two rails of 400 Mbit each. What shapers
// save up makes no tree of 88 ms as quick as a ring of 31; it and halving-doubling took 65 to 75.
TEST(TrialTest, AShortCallIsNotTriedWithWhatNoBurstMakesTheFastest) {
  const Contest contest{
      .truly = {0.0312, 0.0318, 0.0320, 0.0322, 0.0325, 0.038, 0.0385, 0.073, 0.068},
      .predicted = {0.0307, 0.0308, 0.03105, 0.0326, 0.03136, 0.0372, 0.0372, 0.0782, 0.0884},
      .bound = 0.0292,
      .noise = 0.01};
  constexpr std::size_t kHopeless = 7;  // from there on
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Calls run(contest, seed);
    while (!run.trial.settled() && run.calls < 400) {
      run.call();
      ASSERT_LT(run.trial.wanted(), kHopeless) << "seed " << seed;
    }
    EXPECT_TRUE(run.trial.settled()) << "seed " << seed;
    EXPECT_LT(contest.truly[run.trial.wanted()], 1.05 * contest.best()) << "seed " << seed;
  }
}

// As measured: one of eight NICs of one of four ranks lost, calls of 180 ms in a job of some dozen
// of them. The model is right to a tenth. What is slower by a tenth is known after two calls that
// count, and the ring, which the model gives more than the best takes, is not tried.
TEST(TrialTest, ALongCallThatBeatsTheBoundIsNoBurst) {
  // Eight ranks, a port at a quarter that the test found at 0.238: the bound is 5 % too high. All
  // candidates used to be tried for that, the tree of 3.4 s among them: minutes.
  const Contest contest{.truly = {1.41, 1.43, 2.45, 3.1, 3.4},
                        .predicted = {1.52, 1.53, 2.6, 3.33, 3.47},
                        .bound = 1.488,
                        .noise = 0.002};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Calls calls(contest, seed);
    calls.settle(100);
    EXPECT_TRUE(calls.trial.settled());
    EXPECT_LT(calls.calls, 20);
    EXPECT_LT(calls.lost, 0.2) << "seconds that tries have cost";
    EXPECT_LT(calls.used, 2);
  }
}

TEST(TrialTest, AShortJobIsNotSpentOnWhatIsKnownToBeSlower) {
  Contest contest{.truly = {0.183, 0.203, 0.184, 0.193, 0.193},
                  .predicted = {0.174, 0.179, 0.181, 0.182, 0.195},
                  .bound = 0.1699,
                  .noise = 0.004};
  int calls = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Calls run(contest, seed);
    while (!run.trial.settled() && run.calls < 200) {
      run.call();
      ASSERT_NE(run.trial.wanted(), 4u) << "seed " << seed;
    }
    EXPECT_TRUE(run.trial.settled());
    EXPECT_TRUE(run.trial.wanted() == 0 || run.trial.wanted() == 2) << "seed " << seed;
    calls += run.calls;
  }
  EXPECT_LE(calls, 100 * 24);
  contest.truly = {0.179, 0.203, 0.184, 0.193, 0.193};  // 5.4 % above the bound
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Calls run(contest, seed);
    run.settle(200);
    EXPECT_EQ(run.calls, 1 + CandidateTrial::kTurn)
        << "medians are known to 1 % at best: at the bound";
  }
}

// However many candidates, and however wrong the model: what it costs to try is bounded, in the
// first calls and in the long run, in which it is tried again.
TEST(TrialTest, TryingCostsNoMoreThanItsAllowance) {
  constexpr int kCalls = 40'000;  // of a tenth of a second and more: an hour
  double worstEarly = 0, worstLate = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Contest contest = randomContest(random, 10, 0.1, 0);
    for (double& seconds : contest.truly) {
      if (seconds > contest.best()) seconds *= 2;
    }
    contest.noise = 0.05;
    Calls run(contest, seed);
    int tries = 0;
    bool settled = false;
    for (int i = 0; i < kCalls; ++i) {
      run.call();
      if (settled && !run.trial.settled()) ++tries;
      settled = run.trial.settled();
      if (i == 1000) worstEarly = std::max(worstEarly, run.lost / contest.best());
    }
    EXPECT_GT(tries, 2) << "what has changed since is not seen";
    EXPECT_LE(tries, 4000 / 60);
    worstLate = std::max(worstLate, run.lost / run.all);
  }
  // The last turn may go beyond it: some calls of one that is ten times slower.
  constexpr double kLastTurn = 60;
  EXPECT_LE(worstEarly,
            CandidateTrial::kAllowedCalls + 1000 * CandidateTrial::kAllowedShare + kLastTurn);
  EXPECT_LE(worstLate, 0.02);
}

// A first candidate that is slow until the others are known to be slower costs what it costs; but
// what exceeds the allowance is not tried now.
TEST(TrialTest, WhatTheAllowanceDoesNotPayForWaitsUntilItIsEarned) {
  Contest contest{.truly = {0.001}, .predicted = {0.001}};
  for (int i = 0; i < 8; ++i) {
    contest.predicted.push_back(0.0011 + 0.0001 * i);
    contest.truly.push_back(i == 7 ? 0.0005 : 0.02);  // the last one is the best
  }
  Calls run(contest, 1);
  run.settle(500);
  ASSERT_TRUE(run.trial.settled());
  EXPECT_EQ(run.used, 0u) << "the best of those that there was an allowance for";
  run.call(1000);
  EXPECT_EQ(run.used, 0u);
  run.call(40'000);
  EXPECT_EQ(run.used, 8u);
}

TEST(TrialTest, OfTwoThatAreAlikeTheOneInUseIsKept) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Contest contest{
        .truly = {0.001, 0.000999, 0.001001}, .predicted = {1, 1, 1}, .bound = 0, .noise = 0.001};
    Calls run(contest, seed);
    run.settle(1000);
    ASSERT_TRUE(run.trial.settled());
    EXPECT_EQ(run.used, 0u) << "seed " << seed;
    EXPECT_LE(run.changes, 3);
  }
}

TEST(TrialTest, ItIsTriedAgainWhenThingsMayHaveChanged) {
  Contest contest{.truly = {0.1, 0.12}, .predicted = {0.1, 0.1}, .bound = 0.09, .noise = 0.01};
  Calls run(contest, 1);
  run.settle(1000);
  EXPECT_EQ(run.used, 0u);
  contest.truly = {0.14, 0.12};
  run.call(20);
  EXPECT_EQ(run.used, 0u) << "not at once";
  run.call(2000);
  EXPECT_EQ(run.used, 1u);
}

TEST(TrialTest, OneCandidateIsNoChoice) {
  CandidateTrial trial({0.001}, 0);
  EXPECT_TRUE(trial.settled());
  trial.ended(0, 1, TimePoint{} + 100s);
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.wanted(), 0u);
}

// The candidate that another rank still uses, when the change has not taken effect.
TEST(TrialTest, CallsOfAnotherCandidateThanTheWantedOneEndNoTurn) {
  CandidateTrial trial({1, 1}, 0);
  const TimePoint now{};
  for (int i = 0; i <= CandidateTrial::kTurn; ++i) trial.ended(0, 1, now);
  ASSERT_EQ(trial.wanted(), 1u);
  for (int i = 0; i < 100; ++i) trial.ended(0, 1, now);
  EXPECT_EQ(trial.wanted(), 1u);
  EXPECT_FALSE(trial.settled());
  trial.ended(1, 3, now);  // the first one of a turn does not count
  for (int i = 0; i < CandidateTrial::kTurn; ++i) trial.ended(1, 0.5, now);
  for (int i = 0; i < 10 && !trial.settled(); ++i) trial.ended(trial.wanted(), 0.5, now);
  EXPECT_EQ(trial.wanted(), 1u);
  EXPECT_TRUE(trial.settled());
}

}  // namespace
}  // namespace faultline::plan
