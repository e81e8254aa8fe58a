#pragma once

#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

struct Judgement {
  reports::Verdict verdict = reports::Verdict::kError;
  std::string reason;  ///< in words; empty when everything passes
};

/// What the whole experiment comes to, from its runs and its judged expectations. The first that
/// applies:
/// - fail: elements are wrong or, with random data, a digest differs from fault_free's: lost data
///   count in whatever run they were seen, also in one that proves nothing else;
/// - error: it was interrupted, or nothing was run;
/// - invalid: a fault did not happen as planned, or nobody saw it happen; fail, when besides an
///   expectation does not hold that is neither void nor about that very run's end or evidence;
/// - error: a run failed or hung without going on, and no expectation is about how it ended; a run
///   whose data were not checked; a run that is missing;
/// - fail: an expectation does not hold;
/// - invalid: an expectation is void (expectations.h), or the machine was too noisy where that was
///   looked at (noise.h, drift_check.h);
/// - pass.
/// Pure.
Judgement verdictOf(const scenario::Scenario& scenario, const reports::ScenarioResult& result);

/// Whether an expectation says how runs of this strategy must end, so that it decides.
bool endIsExpected(const scenario::Scenario& scenario, const reports::Run& run);

/// Whether the run decides that the scenario does not pass, whatever other runs do: it has a wrong
/// element or is invalid, it did not do its work and no expectation says how its strategy ends, or
/// its end contradicts an expectation on `status` or `exit_code`. Pure.
bool isHopeless(const scenario::Scenario& scenario, const reports::Run& run);

}  // namespace faultline::run
