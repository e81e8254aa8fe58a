#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// A process, held so that its number cannot come to mean another one.
class HeldProcess {
 public:
  HeldProcess(pid_t pid, UniqueFd pid_fd) : pid_(pid), pid_fd_(std::move(pid_fd)) {}

  pid_t pid() const { return pid_; }
  int pidFd() const { return pid_fd_.get(); }

  /// kNotFound when it has ended.
  Status signal(int number) const;
  bool hasEnded() const;

  /// Whether all its threads are stopped (state T of proc(5)).
  bool isStopped() const;
  /// CPU time of all its threads so far.
  Duration cpuTime() const;

 private:
  pid_t pid_;
  UniqueFd pid_fd_;
};

/// The processes that run in a network namespace, without this one, without those that have ended
/// and are not reaped yet, and without threads of the kernel; only those that were
/// started with all of `started_with`, "NAME=value" each, in their environment. Reads all of /proc:
/// some milliseconds.
Result<std::vector<HeldProcess>> processesIn(int namespace_fd,
                                             std::span<const std::string> started_with = {});
/// Those that a fault of processes is for.
Result<std::vector<HeldProcess>> processesOf(const netlink::LinkTarget& target);

/// Checks that the kernel can do what is needed: kUnsupported without pidfd (Linux 5.3).
Status requireProcessHandles();

}  // namespace faultline::injector
