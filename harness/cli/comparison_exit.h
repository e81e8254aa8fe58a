#pragma once

#include "harness/cli/cli.h"
#include "reports/comparison.h"

namespace faultline::cli {

/// As much as two equal runs may differ by before a machine counts as too noisy
/// (stats::kMaxBandPercent): less is not worth waking somebody up.
inline constexpr double kDefaultTolerancePercent = 2;

/// Of `compare` and `history trend`: 1 where NEW is worse, 5 where that could not be told.
inline int exitCodeOf(reports::Standing standing) {
  switch (standing) {
    case reports::Standing::kWorse:
      return kExitExpectation;
    case reports::Standing::kUnproven:
      return kExitInvalid;
    case reports::Standing::kAsGood:
      break;
  }
  return kExitOk;
}

}  // namespace faultline::cli
