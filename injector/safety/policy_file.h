#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "injector/safety/policy.h"

namespace faultline::safety {

/// Why something of this owner and these rights could be changed by somebody else than root; empty:
/// it cannot. In a folder that holds what is looked at, and that is sticky (/tmp), others can make
/// things, and change nothing: `holds`. Pure.
std::string whyUntrusted(uid_t owner, mode_t mode, bool holds);

/// That nobody but root can change what is at `path`, or put something else there: it and all
/// folders above it, as they are once no symbolic link is left. The path without links; or
/// kPermissionDenied, with what to do; kNotFound where there is nothing.
Result<std::string> trustedPath(const std::string& path);

/// The policy of a file that only root can change, as its programs before and after: errors as
/// trustedPath() and parsePolicy(). kNotFound only where there is no policy.
Result<Policy> readPolicy(const std::string& path, std::span<const std::string_view> knownKinds);

}  // namespace faultline::safety
