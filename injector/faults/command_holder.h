#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::injector {

/// What a user's command is for.
enum class Step { kPrepare, kApply, kEvidence, kRevert };
inline constexpr std::size_t kSteps = 4;

/// The commands of a user, and where they run.
struct HeldCommands {
  /// By Step: program and arguments; empty: nothing is to be done.
  std::array<std::vector<std::string>, kSteps> words;
  /// In addition to that of this process: "NAME=value" each.
  std::vector<std::string> environment;
  int namespace_fd = -1;  ///< the network namespace; -1: that of this process. Duplicated
  /// For each command: then it is killed, with all of its process group. Its end is waited for
  /// for one second more, and not longer if it does not die of that.
  Duration limit{};
};

/// How a command has ended.
struct CommandEnd {
  bool ran = false;        ///< it was started
  bool timed_out = false;  ///< it was killed at its limit
  int code = 0;            ///< its exit code, or 128 and the number of the signal that ended it
  std::string output;      ///< the beginning of what it wrote to its standard output
  std::string errors;      ///< the same of its standard error
  bool ok() const { return ran && !timed_out && code == 0; }
};

/// A process of its own that runs a user's commands, one at a time, and outlives this one by what
/// has to be undone: when this process ends, however it ends (SIGKILL too), and `apply` was begun
/// and not reverted, it runs `revert`. It has a session of its own, so that Ctrl-C does not reach
/// it, and nothing of the bench's standard input, output and error. What ends it as well (SIGKILL
/// to it, the end of a container) undoes nothing.
class CommandHolder {
 public:
  static Result<std::unique_ptr<CommandHolder>> start(const HeldCommands& commands);
  /// Lets it go, and waits for its end: where something is to be undone, about the limit at most.
  ~CommandHolder();
  CommandHolder(const CommandHolder&) = delete;
  CommandHolder& operator=(const CommandHolder&) = delete;

  /// Starts the command. The one before, if it still runs, is killed, but for `revert`, which is
  /// waited for.
  Status begin(Step step);
  /// How the command of begin() has ended; nothing: it still runs. kUnavailable: the holder has
  /// ended.
  Result<std::optional<CommandEnd>> ended();
  /// Both, waiting for the end: for `limit` and a second at most. No signal ends that earlier.
  /// kAborted when it was told to `stop`: the command runs on until the next one, or the end.
  Result<CommandEnd> run(Step step, const std::function<bool()>& stop = {});

 private:
  CommandHolder(pid_t process, UniqueFd channel)
      : process_(process), channel_(std::move(channel)) {}
  Result<std::optional<CommandEnd>> receive(bool wait);

  pid_t process_;
  UniqueFd channel_;
  bool running_ = false;
};

}  // namespace faultline::injector
