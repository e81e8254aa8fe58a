#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Of all rows of a scenario together, so that a result, which has them, can be read again.
inline constexpr std::size_t kMostScheduleText = 1024 * 1024;

/// What their proofs may take together, as schedule::VerifyOptions::mostWork counts: some seconds.
inline constexpr std::int64_t kMostScheduleWork = std::int64_t{1} << 33;

/// Sets `content` of a row whose schedule is written down: from the scenario, or from the file that
/// it names, which is read here and nowhere else. `options` is the row's mapping, `where` the place
/// of the row, `path` ("strategies.1.planned") of its options.
void readScheduleText(const Node* options, Location where, const std::string& folder,
                      const std::string& path, Strategy& strategy, Findings& findings);

/// What a row is called that has no name of its own: the file's name without folder and ending,
/// each character that a row's name cannot have being '_'. Empty: nothing is left.
std::string rowNameOf(std::string_view file);

/// The schedules of all rows: right, and fit for the scenario.
void checkSchedules(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario
