#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/control/interrupt.h"
#include "harness/launch/process.h"

namespace faultline::run {

/// The processes of one attempt at a run, each of which has a message channel: ranks, or the guards
/// of nodes. Started together, ended together.
class RankGroup {
 public:
  /// One process for each; `what` they are, for messages.
  static Result<RankGroup> start(const std::vector<launch::SpawnOptions>& processes,
                                 std::string_view what);

  using Received = std::function<Status(int rank, const nlohmann::json& message)>;
  /// Waits at most `timeout` for messages, and hands every one to `received(rank, message)`. A rank
  /// that ends without having said why is handed over as wire::Gone, once. Errors of `received`
  /// are this call's.
  /// Also returns when `interrupt` has a signal.
  Status poll(Duration timeout, Interrupt& interrupt, const Received& received);

  /// Sends a message to every rank that still lives.
  void broadcast(const nlohmann::json& message);

  /// SIGKILL to all, and waits until they are gone.
  Status kill();
  bool allEnded() const;

 private:
  struct Rank {
    launch::Process process;
    bool silent = false;  // nothing more will come from it
  };
  RankGroup(std::vector<Rank> ranks, std::string_view what)
      : what_(what), ranks_(std::move(ranks)) {}

  Status drain(int rank, const Received& received);

  std::string what_;  // they are
  std::vector<Rank> ranks_;
};

}  // namespace faultline::run
