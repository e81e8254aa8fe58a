#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "base/status.h"
#include "base/units.h"

/// What describes a kind of fault and its parameters. The scenario reader, its JSON Schema,
/// `faultline describe` and the documentation are all made from such descriptions, so that they
/// cannot drift; the faults themselves get their values only through them. No I/O and no netlink
/// here. Each description stands beside the fault that it describes (injector/faults/); all of them
/// are listed by injector/faults/registry.h.
///
/// What every fault has in common (`target`, `at` or `during`, `duration` or `until`, `times`)
/// belongs to the scenario, not to a description.
namespace faultline::netlink {
struct LinkTarget;
}
namespace faultline::rdma {
struct RdmaTarget;
}

namespace faultline::injector {

class Fault;

using faultline::kSlowestRate;
using faultline::ParameterSpec;
using faultline::ParameterType;
using faultline::ParameterValue;
using faultline::Percent;
using faultline::Rate;

/// What a fault acts on.
enum class TargetKind {
  kLink,       ///< the link of one NIC
  kProcesses,  ///< the processes of a node
  kNone,       ///< the machine that the bench runs on, or nothing
  kRdma,       ///< a port of an RDMA device: of this machine, or of a guest
};

/// What a job that finds its failures well holds to be broken, seen from one end of the link; in
/// the words of a result's `failovers[].cause` and `.dead_direction`.
struct Finding {
  std::string_view cause;            ///< "local_nic", "path", ...; "degraded": it lives, and
                                     ///< is found to be slow; empty: no rail is given up
  std::string_view deadDirection{};  ///< which way nothing passes; empty: not asked
  bool orNone = false;               ///< giving no rail up is right as well
  bool orRail = false;               ///< and so is the cause "rail": stuck after an outage
};

/// The word for a finding that nobody can hold against a job.
inline constexpr std::string_view kAnyCause = "any";

/// How a kind of fault is to be found.
struct Signature {
  Finding own;                   ///< at the node that is struck
  Finding peer;                  ///< at the other ends
  std::string_view parameter{};  ///< holds only where this parameter...
  std::string_view value{};      ///< ...has this value; empty: always
};

/// What a fault takes of the bandwidth of its link, for a time.
struct LinkLoss {
  double tx = 1;                     ///< share of what its node sends over it, 0 to 1
  double rx = 1;                     ///< the same of what it receives
  Duration begin{};                  ///< from the beginning of the fault
  std::optional<Duration> length{};  ///< nullopt: until its end
};

class FaultParameters;

/// All that a fault with these parameters takes of a link of this rate (0: not known), if it lasts
/// `longest` at most. Pure.
using DamageModel = std::vector<LinkLoss> (*)(const FaultParameters& parameters, BitsPerSecond rate,
                                              Duration longest);

/// Whether the port of its NIC goes down, as its own node is told at once.
enum class PortEvents {
  kNever,
  kOnce,     ///< until the fault ends
  kBriefly,  ///< and is back while the fault lasts
  kAgain,    ///< and comes back, again and again
};

/// How it can be done to a rail from outside of its node, where nodes are guests.
enum class Outside { kNot, kCable, kSwitch };

/// What of the kernel faults of links work with, beyond what every cluster needs.
enum class KernelMechanism {
  kNone,
  kPortState,        ///< ports go down and come up
  kShaper,           ///< htb and u32
  kDropFilter,       ///< clsact and cls_bpf
  kPacketProgram,    ///< eBPF programs for packets
  kSocketDestroy,    ///< SOCK_DESTROY
  kBridgePortState,  ///< ports of a bridge stop forwarding
};

/// A mechanism without which a kind of fault is not possible.
struct KernelNeed {
  KernelMechanism mechanism = KernelMechanism::kNone;
  std::string_view when{};  ///< needed only so, as a scenario writes it: "how: reset"
};

/// Makes a fault of a link, or of the processes of a namespace; `parameters` are those of its kind.
using FaultMaker = std::unique_ptr<Fault> (*)(const FaultParameters& parameters,
                                              const netlink::LinkTarget& target);
/// The same of an RDMA device.
using DeviceFaultMaker = std::unique_ptr<Fault> (*)(const FaultParameters& parameters,
                                                    const rdma::RdmaTarget& target);

/// The usual maker: that of a class whose constructor takes the same.
template <typename Kind, typename Target>
std::unique_ptr<Fault> makeOne(const FaultParameters& parameters, const Target& target) {
  return std::make_unique<Kind>(parameters, target);
}

/// One kind of fault.
struct FaultKind {
  std::string_view name;
  std::string_view summary;   ///< what it does, in one sentence
  std::string_view sees;      ///< what the job can notice of it
  std::string_view evidence;  ///< the independent observation that proves it
  std::string_view undo;      ///< how it is taken back, also when everything of ours is killed
  std::span<const ParameterSpec> parameters{};
  bool cutsLink = false;  ///< nothing passes from its beginning to its end
  TargetKind target = TargetKind::kLink;
  bool forGood = false;  ///< cannot be taken back
  /// The first that holds counts; none: no rail may be given up.
  std::span<const Signature> signatures{};
  bool alone = false;  ///< one fault of these kinds at a time can be at one end of a link
  /// Several links of one rail can have it at a time: what proves it does not need their switch.
  bool ofWholeRails = false;
  bool between = false;  ///< acts on the path between the links of two nodes, which stay whole
  bool slows = false;    ///< its link lives, and is to be found slow
  bool endsProcesses = false;   ///< for good
  bool lasts = false;           ///< until programs mend what it did, however long it is applied
  bool ofConnections = false;   ///< acts on TCP connections that programs have
  bool endsConnection = false;  ///< ib_write_bw does not survive it (docs/verbs.md)
  Outside outside = Outside::kNot;
  PortEvents portEvents = PortEvents::kNever;
  DamageModel damage = nullptr;  ///< nullptr: what it takes is not known
  std::string_view unproven{};   ///< what of it nobody has seen work yet; empty: nothing
  KernelNeed needs{};            ///< `faultline doctor` says whether it is there
  bool ofQueuePairs = false;     ///< strikes queue pairs, by the verbs shim in their program
  FaultMaker make = nullptr;     ///< nullptr: it is a fault of RDMA devices
  DeviceFaultMaker makeForDevice = nullptr;  ///< of RDMA devices; nullptr: of anything else
};

/// What a new user is offered first.
inline constexpr std::string_view kUsualFault = "port_down";

/// How this fault is to be found, given its parameters as a scenario writes them.
Signature signatureOf(const FaultKind& kind, const std::map<std::string, std::string>& parameters);

/// The kind with its first parameter and those that are not as usual, as a scenario writes them:
/// "port_down carrier", "throttle 10% tx".
std::string shortName(const FaultKind& kind, const std::map<std::string, std::string>& parameters);

/// nullptr when the fault has no such parameter.
const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name);

/// The values of one fault, complete: every parameter of its kind has one.
class FaultParameters : public Parameters {
 public:
  FaultParameters() = default;
  explicit FaultParameters(Parameters values) : Parameters(std::move(values)) {}

  /// Reads `texts` (name -> value as written) and fills in defaults. Unknown names, missing
  /// required ones and bad values are kInvalidArgument.
  static Result<FaultParameters> parse(const FaultKind& kind,
                                       const std::map<std::string, std::string>& texts);
};

/// What it does, and what of it nobody has seen work yet: where many are listed.
std::string summaryOf(const FaultKind& kind);

/// The page of `faultline describe <fault>`: plain text of at most 100 columns. `cluster` is what a
/// scenario writes to have nodes with RDMA devices, for faults of these.
std::string describeFault(const FaultKind& kind, std::string_view cluster);

}  // namespace faultline::injector
