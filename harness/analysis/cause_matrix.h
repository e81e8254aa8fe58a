#pragma once

#include <span>

#include "reports/confusion.h"
#include "reports/result.h"

namespace faultline::run {

/// What was injected into the faulted runs of these results against what their failovers held to be
/// broken; injector/fault_kind.h says what is right. Pure.
///
/// Every failover is counted in the row of the strike that it comes from: the latest one that was
/// on its rail and at one of its two nodes at its fault's moment, or, when none explains it but one
/// that was over by then, a strike on processes or on the whole machine. What remains is of row
/// "nothing". Those of connections that carried nothing are verdicts too, but have no times. A
/// strike that an end answers with no failover at all counts there as "none". Strikes without
/// evidence do not count, nor do the failovers that come from them. Runs that cannot fail over
/// (fail_stop) are left out.
reports::ConfusionMatrix confusionOf(std::span<const reports::ScenarioResult> results);

/// The same over these of the result's runs.
reports::ConfusionMatrix confusionOf(const reports::ScenarioResult& result,
                                     std::span<const reports::Run* const> runs);

}  // namespace faultline::run
