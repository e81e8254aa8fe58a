#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline {

/// The record, kept in a folder, of what this project has made there. Nothing else in the folder is
/// ever replaced or removed, whatever its name is. An entry is named before it is made, so that the
/// record holds as well when its writer was killed. One writer at a time: who writes holds the
/// folder's lock.
class MadeEntries {
 public:
  /// The file in the folder.
  static constexpr const char* kFile = ".faultline-made";

  /// The record of the folder that is open as `folder`; `path` is for messages. A folder without
  /// one is no error. kAlreadyExists where something else has its name, a record of another user or
  /// one that this program cannot read.
  static Result<MadeEntries> read(int folder, const std::string& path);

  /// Whether the folder has a record.
  bool there() const { return there_; }
  /// Entries that were made: they may be replaced and removed.
  const std::set<std::string>& made() const { return made_; }
  bool isMade(const std::string& name) const { return made_.contains(name); }
  /// Also true for a file of a result that is older than records: it may be replaced, not removed.
  bool mayReplace(const std::string& name) const { return isMade(name) || older_.contains(name); }
  /// Whether who wrote last came to its end.
  bool finished() const { return finished_; }

  /// This process is going to make entries; where there is no record one begins. `older` are the
  /// files of a result that is older than records.
  Status begin(const std::set<std::string>& older = {});
  /// `name` is about to be made. Not for something that is there already and not ours.
  Status add(const std::string& name);
  /// `name` has been removed.
  Status drop(const std::string& name);
  /// All is written.
  Status finish();
  /// Whether `name` is a file that a killed writer of a made entry has left half-written.
  bool isTemporary(const std::string& name) const;
  /// Removes those files.
  void sweepTemporaries() const;
  /// Removes the record itself.
  void erase();

 private:
  MadeEntries() = default;
  Status append(std::string_view line);
  Status parse(std::string_view text);

  std::string path_;
  UniqueFd folder_;
  UniqueFd file_;
  bool there_ = false;
  bool finished_ = false;
  std::set<std::string> made_, older_;
  std::set<pid_t> writers_;
};

}  // namespace faultline
