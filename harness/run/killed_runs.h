#pragma once

#include <string>

namespace faultline::run {

/// Removes what runs that were killed have left below `parent`: folders that hold a log, files of
/// reports that were being written and checkpoints, and nothing else, and that have no result.
/// Those of others, those that are being written into, and those with anything that is not ours
/// stay. How many.
int sweepKilledRuns(const std::string& parent);

}  // namespace faultline::run
