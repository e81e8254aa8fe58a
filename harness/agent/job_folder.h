#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/launch/process.h"

namespace faultline::agent {

/// How the names of folders begin that are a run's on a host, in the folder for what is soon over.
inline constexpr std::string_view kRunFolderPrefix = "faultline-run-";

/// A folder that is there as long as this object, and no longer than this process: a process of its
/// own removes it, with all that is in it, when this one ends, however. That process is killed with
/// a session or a job step, perhaps; what is left then is removed by who makes the next such folder
/// (sweep).
class JobFolder {
 public:
  /// Makes it, empty and for its owner alone. An error when there is something of its name already.
  static Result<JobFolder> make(const std::string& path);
  JobFolder(JobFolder&&) = default;
  JobFolder& operator=(JobFolder&&) = delete;
  ~JobFolder();

  /// From now on it is also removed when this process dies. `user`: the descriptor of a process
  /// (Process::pidFd, borrowed) whose end is waited for then; -1: nobody's.
  Status outliveUs(int user);
  /// What has become of it is known then. An error names what is left, and why.
  Status remove();

  /// remove() by the process of outliveUs(), without waiting. Then its descriptor can be read when
  /// removed() knows more.
  void beginRemove();
  int removerFd() const { return remover_ ? remover_->pidFd() : -1; }
  /// What remove() returns, once that is known.
  std::optional<Status> removed();

  /// Removes folders beside `path` that runs have left on this machine: those of this user whose
  /// names begin with kRunFolderPrefix, and that nobody holds. What was done and what could not be,
  /// in words.
  static std::vector<std::string> sweep(const std::string& path);
  /// A process that does it: each message is a string, one of those words.
  static Result<launch::Process> startSweeper(const std::string& path);

 private:
  JobFolder(std::string path, UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;  // empty: it is removed
  UniqueFd folder_;   // with the lock by which others see that it is in use
  std::optional<launch::Process> remover_{};
};

}  // namespace faultline::agent
