#pragma once

#include <span>

#include "base/status.h"
#include "harness/baseline/modelled.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The server of a workload `inference` as the completed runs of fault_free show it, for the models
/// of what one would otherwise use: the requests of the rate at which the scenario's first fault
/// strikes, pooled over the runs. Times and rates are those without `scale`; or as they were
/// measured
/// (`asMeasured`), where device and rails of the scenario are slow by `scale`: then real rails are
/// so much faster. An error says what is missing. Pure.
Result<baseline::ServingCase> servingCase(const scenario::Scenario& scenario,
                                          std::span<const reports::Run> runs,
                                          bool asMeasured = false);

}  // namespace faultline::run
