#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "base/units.h"
#include "harness/site/cluster_look.h"
#include "harness/site/processes.h"
#include "harness/site/settings.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "wire/agent.h"
#include "wire/guard.h"

/// Where a run takes place. docs/site.md.
namespace faultline::site {

/// What cluster a run needs.
struct ClusterSpec {
  int nodes = 1;
  int ranksPerNode = 1;             ///< processes of the job on each node that has any
  int rails = 1;                    ///< NICs of each node besides the one of the management network
  BitsPerSecond railRate = 0;       ///< in each direction; 0: whatever the rails carry
  std::string congestionControl{};  ///< of TCP on the nodes; empty: as they have it
  /// Absolute path of a folder in which all nodes' programs read and write; empty: none.
  std::string folder{};
  std::string run{};        ///< its name, for others who find its nodes in use
  RailChoice railChoice{};  ///< of a kind that finds its rails
  Settings settings{};      ///< what the keys say that its kind adds
};

/// A NIC as programs on its node are told of it.
struct Nic {
  std::string interface;
  std::string address;
  bool operator==(const Nic&) const = default;
};

/// How a node and the others find each other.
struct NodeNetwork {
  Nic management;
  std::vector<Nic> rails;
  bool operator==(const NodeNetwork&) const = default;
};

/// What a NIC has carried since the cluster is there, as the network around its node counts it.
struct RailCounters {
  std::uint64_t tx_bytes = 0;  ///< sent by the node
  std::uint64_t rx_bytes = 0;  ///< towards the node
};

/// What a fault acts on.
struct FaultTarget {
  int node = 0;
  std::optional<int> rail{};  ///< its NIC; nullopt: the management network, or the node's processes
  std::optional<int> peer{};  ///< of faults of the path between two nodes: the other one
  /// Of faults of processes: only of those with this in the environment that they were started
  /// with, "NAME=value". Empty: all of the node's.
  std::string startedWith{};
};

/// A rank to be started.
struct RankProcess {
  int node = 0;
  nlohmann::json config;                             ///< its first message
  std::map<std::string, std::string> environment{};  ///< besides the bench's own
};

/// A file that a program writes, besides what it prints.
struct WrittenFile {
  std::string path{};  ///< relative to GuardProcess::folder
  wire::Bringing how{};
};

/// The guard of a node (harness/agent/guard.h) and what it is to start there.
struct GuardProcess {
  int node = 0;
  /// Without its network namespace, which the node's agent knows. What programs print goes below
  /// Cluster::folderThere().
  wire::GuardJob job;
  // Where a node does not share the run's folder (Cluster::folderThere):
  std::string folder{};              ///< here, absolute: gets copies of what is printed, and of
  std::vector<WrittenFile> files{};  ///< these
  std::vector<std::string> needs{};  ///< files that must be there by the same path as here
};

/// Some nodes and the network between them, while it exists. What comes from it (processes, faults)
/// refers to it and ends before it. Not thread-safe.
class Cluster {
 public:
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int nodes() const { return static_cast<int>(network_.size()); }
  int rails() const { return static_cast<int>(network_.at(0).rails.size()); }
  /// What a rail carries in each direction, where that is found with the rails; 0: it is not known.
  virtual BitsPerSecond railRate() const { return 0; }
  /// By node. Known before build(), but of a kind that finds its rails (Kind::findsRails) only
  /// after it.
  const std::vector<NodeNetwork>& network() const { return network_; }

  /// Makes the nodes ready for processes. `giveUp` is asked by it, and from then on by what starts
  /// processes. Nothing is left behind after an error.
  virtual Status build(const GiveUp& giveUp) = 0;

  /// In place of build(), and with nothing else after it: what its nodes are like, each of them,
  /// also where some cannot be used. kUnsupported where they are not there already.
  virtual Result<ClusterLook> look(const GiveUp& /*giveUp*/) {
    return errorf(Code::kUnsupported,
                  "nodes of this kind of cluster are made for a run: there is "
                  "nothing to be looked at before it");
  }

  /// Starts ranks, this program with the hidden verb `rank`; they log into `logFd`. kUnsupported
  /// where a cluster has none (Kind::runsRanks), kAborted when it was given up: none is left.
  virtual Result<std::unique_ptr<Processes>> startRanks(const std::vector<RankProcess>& ranks,
                                                        int logFd) = 0;
  /// Where the programs of a node find what is here in `folder`, absolute: there, too, unless they
  /// share none with this machine. Then it is a folder that is made for a guard and removed after
  /// it. To be asked after build().
  virtual std::string folderThere(int /*node*/, const std::string& folder) const { return folder; }
  /// Absolute path of a folder of this cluster's own that all its nodes share, though they do not
  /// share that of the run; empty: there is none. It goes with the cluster. Known after build().
  virtual std::string sharedFolder() const { return ""; }

  /// Starts a guard for each. The times in what they say are those of this process's clock.
  virtual Result<std::unique_ptr<Processes>> startGuards(const std::vector<GuardProcess>& guards,
                                                         int logFd) = 0;

  /// A fault that is not prepared yet. Kind::refusal() tells before which are possible.
  virtual Result<std::unique_ptr<injector::Fault>> makeFault(
      const std::string& kind, const injector::FaultParameters& parameters,
      const FaultTarget& target) = 0;

  /// Byte counters of all NICs, index node * rails + rail; cheap enough for every millisecond.
  /// `counters` is overwritten and its memory reused.
  virtual Status readRailCounters(std::vector<RailCounters>& counters) = 0;
  /// Bytes of payload that the network has delivered to all nodes; control datagrams and ARP do not
  /// count. kUnsupported where the two cannot be told apart.
  virtual Result<std::uint64_t> payloadDelivered() {
    return errorf(Code::kUnsupported, "this cluster does not tell payload from control");
  }
  /// IP type of service of messages that the network is to prefer.
  virtual int controlTos() const { return 0; }

  /// What of it shapes a result, for the report's environment: "cluster", "mtu", "rail_rate", ...
  virtual Result<std::map<std::string, std::string>> describe() const = 0;
  /// Which part of it is gone though no fault struck it, for people; empty: none is. A run that
  /// loses a part has a result that says so.
  virtual std::string lost() const { return ""; }
  /// Commands to look inside with while it is kept; none: there is nothing to be looked at.
  /// `nsenter` is how they begin, where they enter namespaces: with what enters the user namespace
  /// of this process, if it has one of its own.
  virtual std::vector<std::string> waysToLookInside(const std::string& /*nsenter*/) const {
    return {};
  }

 protected:
  explicit Cluster(std::vector<NodeNetwork> network) : network_(std::move(network)) {}
  void setNetwork(std::vector<NodeNetwork> network) { network_ = std::move(network); }

 private:
  std::vector<NodeNetwork> network_;
};

}  // namespace faultline::site
