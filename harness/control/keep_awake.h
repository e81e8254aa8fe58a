#pragma once

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::run {

/// Processors of this machine that are idle wait in their shallowest state (of a virtual machine
/// that polls: they do not leave it) for as long as the returned file is open, so that no thread
/// waits for one to wake. The kernel ends that with the process, however it ends (its PM QoS,
/// Documentation/power/pm_qos_interface.rst). kUnsupported where the kernel has no idle states to
/// choose from, kPermissionDenied without root.
Result<UniqueFd> keepProcessorsAwake();

}  // namespace faultline::run
