#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::agent {

/// A name on a network namespace, held for a run until this object or its process is gone: nothing
/// is left behind. Whoever would have it meanwhile is told who has it.
class HostLock {
 public:
  /// On that of the calling thread. `holder`: who has it, in words for people. kAlreadyExists, with
  /// those of the one that has it, where somebody still does after `budget`.
  static Result<HostLock> hold(const std::string& name, const std::string& holder, Duration budget);

  /// Readable when somebody asks.
  int fd() const { return socket_.get(); }
  /// Answers all that ask. Never waits.
  void answer();

 private:
  HostLock(UniqueFd socket, std::string holder)
      : socket_(std::move(socket)), holder_(std::move(holder)) {}

  UniqueFd socket_;
  std::string holder_;
};

}  // namespace faultline::agent
