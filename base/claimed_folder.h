#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/made_entries.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline {

/// What becomes of an earlier result in a folder.
enum class Earlier {
  kRefused,   ///< the folder is not used
  kReplaced,  ///< the new one takes its place
};

/// A path without the slashes at its end, which would make a link to a folder that folder.
std::string withoutSlash(std::string path);

/// Opens a folder that is to be written into. kInvalidArgument for a symbolic link.
Result<UniqueFd> openFolder(const std::string& path);

/// Whether the folder is locked now, for as long as `folder` is open. Waits a moment for somebody
/// who is just ending. A file system without locks does without.
bool lockFolder(int folder);

/// The beginning of a regular file in the folder; "" where there is none.
std::string beginningOf(int folder, const char* name);

/// What is there, in words, for what is neither a regular file nor a folder as it should be.
std::string_view kindOf(mode_t mode);

/// Files that a verb writes into a folder which its user names. The folder is made when missing,
/// locked until the end of this object, and has a record of them (MadeEntries).
class ClaimedFiles {
 public:
  /// What a file of a version without records is known by.
  struct Mark {
    std::string name;  ///< the file
    std::string text;  ///< in its first bytes
    /// Whether there may be such files in a folder that has a record of others.
    bool besideRecord = true;
  };

  /// May write `names` into `directory`. kAlreadyExists when something else has one of the names,
  /// or another process is writing into the folder; files without a record, among which `mark` is
  /// found, are replaced with kReplaced alone. kInvalidArgument when the folder is a link.
  static Result<ClaimedFiles> claim(const std::string& directory,
                                    const std::vector<std::string>& names, const Mark& mark,
                                    Earlier earlier);
  /// All is written.
  Status finish() { return record_.finish(); }

 private:
  ClaimedFiles(UniqueFd folder, MadeEntries record)
      : folder_(std::move(folder)), record_(std::move(record)) {}

  UniqueFd folder_;
  MadeEntries record_;
};

}  // namespace faultline
