#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::run {

/// What becomes of an earlier result in the folder.
enum class Earlier {
  kRefused,   ///< the folder is not used
  kReplaced,  ///< it stays until the new result is whole, and then the new one takes its place
};

/// The folder that an experiment writes into: of one experiment at a time. Follows no symbolic
/// link, and removes nothing but what an earlier experiment has written.
class OutputFolder {
 public:
  /// The folder must exist. kAlreadyExists when another experiment is writing into it and still is
  /// after two seconds (one that was killed takes a moment to be gone), when it has an earlier
  /// result (kRefused), or when something that is not of an experiment has a name that this one
  /// needs. kInvalidArgument for a symbolic link. kIo when it cannot be written. What an
  /// experiment left that was killed is removed.
  static Result<OutputFolder> claim(const std::string& path, Earlier earlier = Earlier::kRefused);

  /// Whether `claim` could succeed, without changing anything. A folder that is not there can be
  /// made.
  static Status check(const std::string& path, Earlier earlier);

  /// Where to write: the folder, or one in it while an earlier result is still there.
  const std::string& path() const { return path_; }
  std::string logPath() const { return path_ + "/log.txt"; }
  /// Whether an earlier result is there that the new one is to replace.
  bool replaces() const { return path_ != final_; }
  /// Puts the new result, which is whole, into the place of the earlier one.
  Status replaceEarlier();

 private:
  explicit OutputFolder(std::string path) : final_(std::move(path)), path_(final_) {}
  /// What is in a folder.
  struct Content {
    std::set<std::string> ours;  ///< entries with names that an experiment uses
    bool result = false;         ///< a result of an earlier experiment
    bool known = false;          ///< the entries were written by an experiment
  };
  static Result<Content> look(const std::string& path, int folder);
  static Status judge(const std::string& path, const Content& content, Earlier earlier);
  static Result<UniqueFd> openFolder(const std::string& path);
  bool lock() const;
  Status removeAll(const Content& content) const;
  Status beginBeside();

  std::string final_;
  std::string path_;
  /// The folder. It carries the lock, which must not be held by ranks that outlive us by a moment.
  UniqueFd lock_;
};

}  // namespace faultline::run
