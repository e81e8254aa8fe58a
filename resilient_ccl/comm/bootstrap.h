#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/comm/signed_line.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::comm {

struct BootstrapOptions {
  int rank = 0;
  int size = 1;
  auth::JobKey jobKey;
  std::uint32_t address = 0;            ///< own management address
  transport::tcp::Endpoint rendezvous;  ///< where rank 0 listens
  /// Rank 0 may bring the socket that listens there; else it makes it.
  UniqueFd listener = {};
  Duration timeout = 30s;
};

/// How the ranks of a job find each other over the management network: a star around rank 0. Both
/// ends of a connection prove that they have the job's key, and everything said on it is signed.
/// The connections stay open until the end. Not thread-safe.
class Bootstrap {
 public:
  /// Rank 0 waits for all others, the others connect (trying again until the timeout). An error
  /// names the ranks that are missing.
  static Result<std::unique_ptr<Bootstrap>> connect(BootstrapOptions options);

  /// Everybody's bytes, by rank. A collective call: `offer` and `collect`.
  Result<std::vector<std::string>> allGather(const std::string& mine);
  /// Tells mine and waits for nobody.
  Status offer(const std::string& mine);
  /// Waits for the others; they are through, or gone, when all `connections` are readable.
  Result<std::vector<std::string>> collect(const std::string& mine);

  /// Connections whose end hints that the other process has ended: rank 0 has all, the others rank
  /// 0's. Nothing is said on them any more when the job has begun.
  struct Connection {
    int rank;
    int fd;
  };
  std::vector<Connection> connections() const;

 private:
  explicit Bootstrap(BootstrapOptions options)
      : options_(std::move(options)), authenticator_(options_.jobKey) {}
  Status acceptAll(TimePoint deadline);
  Status connectToRoot(TimePoint deadline);
  std::string missingRanks() const;
  Status send(int rank, const std::string& blob, TimePoint deadline);
  Result<std::string> receive(int rank, TimePoint deadline);

  BootstrapOptions options_;
  auth::Authenticator authenticator_;
  std::vector<SignedLine> peers_;  // by rank; rank 0: all others; others: only [0]
};

}  // namespace faultline::comm
