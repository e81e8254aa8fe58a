#pragma once

#include <gtest/gtest.h>

#include "harness/record/run_record.h"
#include "tests/support/sample_scenario.h"

/// Messages of four ranks in, the run's entry out; all moments are milliseconds after kStart.
namespace faultline::run {

inline constexpr TimePoint kStart = TimePoint(1000s);

inline TimePoint at(int ms) { return kStart + ms * 1ms; }

class RunRecordTest : public ::testing::Test {
 protected:
  explicit RunRecordTest(const std::string& data = "integers")
      : scenario_(sampleScenario(faults(kPortDown), data)),
        planned_{1, scenario_.find("fail_stop"), reports::Arm::kFaulted},
        record_(scenario_, planned_) {
    record_.started(kStart);
  }

  void begin(int iteration, int ms) {
    for (int rank = 0; rank < ranks(); ++rank) {
      record_.iterationBegan(rank, {.iteration = iteration, .at = at(ms + rank)});
    }
  }
  /// Each rank a millisecond later than the one before: the last one counts.
  void end(int iteration, int ms, int checkpoint = 0) {
    for (int rank = 0; rank < ranks(); ++rank) {
      record_.iterationEnded(rank, {.iteration = iteration,
                                    .at = at(ms - ranks() + 1 + rank),
                                    .checked = 100,
                                    .digest = fmt::format("{}/{}", iteration, rank),
                                    .checkpoint = checkpoint * 1ms});
    }
  }
  void iteration(int index, int from, int to) {
    begin(index, from);
    end(index, to);
  }
  /// From the moment at which the watchdog fires.
  void restart(int cut, int fault, int repaired, int reloaded) {
    record_.hung(at(cut), {at(fault), 0, at(fault + 100)});
    record_.cutOff(at(cut), at(fault));
    record_.repaired(at(repaired));
    record_.reloaded(at(reloaded));
  }
  int ranks() const { return scenario_.cluster.ranks(); }

  scenario::Scenario scenario_;
  const PlannedRun planned_;
  RunRecord record_;
};

}  // namespace faultline::run
