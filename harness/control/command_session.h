#pragma once

#include "harness/control/session.h"

namespace faultline::run {

/// Like runSession, for a workload of kind command: programs that are not ours instead of ranks.
/// They run under a guard per node (launch/guard.h), so that nothing of them is left afterwards.
Result<SessionResult> runCommandSession(const scenario::Scenario& scenario,
                                        const PlannedRun& planned, const SessionOptions& options,
                                        Interrupt& interrupt);

}  // namespace faultline::run
