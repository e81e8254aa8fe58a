#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/plan/port_test.h"

namespace faultline::comm {

/// One round of a test of the ports: every rank exchanges messages with two others.
struct TestRound {
  std::uint64_t test = 0;   ///< number of the test in its communicator
  std::uint32_t round = 0;  ///< from 1 on
  int shift = 0;            ///< rank r sends to r + shift, and receives from r - shift
};

/// A test that is over, as its coordinator tells of it.
struct TestReport {
  std::uint64_t test = 0;
  std::uint64_t operation = 0;  ///< number of the first collective that waited for it
  TimePoint begun{};            ///< all operations before it were done, and it began
  Duration took{};              ///< until operations could go on
  int rounds = 0;
  /// Time that calls took over what was predicted, just before it.
  std::optional<double> lateness{};
  bool complete = false;  ///< else it was given up
  bool changed = false;   ///< a port was found to be other than before
  /// What the ports were judged by (plan::PortTest::slowPaths).
  std::vector<plan::PortTest::Path> slowPaths{};
};

/// What rank 0 keeps of a test that it leads: which ranks have answered, and what follows. A round
/// begins when all have said that the one before it is over for them; "round 0" is that what they
/// did before the test is. Pure.
class ProbeLead {
 public:
  /// What was begun before a test may take long. What it is about must not.
  static constexpr Duration kBeforePatience = 30s;
  static constexpr Duration kRoundPatience = 3s;
  /// Slow paths in a report: two slow ports of sixteen ranks have fewer.
  static constexpr std::size_t kMostPaths = 32;

  ProbeLead(std::uint64_t test, plan::PortTest ports, int ranks, std::optional<double> lateness,
            TimePoint now)
      : round_{.test = test},
        ports_(std::move(ports)),
        lateness_(lateness),
        answers_(ranks),
        begun_(now),
        roundBegun_(now) {}

  std::uint64_t test() const { return round_.test; }
  const plan::PortTest& ports() const { return ports_; }

  /// Rank `rank` is through with a round; `rate`: of the path to it (PortTest::measured).
  void answer(int rank, std::uint64_t test, std::uint32_t round, double rate) {
    if (test == round_.test && round == round_.round) answers_[rank] = rate;
  }
  bool allAnswered() const {
    for (const auto& answer : answers_) {
      if (!answer) return false;
    }
    return true;
  }
  /// All have answered: the next round, or nothing when there is none.
  std::optional<TestRound> next(TimePoint now) {
    if (round_.round > 0) {
      std::vector<double> rates;
      for (const auto& answer : answers_) rates.push_back(*answer);
      ports_.measured(round_.shift, rates);
    }
    const auto shift = ports_.nextShift();
    if (!shift) return std::nullopt;
    answers_.assign(answers_.size(), std::nullopt);
    if (round_.round == 0) begun_ = now;
    ++round_.round;
    round_.shift = *shift;
    roundBegun_ = now;
    return round_;
  }
  bool takesTooLong(TimePoint now) const {
    return now - roundBegun_ >= (round_.round == 0 ? kBeforePatience : kRoundPatience);
  }
  /// It is over. `operation`, `complete`, `changed`: as in the report.
  TestReport report(std::uint64_t operation, bool complete, bool changed, TimePoint now) const {
    return {.test = round_.test,
            .operation = operation,
            .begun = begun_,
            .took = now - begun_,
            .rounds = ports_.rounds(),
            .lateness = lateness_,
            .complete = complete,
            .changed = changed,
            .slowPaths = ports_.slowPaths(kMostPaths)};
  }

 private:
  TestRound round_;  // under way
  plan::PortTest ports_;
  std::optional<double> lateness_;
  std::vector<std::optional<double>> answers_;
  TimePoint begun_, roundBegun_;
};

}  // namespace faultline::comm
