#pragma once

#include "harness/baseline/modelled.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The report's row of a strategy that is modelled: its overhead without an interval, the model's
/// terms and parameters, and a note that says all of it in words. `serving`: what is known of a
/// server; null where none was run.
reports::Summary modelledRow(const scenario::Strategy& strategy,
                             const baseline::ServingCase* serving);

}  // namespace faultline::run
