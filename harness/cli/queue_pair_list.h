#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
};

struct QueuePairList {
  std::string_view source;  ///< who has told
  std::vector<QueuePairRow> queuePairs;
};

/// From the first source that knows the process. The code of the error is that of the last one
/// asked, which is the one that faults need; its message has what each of them said.
Result<QueuePairList> listQueuePairs(int pid);

}  // namespace faultline::cli
