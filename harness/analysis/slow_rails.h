#pragma once

#include "reports/result.h"

namespace faultline::run {

/// Ranks on a node, as the scenario of a result says.
int ranksPerNode(const reports::ScenarioResult& result);

/// Whether a strike is of a kind that leaves its link alive and slow.
bool slowsLink(const reports::AppliedFault& fault);

/// Whether it slows its link so much that somebody at it has to say so: to less than 60 % of the
/// rate. Of a strike that names a rate and no share of one it is not known.
bool mustBeFoundSlow(const reports::AppliedFault& fault);

/// Whether `degradation` is of the link that the strike slowed, and began while it lasted; what was
/// under way when it ended may be judged a little later.
bool explains(const reports::AppliedFault& fault, const reports::Degradation& degradation,
              int perNode);

/// Strikes with evidence that had to be found, and how many of them no rank at that link told of.
struct SlowStrikes {
  int due = 0;
  int missed = 0;
};
SlowStrikes slowStrikes(const reports::Run& run, int perNode);

/// Degradations that no such strike explains.
int unexplainedDegradations(const reports::Run& run, int perNode);

}  // namespace faultline::run
