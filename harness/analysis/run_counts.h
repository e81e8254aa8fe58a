#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reports/result.h"

/// Counts over one run that expectations compare. Pure.
namespace faultline::run {

/// Iterations of the scenario's work that the run, which was cut short, did not do; nullopt: nobody
/// knows how many there were to be, as no run of the result has done its work and the scenario does
/// not say.
std::optional<int> iterationsLeftUndone(const reports::ScenarioResult& result,
                                        const reports::Run& run);

/// Those repeated after a restart counted once.
int distinctIterations(const reports::Run& run);

/// Different words of its ranks.
std::size_t distinctErrors(const reports::Run& run);

/// The most failovers of one end of one connection, idle ones too: where a rail is given up between
/// two bursts, the next one goes over another rail just the same.
std::size_t failoversPerConnection(const reports::Run& run);

/// Of failovers that a link had to come back for, as none was left between the two nodes: from when
/// the first one that was struck was put right until all was delivered, in ms. Nothing of the
/// others.
std::vector<double> deliveriesAfterReturn(const reports::Run& run, int perNode);

/// Times that plans were made anew because health had changed.
std::size_t planChanges(const reports::Run& run);

}  // namespace faultline::run
