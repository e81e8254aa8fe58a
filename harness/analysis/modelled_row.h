#pragma once

#include "base/status.h"
#include "harness/baseline/modelled.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The report's row of a strategy that is modelled: its overhead without an interval, the model's
/// terms and parameters, and a note that says all of it in words. `serving`: the server that a
/// model of one stands on, or why there is none; it is among the terms.
reports::Summary modelledRow(const scenario::Strategy& strategy,
                             const Result<baseline::ServingCase>& serving);

}  // namespace faultline::run
