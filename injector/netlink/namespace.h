#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "base/unique_fd.h"

/// Linux network objects (namespaces, links, addresses, queues) through libnl, as thin RAII values.
/// Nothing here knows faults, clusters or ranks.
namespace faultline::netlink {

/// The network namespace of the calling thread, held by a descriptor (close-on-exec).
Result<UniqueFd> currentNamespace();

/// Makes a network namespace without a name: it exists as long as a descriptor, a process or a
/// socket holds it, so that nothing is left of it after a SIGKILL. The calling thread stays where
/// it is. Needs CAP_SYS_ADMIN.
Result<UniqueFd> newNamespace();

/// Puts the calling thread into a namespace and back when destroyed. Only system calls of this
/// thread are affected; sockets and open files keep the namespace in which they were opened, and
/// /proc/sys/net is that of the namespace the reader is in. Needs CAP_SYS_ADMIN, but for the
/// namespace where the thread is already: there nothing is done.
class ScopedNamespace {
 public:
  static Result<ScopedNamespace> enter(int namespace_fd);
  ScopedNamespace(ScopedNamespace&&) = default;
  ScopedNamespace& operator=(ScopedNamespace&&) = delete;
  /// Ends the program when the way back is barred: going on in the wrong namespace would damage a
  /// network that is not ours.
  ~ScopedNamespace();

 private:
  explicit ScopedNamespace(UniqueFd home) : home_(std::move(home)) {}
  UniqueFd home_;  ///< none: it never left
};

/// Whether both descriptors are of the same namespace.
Result<bool> isSameNamespace(int one_fd, int other_fd);

/// The number in `net:[4026531840]`: equal exactly for the same namespace.
Result<std::uint64_t> namespaceId(int namespace_fd);

}  // namespace faultline::netlink
