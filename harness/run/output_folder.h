#pragma once

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::run {

/// The folder that an experiment writes into: of one experiment at a time, and without anything
/// that an earlier one has left, so that what is found there afterwards is of this one.
class OutputFolder {
 public:
  /// The folder must exist. kAlreadyExists when another experiment is writing into it
  /// and still is after two seconds (one that was killed takes a moment to be gone); kIo when it
  /// cannot be written. Removes the reports and the log of an earlier experiment and nothing
  /// else.
  static Result<OutputFolder> claim(const std::string& path);

  const std::string& path() const { return path_; }
  std::string logPath() const { return path_ + "/log.txt"; }

 private:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}
  bool lock() const;
  Status clear() const;

  std::string path_;
  /// The log, opened once more: the lock goes with the open file and not with the descriptor, and
  /// must not be held by ranks that outlive us by a moment and log into theirs.
  UniqueFd lock_;
};

}  // namespace faultline::run
