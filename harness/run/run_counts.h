#pragma once

#include <cstddef>

#include "reports/result.h"

/// Counts over one run that expectations compare. Pure.
namespace faultline::run {

/// Those repeated after a restart counted once.
int distinctIterations(const reports::Run& run);

/// Different words of its ranks.
std::size_t distinctErrors(const reports::Run& run);

/// The most failovers of one end of one connection, idle ones too: where a rail is given up between
/// two bursts, the next one goes over another rail just the same.
std::size_t failoversPerConnection(const reports::Run& run);

/// Times that plans were made anew because health had changed.
std::size_t planChanges(const reports::Run& run);

}  // namespace faultline::run
