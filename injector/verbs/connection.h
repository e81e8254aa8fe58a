#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/verbs/rule.h"
#include "injector/verbs/wire.h"

namespace faultline::injector::verbs {

/// How to get the shim into a program, for messages.
inline constexpr const char* kHowToLoad =
    "start it with LD_PRELOAD=<folder>/libfaultline-verbs.so, or, what loads libibverbs itself, "
    "with "
    "NCCL_IBVERBS_LIB (NCCL 2.30 on) or MSCCLPP_IBV_SO (MSCCL++) set to it";

/// The controller's end of the socket of one process's shim. Faults that are armed over it end with
/// it. Calls wait at most some seconds for the answer.
class Connection {
 public:
  /// kNotFound: there is no such process. kUnavailable: it has no shim, or has not opened an RDMA
  /// device yet; the message says which and what to do. kPermissionDenied: it is somebody else's.
  static Result<Connection> open(pid_t pid);

  Result<ShimFacts> hello();
  Result<std::vector<QueuePairFacts>> list();
  /// Its number. kNotFound: no queue pair is meant.
  Result<std::uint64_t> arm(const Rule& rule);
  /// Renews the leases of all faults of this connection.
  Result<Counters> counters(std::uint64_t fault);
  /// kNotFound when its lease has ended.
  Result<Counters> disarm(std::uint64_t fault);

  pid_t pid() const { return pid_; }

 private:
  Connection(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}
  Result<Message> ask(const Message& request);

  pid_t pid_;
  UniqueFd fd_;
};

}  // namespace faultline::injector::verbs
