#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::comm {

struct BootstrapOptions {
  int rank = 0;
  int size = 1;
  std::uint64_t jobKey = 0;
  std::uint32_t address = 0;            ///< own management address
  transport::tcp::Endpoint rendezvous;  ///< where rank 0 listens
  Duration timeout = 30s;
};

/// How the ranks of a job find each other over the management network: a star around rank 0. The
/// connections stay open until the end, so that a process that dies is noticed at once.
class Bootstrap {
 public:
  /// Rank 0 waits for all others, the others connect (trying again until the timeout). An error
  /// names the ranks that are missing.
  static Result<std::unique_ptr<Bootstrap>> connect(const BootstrapOptions& options);

  /// Everybody's bytes, by rank. A collective call.
  Result<std::vector<std::string>> allGather(const std::string& mine);

  /// An orderly end: returns when every rank has called it, at the latest after the timeout; at
  /// once when one is gone. After it nobody misses anybody. The connections stay open until
  /// destruction.
  Status goodbye();

  /// Connections to watch for the end of other processes: rank 0 has all, the others rank 0's.
  struct Connection {
    int rank;
    int fd;
  };
  std::vector<Connection> connections() const;

 private:
  explicit Bootstrap(const BootstrapOptions& options) : options_(options) {}
  Status acceptAll(TimePoint deadline);
  Status connectToRoot(TimePoint deadline);
  std::string missingRanks() const;

  BootstrapOptions options_;
  std::vector<UniqueFd> peers_;  // by rank; rank 0: all others; others: only [0]
};

}  // namespace faultline::comm
