#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/give_up.h"
#include "base/status.h"
#include "base/units.h"
#include "harness/record/observed.h"
#include "harness/site/cluster.h"

namespace faultline::run {

inline constexpr std::string_view kGoodputProgram = "iperf3";

/// The path of a program in $PATH.
std::optional<std::string> findProgram(std::string_view name);

/// What TCP carries over rail 0 from node 1 to node 0, as iperf3's receiver sees it when its first
/// moments are over: the median of several short probes. Nothing where iperf3 is not installed or
/// there is only one node. `folder`: absolute, empty, one in which nodes can write; `logFd` is for
/// what runs there. kAborted when it was given up.
Result<Goodput> measureGoodput(site::Cluster& cluster, const std::string& folder, int logFd,
                               const GiveUp& giveUp);

/// Measures once for each block: the clusters of its runs have the same shape, and come one after
/// the other. What could not be measured is tried again by the next run of the block. Errors are
/// those of `measure`.
class BlockGoodput {
 public:
  Result<Goodput> of(int block, const std::function<Result<Goodput>()>& measure);

 private:
  std::optional<int> block_;
  Goodput known_;
};

/// The median of what `probe` measures when called some times. One that comes to no result is made
/// again, once; after a second one there is no goodput, and the reason; kAborted is returned. Pure,
/// but for the probe.
Result<Goodput> medianGoodput(const std::function<Result<BitsPerSecond>()>& probe);

/// Of what `iperf3 --server --json` has printed; kInvalidArgument when that has no result.
Result<BitsPerSecond> goodputOf(std::string_view report);

}  // namespace faultline::run
