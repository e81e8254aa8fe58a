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

/// What rank 0 keeps of a test that it leads: which ranks have answered, and what follows. A round
/// begins when all have said that the one before it is over for them; "round 0" is that what they
/// did before the test is. Pure.
class TestLead {
 public:
  /// What was begun before a test may take long. What it is about must not.
  static constexpr Duration kBeforePatience = 30s;
  static constexpr Duration kRoundPatience = 3s;

  TestLead(std::uint64_t test, plan::PortTest ports, int ranks, TimePoint now)
      : round_{.test = test}, ports_(std::move(ports)), answers_(ranks), begun_(now) {}

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
    ++round_.round;
    round_.shift = *shift;
    begun_ = now;
    return round_;
  }
  bool takesTooLong(TimePoint now) const {
    return now - begun_ >= (round_.round == 0 ? kBeforePatience : kRoundPatience);
  }

 private:
  TestRound round_;  // under way
  plan::PortTest ports_;
  std::vector<std::optional<double>> answers_;
  TimePoint begun_;  // the round
};

}  // namespace faultline::comm
