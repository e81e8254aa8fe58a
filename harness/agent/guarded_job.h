#pragma once

#include <poll.h>
#include <signal.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/agent/brought_files.h"
#include "harness/agent/job_folder.h"
#include "harness/launch/process.h"
#include "wire/agent.h"

namespace faultline::agent {

/// The program of a job, as it is found on this machine (base/executable.h).
Result<std::string> executableOf(const wire::GuardedProgram& program);
/// Why a job could not be started here, in words; empty: nothing is missing.
std::vector<std::string> whatIsMissing(const wire::CheckJob& job);

/// Programs under a guard (guard.h), whose agent passes on what is said, and brings what they write
/// where the controller shares no folder with them.
class GuardedJob {
 public:
  /// What this job wants to have told to the controller.
  using Tell = std::function<Status(const wire::FromAgent& message)>;

  /// `networkFile`: of the namespace in which the programs run, empty: ours. `logFd`: where the
  /// guard logs to (borrowed); -1: where we do.
  static Result<GuardedJob> start(const wire::StartJob& message, const std::string& networkFile,
                                  int logFd);

  /// One that has just ended needs to be told nothing.
  void tell(const wire::ToGuard& message) { (void)guard_.messages().send(wire::toJson(message)); }
  /// SIGKILL: its end is seen as ever.
  void kill() { (void)guard_.signal(SIGKILL); }

  void addTo(std::vector<pollfd>& waiting);
  /// When there may be something to pass on though nothing is to be read.
  TimePoint due() const;
  /// Passes on what there is, for a short while; whether that was the last of it, and nothing is
  /// left here. Errors are those of `tell`.
  Result<bool> pump(const Tell& tell);

 private:
  GuardedJob(wire::StartJob message, std::optional<JobFolder> folder,
             std::optional<launch::Process> sweeper, launch::Process guard)
      : message_(std::move(message)),
        files_(message_.files),
        folder_(std::move(folder)),
        sweeper_(std::move(sweeper)),
        guard_(std::move(guard)) {}
  Status log(const std::string& what, const Tell& tell) const;
  Status hearSweeper(const Tell& tell);
  /// What the guard says next, if that has come; Gone once it has ended.
  std::optional<wire::FromGuard> nextWord();
  Status tellCut(const Tell& tell);
  Result<bool> lastWord(wire::FromGuard said, const Tell& tell);
  Status tellOutput(const Tell& tell);
  Result<bool> isRemoved(const Tell& tell);

  wire::StartJob message_;
  BroughtFiles files_;
  std::optional<JobFolder> folder_;         // ends after the guard
  std::optional<launch::Process> sweeper_;  // of what others have left
  std::optional<wire::FromGuard> word_{};   // of the guard: what was written until then comes first
  bool removing_ = false;                   // all is told
  launch::Process guard_;
};

}  // namespace faultline::agent
