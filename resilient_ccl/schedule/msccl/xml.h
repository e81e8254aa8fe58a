#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/schedule/msccl/algo.h"

namespace faultline::schedule::msccl {

/// The algorithm as an XML document. kUnsupported in a build without tinyxml2.
Result<std::string> toXml(const Algo& algo);

/// The reverse, for what schedules can express, in both forms that msccl-tools writes: steps as
/// <step> (old_format) or as <op>. Every number is in its range, every wait and peer exists,
/// offsets are inside their buffers. kInvalidArgument with the line and what is wrong, also for
/// elements and attributes that are not known, scratch buffers, steps of type `re`, and algorithms
/// that only work out of place (but AllToAll must). kUnsupported in a build without tinyxml2.
Result<Algo> fromXml(std::string_view xml);

}  // namespace faultline::schedule::msccl
