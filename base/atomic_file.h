#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Writes `content` to `path` so that a reader sees the old file or the whole new one, never a
/// part: into a temporary file beside it, synced, then renamed. On failure (disk full, no
/// permission) the old file stays, the temporary one is removed, and the message says which file
/// and why. What is there and is no regular file (/dev/stdout, a pipe) is written into as it is.
Status writeFileAtomically(const std::string& path, std::string_view content);

/// The whole of a file.
Result<std::string> readFile(const std::string& path);

}  // namespace faultline
