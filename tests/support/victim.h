#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/support/namespace_observer.h"
#include "tests/support/process_tree.h"

namespace faultline::test {

/// A program in a process group of its own, started to be killed, and everything that it holds.
class Victim {
 public:
  /// Starts `arguments[0]`; its standard output (or error) is read through a pipe.
  enum class Listen { kStdout, kStderr };
  explicit Victim(const std::vector<std::string>& arguments, Listen listen = Listen::kStdout,
                  const std::string& directory = ".");
  /// Kills what is left of it.
  ~Victim();

  pid_t pid() const { return pid_; }
  /// Waits until the program has printed `text`; false when it ends or the budget is over.
  bool awaitOutput(const std::string& text, Duration budget);
  /// What was read of it so far.
  const std::string& printed() const { return printed_; }

  enum class Targets { kProgramAlone, kWholeGroup };
  /// Stops the program in its tracks, lets `observer` watch every network namespace that it or its
  /// children hold, and kills it with SIGKILL. False when it had ended by itself.
  bool killAndWatch(Targets targets, NamespaceObserver& observer);
  /// Whether all its processes and namespaces vanish within `budget` from the kill on. The caller
  /// must be the subreaper of orphans (PR_SET_CHILD_SUBREAPER).
  bool allGone(NamespaceObserver& observer, Duration budget);
  Duration sinceKill() const { return now() - killedAt_; }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
  std::string printed_;
  std::vector<ProcessId> tree_;
  TimePoint killedAt_;
};

}  // namespace faultline::test
