#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/status.h"

namespace faultline::site {

/// Processes of ours on the nodes of a cluster: ranks, each with a channel of its own, or guards,
/// which are heard through their agent. Started together, ended together; none outlives this
/// object. Not thread-safe.
class Processes {
 public:
  virtual ~Processes() = default;
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// `process`: its place in the list that was started.
  using Received = std::function<Status(int process, const nlohmann::json& message)>;
  /// Waits at most `timeout` for messages, and hands every one to `received`. One that ends without
  /// having said why is handed over as wire::Gone, once. Errors of `received` are this call's. Also
  /// returns when `interruptFd` is readable (-1: there is none).
  virtual Status poll(Duration timeout, int interruptFd, const Received& received) = 0;

  /// Sends a message to every one that still lives.
  virtual void broadcast(const nlohmann::json& message) = 0;

  /// SIGKILL to all, and waits until they are gone. An error names the agents that hang.
  virtual Status kill() = 0;
  virtual bool allEnded() const = 0;
};

}  // namespace faultline::site
