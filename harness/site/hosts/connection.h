#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/launch/message_channel.h"
#include "harness/launch/process.h"
#include "harness/site/hosts/launcher.h"

namespace faultline::hosts {

/// What leads to the agent of a host: a process here (ssh, say) whose standard input and output are
/// the agent's. When it goes, or this process dies, the agent sees the end of its input.
class Connection {
 public:
  /// `launcher` is whose command that is.
  static Result<Connection> start(const Launcher& launcher, const std::string& host,
                                  const std::vector<std::string>& command);
  Connection(Connection&&) = default;
  Connection& operator=(Connection&&) = default;

  /// Readable when greeted() may know more.
  int fd() const { return near_.get(); }
  /// Reads what has come; ok once the agent has greeted, and then to be asked no more. Nothing: not
  /// yet. Errors say what the host, or what leads to it, has said instead.
  std::optional<Status> greeted();

  /// The channel to an agent that has greeted.
  launch::MessageChannel takeChannel() { return launch::MessageChannel(std::move(near_)); }

  /// One that has closed its output is on its way out.
  static constexpr Duration kExitBudget = 500ms;
  /// What its errors say, the last of it on one line, with how it ended, which is waited for, and
  /// what that means: "exit code 255, 'ssh: connect to host ...'".
  std::string howItEnded(Duration budget);

  /// Lets the agent see the end of its input, and does not wait.
  void hangUp();
  /// SIGKILL to what leads there, and to what that has started (a jump host's ssh).
  void kill();
  /// Until it has ended, for at most so long.
  void awaitEnd(Duration budget) { (void)process_.waitFor(budget); }

 private:
  Connection(const Launcher& launcher, std::string host, launch::Process process, UniqueFd near,
             UniqueFd again, UniqueFd errors)
      : launcher_(&launcher),
        host_(std::move(host)),
        process_(std::move(process)),
        near_(std::move(near)),
        again_(std::move(again)),
        errors_(std::move(errors)) {}

  const Launcher* launcher_;
  std::string host_;
  launch::Process process_;
  UniqueFd near_;
  UniqueFd again_;   // the same end, for hangUp()
  UniqueFd errors_;  // what it prints: memory that cannot grow
  std::string said_;
};

}  // namespace faultline::hosts
