#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/site/netns/cluster.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::test {

/// Nothing that these tests wait for takes so long.
inline constexpr Duration kLong = 30s;

struct JobOptions {
  std::string policy = "pinned";
  /// Communicators of all ranks over one fabric; the reductions take turns on them.
  int communicators = 1;
  int ioThreads = 0;
  int ranksPerNode = 1;
  std::string algorithm = "ring";
  schedule::PortBandwidths bandwidths{};
  Duration railGrace = 2s;
  Duration giveUp = 10s;
};

/// Ranks on the nodes of a cluster, each a thread inside its node's network namespace, that reduce
/// without a pause and check every element of every result.
class Job {
 public:
  /// Starts the ranks, which reduce `elements` of 4 bytes at a time.
  Job(netns::Cluster& cluster, std::int64_t elements, const JobOptions& options = {});
  /// Stops what still runs.
  ~Job();

  /// Whether all ranks are connected; false after an error, which is in `problems`.
  bool awaitConnected();
  /// Reductions that every rank has finished and checked.
  std::int64_t iterations() const;
  /// All ranks stop after the same reduction and leave in order.
  void stop();

  int size() const { return static_cast<int>(ranks_.size()); }
  comm::CommunicatorEvents events(int rank) const;
  std::int64_t wrongElements() const;
  std::int64_t checkedElements() const;
  /// Errors of any rank.
  std::vector<std::string> problems() const;

 private:
  struct Rank {
    std::atomic<std::int64_t> iterations{0};
    std::atomic<std::int64_t> wrong{0};
    std::atomic<std::int64_t> checked{0};
    std::unique_ptr<comm::Communicator> comm;                 // to be read once `connected`
    std::vector<std::unique_ptr<comm::Communicator>> others;  // of the same ranks
    std::atomic<bool> connected{false};
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  void run(int rank);
  comm::Communicator& communicatorOf(Rank& rank, std::int64_t iteration) const;
  void reduceUntilStopped(int rank);
  void problem(int rank, const Status& status);

  netns::Cluster& cluster_;
  std::int64_t elements_;
  JobOptions options_;
  std::uint16_t port_;
  const auth::JobKey jobKey_ = auth::JobKey::random();
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Rank>> ranks_;
  mutable std::mutex mutex_;
  std::vector<std::string> problems_;
};

}  // namespace faultline::test
