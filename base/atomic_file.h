#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Whether what is written outlives the machine.
enum class Sync { kYes, kNo };

/// What a symbolic link in the place of a file means.
enum class Links {
  kFollowed,  ///< the file that it leads to is written
  kRefused,   ///< kAlreadyExists, as for everything that is no regular file
};

/// Writes `content` to `path` so that a reader sees the old file or the whole new one, never a
/// part: into a temporary file beside it, synced, then renamed. On failure (disk full, no
/// permission) the old file stays, the temporary one is removed, and the message says which file
/// and why; no signal comes of it (SIGXFSZ, SIGPIPE). A stream gets it behind what it has got. A
/// file that cannot be replaced (of a folder that takes no other, or mounted by itself) is written
/// in place, where a full disk may cost the old one.
Status writeFileAtomically(const std::string& path, std::string_view content,
                           Sync sync = Sync::kYes, Links links = Links::kFollowed);

/// Removes what writers of `path` have left that were killed: temporary files of this user whose
/// writer is gone and is one of `writers`, as others may have files of such names. How many.
int sweepTemporaries(const std::string& path, const std::set<pid_t>& writers);

/// The process that `name` is, by its form, a temporary file of, on the way to `target` in the same
/// folder; 0: of none.
pid_t writerOfTemporary(std::string_view name, std::string_view target);

/// Whether `path` means a device, a pipe, or what this process has open ("/dev/stdout").
bool isStream(const std::string& path);

/// Whether it can be written, found out without changing anything.
Status checkFile(const std::string& path);

}  // namespace faultline
