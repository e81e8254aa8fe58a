#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/launch/message_channel.h"

namespace faultline::launch {

/// The descriptors that a spawned process finds open beside 0, 1 and 2; nothing else is inherited.
inline constexpr int kLifelineFd = 3;  ///< hand it to Lifeline
inline constexpr int kMessagesFd = 4;  ///< hand it to MessageChannel
/// The first of SpawnOptions::inherited_fds, and the others behind it.
inline constexpr int kFirstInheritedFd = 5;

struct SpawnOptions {
  /// arguments[0] is the program's own name, as usual.
  std::vector<std::string> arguments;
  std::string executable = "/proc/self/exe";
  /// If given, the child does this instead of executing a program, and exits with what it returns:
  /// under emulation executing this one takes longer than most jobs. Other threads of the caller
  /// must neither allocate nor lock; of what it holds the child has the memory, and no descriptor
  /// but those below. `arguments`, `executable` and `environment` are of no use then.
  int (*body)() = nullptr;
  int namespace_fd = -1;  ///< network namespace to run in (borrowed); -1: the caller's
  /// Set in addition to the caller's environment, or instead of what is there by that name.
  std::map<std::string, std::string> environment;
  std::string working_directory;  ///< empty: the caller's
  /// A program that knows nothing of us: it leads a session of its own (Ctrl-C of our terminal is
  /// not for it), SIGINT ends it as usual, and nothing is open but 0, 1 and 2.
  bool foreign = false;
  /// It is the first process of a process namespace and of a mount namespace of its own: whatever
  /// it starts, and whatever they start, ends with it, however it ends. Without CAP_SYS_ADMIN it is
  /// in a user namespace of its own as well, where it is who we are.
  bool own_process_namespace = false;
  /// It is not killed when the caller dies, leads a session of its own, and is to end by itself
  /// when its lifeline is closed.
  bool survives = false;
  int stdin_fd = -1;   ///< borrowed; -1: there is nothing to read
  int stdout_fd = -1;  ///< borrowed; -1: the caller's
  int stderr_fd = -1;  ///< borrowed; -1: the caller's
  /// Its end of a message channel whose other end is somebody else's (borrowed); -1: one of its
  /// own, whose other end is Process::messages().
  int messages_fd = -1;
  /// Borrowed; open in the process as kFirstInheritedFd and what follows, also if it is foreign.
  std::vector<int> inherited_fds;
  /// If not null, waits in the child's channel as its first message.
  nlohmann::json first_message;
};

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< meaningful when signal is 0
  int signal = 0;  ///< that killed it; 0: it exited
  bool ok() const { return code == 0 && signal == 0; }
  /// "exit code 3", "killed by signal 9 (Killed)".
  std::string toString() const;
};

/// A child process that cannot outlive its controller, unless it is to: it has a lifeline pipe and
/// the parent-death signal SIGKILL, and the destructor kills and reaps it. Unless it is foreign it
/// ignores SIGINT (Ctrl-C is for the controller, which ends its ranks in order), and stays in the
/// caller's process group.
///
/// The parent-death signal follows the *thread* that spawned: spawn from the main thread.
class Process {
 public:
  /// Returns when the new program runs, or with the error of what failed on the way (entering the
  /// namespace, executing). Everything between fork and exec is async-signal-safe.
  static Result<Process> spawn(const SpawnOptions& options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  /// Readable when the process has ended; for poll().
  int pidFd() const { return pid_fd_.get(); }
  /// Of no use with SpawnOptions::messages_fd.
  MessageChannel& messages() { return messages_; }

  /// How it ended, if it has; never waits.
  Result<std::optional<ExitStatus>> tryWait();
  /// Waits at most `budget`; kDeadlineExceeded when it still runs then.
  Result<ExitStatus> waitFor(Duration budget);

  /// Sends a signal; okStatus() when it has ended already.
  Status signal(int number);
  /// It sees the end of its lifeline, as if this process had died.
  void endLifeline() { lifeline_.reset(); }
  /// The same for one that `survives`, and it goes on when this object ends, and longer if need be.
  void letGo() {
    endLifeline();
    pid_ = -1;
  }

 private:
  Process(pid_t pid, UniqueFd pid_fd, UniqueFd lifeline, MessageChannel messages);
  void killAndReap();

  pid_t pid_ = -1;
  UniqueFd pid_fd_;
  UniqueFd lifeline_;
  MessageChannel messages_;
  std::optional<ExitStatus> ended_;
};

/// How a process that has closed its messages, and so is on its way out, has ended: waited for a
/// moment.
std::string howItEnded(Process& process);

}  // namespace faultline::launch
