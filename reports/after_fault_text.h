#pragma once

#include <string>

#include "reports/result.h"

/// What reports say of the time after the last fault, in the same words everywhere.
namespace faultline::reports {

/// Of runs that were not back at their speed: "did not go on in 1 of 3, not back within 2.6 s in 1
/// of 3"; empty: all were.
std::string notBackWords(const BackSpread& back);

/// Whether no run of the row went on after its faults, so that it has no speed to speak of.
bool noneWentOn(const Summary& row);

/// "120.5", "not back within 2.6 s", "did not go on"; empty: nobody looked.
std::string backWords(const Run& run);

}  // namespace faultline::reports
