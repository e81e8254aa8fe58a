#pragma once

#include <span>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Whether a filter (seccomp) or an old kernel refuses a system call, whatever is asked of it: the
/// call is made with arguments that do nothing. Known are those of the two lists below, and "setns"
/// and "unshare"; of others false.
bool isRefused(std::string_view call);

/// Calls that a run, with its ranks, has no way around.
std::span<const std::string_view> callsOfRuns();
/// Those of the plugin.
std::span<const std::string_view> callsOfPlugin();

/// Names all of `calls` that are refused. To be asked before anything is begun: in the middle of a
/// job the refusal would be taken for the job's own failure.
Status checkCalls(std::span<const std::string_view> calls);

}  // namespace faultline
