#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Whether what is written outlives the machine.
enum class Sync { kYes, kNo };

/// Writes `content` to `path` so that a reader sees the old file or the whole new one, never a
/// part: into a temporary file beside it, synced, then renamed. On failure (disk full, no
/// permission) the old file stays, the temporary one is removed, and the message says which file
/// and why. What a program may have open (a device, a pipe, /dev/stdout) is appended to, and a file
/// that cannot be replaced (of a folder that takes no other, or mounted by itself) is written in
/// place.
Status writeFileAtomically(const std::string& path, std::string_view content,
                           Sync sync = Sync::kYes);

/// The whole of a file.
Result<std::string> readFile(const std::string& path);

}  // namespace faultline
