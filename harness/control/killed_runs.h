#pragma once

#include <string>

namespace faultline::run {

/// Removes what runs that were killed have left below `parent`: folders with a record of a run
/// (MadeEntries) that did not end and has no result, and with nothing that the record does not
/// name. All others stay as they are. How many.
int sweepKilledRuns(const std::string& parent);

}  // namespace faultline::run
