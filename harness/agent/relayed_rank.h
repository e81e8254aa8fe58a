#pragma once

#include <poll.h>
#include <signal.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/agent/capped_log.h"
#include "harness/launch/process.h"
#include "wire/agent.h"

namespace faultline::agent {

/// A rank whose agent passes on what it and the controller say, and what it logs, as they are on
/// two machines.
class RelayedRank {
 public:
  /// `namespaceFd`: its network namespace (borrowed); -1: ours.
  static Result<RelayedRank> start(const wire::StartRank& message, int namespaceFd);

  /// kInvalidArgument for what is no message. One that has just ended needs to be told nothing.
  Status tell(const std::string& text);
  void kill() { (void)process_.signal(SIGKILL); }

  /// What is to be waited for.
  void addTo(std::vector<pollfd>& waiting);

  using Tell = std::function<Status(const wire::FromAgent& message)>;
  /// Whether there may be more to pass on than what is waited for.
  bool hasMore() const { return more_; }
  /// Passes on what there is, or a part of much, with which it is to be called again; how it has
  /// ended, after the last of it. One that says what is no message is ended. Errors are those of
  /// `tell`.
  Result<std::optional<std::string>> pump(int job, const Tell& tell);

 private:
  RelayedRank(launch::Process process, UniqueFd log)
      : process_(std::move(process)), log_(std::move(log)) {}
  Status passMessages(int job, const Tell& tell, int most);
  Status passLog(int job, const Tell& tell, std::size_t most);

  launch::Process process_;
  UniqueFd log_;
  CappedLog logged_;
  bool more_ = false;
  bool silent_ = false;  // it has closed its messages, or says what nobody understands
  std::string broken_;
};

}  // namespace faultline::agent
