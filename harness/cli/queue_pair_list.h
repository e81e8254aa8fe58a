#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

/// Where the queue pairs of a process can be read.
namespace faultline::cli {

/// One of them; what the source does not tell is missing.
struct QueuePairRow {
  std::string device;
  std::uint32_t number = 0;
  std::string type;
  std::string state;
  std::optional<std::uint32_t> peerNumber;  ///< 0: not connected
  std::optional<std::uint32_t> peerLid;     ///< 0: none, as with RoCE
  std::optional<std::string> peerGid;       ///< empty: none
  bool shim = false;                        ///< the process's shim knows it: it can have faults
  bool operator==(const QueuePairRow&) const = default;
};

struct QueuePairList {
  std::string source;  ///< who has told
  std::vector<QueuePairRow> queuePairs;
  /// Why none of them can have faults; empty: the shim has told of them.
  std::string noFaults;
};

/// What the kernel tells, its blanks filled from what the shim tells of the same queue pairs; and
/// those that the shim alone knows, at the end. Pure.
std::vector<QueuePairRow> merge(std::vector<QueuePairRow> of_kernel,
                                const std::vector<QueuePairRow>& of_shim);

/// From the kernel and from the process's shim, as far as they know the process. When neither does,
/// the code of the error is that of the shim, which is the one that faults need, and its message
/// has what both said.
Result<QueuePairList> listQueuePairs(int pid);

}  // namespace faultline::cli
