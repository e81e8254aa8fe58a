#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "harness/workload/rank_config.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// One rank of a server of a model: the workload `inference`. It has no iterations that all ranks
/// begin together; the first rank of an instance decides what the next step is, as requests come,
/// and broadcasts that. Not thread-safe.
///
/// What it tells the controller: "begin" when a request's prefill begins, "token" when it has its
/// first token, "end" of a request on every rank that worked on it (by the one that has the last
/// token with "last"), "rate" when the requests of a rate begin to come, "step" when a first rank
/// has done one, and "alive" now and then when it does not wait for anybody, or before it computes
/// for long. Requests are the iterations of the bench.
class Server {
 public:
  struct Hooks {
    /// Sends a message.
    std::function<Status(nlohmann::json)> tell;
    /// Sends one with what has happened on the network since the last.
    std::function<Status(nlohmann::json)> tellAll;
  };

  virtual ~Server() = default;

  /// Makes what it needs of a communicator of all ranks; a collective call, before anything else.
  virtual Status join(comm::Communicator& all) = 0;
  /// Serves the requests for warming up, one after the other.
  virtual Status warmUp(const Hooks& hooks) = 0;
  /// Serves all requests.
  virtual Status serve(const Hooks& hooks) = 0;
};

/// `config` outlives it.
std::unique_ptr<Server> makeServer(const RankConfig& config);

}  // namespace faultline::workload
