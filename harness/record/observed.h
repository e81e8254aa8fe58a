#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/record/damage.h"
#include "reports/result.h"

namespace faultline::run {

/// What a rail carries.
struct Goodput {
  std::optional<BitsPerSecond> value;
  std::string missing{};  ///< why it was not measured, though it could have been; empty: it was
};

/// What the bench itself saw of a run, beside what its ranks said.
struct Observed {
  std::vector<reports::RailTotals> rails;
  std::vector<reports::RailSeries> railSeries;
  std::vector<reports::AppliedFault> faults;
  std::vector<reports::Evidence> evidence;
  /// Why the faults prove nothing; empty: they do.
  std::string invalidBecause;
  Goodput goodput;       ///< of one rail
  FaultChanges changes;  ///< what the faults did, and when
};

}  // namespace faultline::run
