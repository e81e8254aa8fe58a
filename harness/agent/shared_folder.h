#pragma once

#include <string>

#include "base/status.h"
#include "harness/agent/job_folder.h"

namespace faultline::agent {

/// Makes a folder in one that all nodes share, with a file that has the token. It is removed when
/// the object ends, or this process dies.
Result<JobFolder> makeSharedFolder(const std::string& path, const std::string& token);

/// Whether this machine sees that folder, and may write there. kNotFound when there is none, or one
/// of another token.
Status seeSharedFolder(const std::string& path, const std::string& token);

}  // namespace faultline::agent
