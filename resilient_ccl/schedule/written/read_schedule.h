#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/schedule/schedule_source.h"

namespace faultline::schedule {

/// Longest file that `faultline schedule` reads. A scenario's schedules have less together
/// (scenario::kMostScheduleText): its ranks and its result get the text.
inline constexpr std::size_t kMostScheduleBytes = std::size_t{64} << 20;

/// A schedule in MSCCL XML (msccl/xml.h) or in JSON (schedule_json.h), whichever the text is.
/// kInvalidArgument with the line or the operation, and what is wrong; kUnsupported for XML in a
/// build without tinyxml2. It still has to be verified (verifier.h).
Result<std::shared_ptr<const ScheduleSource>> readSchedule(std::string_view text);

}  // namespace faultline::schedule
