#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "harness/workload/rank_config.h"
#include "resilient_ccl/comm/communicator.h"
#include "wire/rank.h"

namespace faultline::workload {

/// One rank of a server of a model: the workload `inference`. It has no iterations that all ranks
/// begin together; the first rank of an instance decides what the next step is, as requests come,
/// and broadcasts that. Not thread-safe.
///
/// What it tells the controller: Begin when a request's prefill begins, Token when it has its
/// first token, End of a request on every rank that worked on it (by the one that has the last
/// token with `last`), Rate when the requests of a rate begin to come, Step when a first rank has
/// done one, and Alive now and then when it does not wait for anybody, or before it computes for
/// long. Requests are the iterations of the bench.
class Server {
 public:
  struct Hooks {
    std::function<Status(const wire::FromRank&)> tell;
    // With what has happened on the network since the last.
    std::function<Status(wire::End)> tellEnd;
    std::function<Status(wire::Served)> tellServed;
  };

  virtual ~Server() = default;

  /// Makes what it needs of a communicator of all ranks; a collective call, before anything else.
  virtual Status join(comm::Communicator& all) = 0;
  /// Serves the requests for warming up, one after the other.
  virtual Status warmUp(const Hooks& hooks) = 0;
  /// Serves all requests.
  virtual Status serve(const Hooks& hooks) = 0;
};

}  // namespace faultline::workload
