#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/control/fault_control.h"
#include "harness/control/interrupt.h"
#include "harness/control/sampler.h"
#include "harness/scenario/scenario.h"
#include "harness/site/netns/cluster.h"
#include "wire/guard.h"

namespace faultline::run {

/// Where the programs of one run of a command live: a cluster of some kind, with a guard
/// (launch/guard.h) on each node. Samplers and faults that come from it refer to it.
class ProgramGround {
 public:
  virtual ~ProgramGround() = default;

  virtual Sampler sampler() = 0;
  virtual Result<FaultControl> faults(const scenario::Scenario& scenario) = 0;

  /// What one node is to run; `networkNamespace` is filled in here.
  struct NodeJob {
    int node = 0;
    wire::GuardJob job;
  };
  /// Starts a guard for each; `log_fd` is where they log to.
  virtual Status start(std::vector<NodeJob> jobs, int log_fd) = 0;

  /// As RankGroup::poll, with the place of the guard in the list that was started. Times in
  /// messages are those of this machine's clock.
  using Received = std::function<Status(std::size_t guard, const wire::FromGuard& message)>;
  virtual Status poll(Duration timeout, Interrupt& interrupt, const Received& received) = 0;
  /// A message to every guard that still lives.
  virtual void broadcast(const wire::ToGuard& message) = 0;
  /// Ends all guards and what they have started.
  virtual Status kill() = 0;

  /// For the report's environment.
  virtual Result<std::map<std::string, std::string>> describe() = 0;
  /// The cluster, to be looked at after the run; null where that is not possible.
  virtual std::unique_ptr<netns::Cluster> keep() { return nullptr; }
};

/// The cluster of the scenario. `folder` is the run's own, absolute: all programs can write there.
/// `interrupt` ends what takes long (kAborted).
Result<std::unique_ptr<ProgramGround>> makeGround(const scenario::Scenario& scenario,
                                                  const std::string& folder, Interrupt& interrupt);

}  // namespace faultline::run
