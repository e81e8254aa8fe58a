#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "harness/site/cluster.h"
#include "harness/site/footprint.h"
#include "harness/site/limits.h"
#include "harness/site/machine_check.h"
#include "harness/site/settings.h"
#include "injector/fault_kind.h"

namespace faultline::site {

/// The key of a refusal whatever the fault's parameters are.
inline constexpr std::string_view kRefusedKind = "kind";

/// Why something cannot be done.
struct Refusal {
  std::string key{};     ///< as a scenario writes it: "kind", "rate"; empty: it can
  std::string reason{};  ///< with what to do
};

/// One kind of cluster: all that the scenario language, its checks and `faultline describe` say of
/// it, and how one is made.
struct Kind {
  std::string_view name;     ///< as `cluster.kind` has it
  std::string_view summary;  ///< what its nodes are; "a guest of qemu per node, ..."
  Limits most = kMost;
  bool runsRanks = false;    ///< ranks of ours, and not only programs that are not
  bool mayHaveGpus = false;  ///< programs on its nodes see those of the machine
  bool shapesRails = false;  ///< `rail_rate` is for it
  bool rdmaDevices = false;  ///< each rail of a node is one of an RDMA device of its own
  /// Nodes have a kernel each: what processes take there is not taken from this machine, and their
  /// settings are not the bench's to choose.
  bool ownKernels = false;
  bool strikesManagement = false;  ///< faults of the management network are possible
  /// Programs on its nodes read and write the folder of the run.
  bool sharesFolder = true;
  /// Its key that names a folder which its nodes share though they do not share that one
  /// (Cluster::sharedFolder()); empty: it has none.
  std::string_view folderSetting{};
  /// To make one takes the rights to make namespaces and links here (launch/privileges.h).
  bool takesPrivileges = true;
  /// Its rails are there already, and are found when it is built: `rails` may be `auto` or names of
  /// interfaces, and `rail_rate` says what they carry where nobody tells that.
  bool findsRails = false;
  /// Keys of `cluster` that it adds.
  std::span<const Setting> settings{};

  /// The YAML of a cluster for a word of the command line that is no file, "slurm" say; empty: it
  /// is no such word. kInvalidArgument: it is one, and wrong. Pure. Null: there is none.
  Result<std::string> (*section)(std::string_view word) = nullptr;
  /// Puts what surrounds this process in place of what the keys leave to it, names of nodes say.
  /// Called when a scenario is read, once and before the following ones. Null: nothing is left.
  Refusal (*complete)(ClusterSpec& spec) = nullptr;
  /// How many nodes there are by its own keys. Pure. Null: `nodes` says it.
  int (*nodes)(const ClusterSpec& spec) = nullptr;
  /// What is wrong with its own keys and with `rails`. Pure. Null: nothing can be.
  std::vector<Refusal> (*check)(const ClusterSpec& spec) = nullptr;
  /// Whether this fault is possible there; kRefusedKind is the key where it is not, whatever the
  /// parameters (none are given then, too). Which other kinds can is said by who asks. Pure.
  Refusal (*refusal)(const injector::FaultKind& kind, const injector::FaultParameters& parameters);
  /// What the cluster itself takes of this machine, with the controller's part of it. Pure.
  Footprint (*footprint)(const ClusterSpec& spec);
  /// What it needs of this machine, in groups of its own, and whether it is there; tried where that
  /// is the only way to know, and nothing stays behind. Call it while the process has one thread.
  std::vector<MachineCheck> (*checkMachine)();
  /// One that is not built yet. kInvalidArgument for a spec that is not possible.
  Result<std::unique_ptr<Cluster>> (*make)(const ClusterSpec& spec);
};

}  // namespace faultline::site
