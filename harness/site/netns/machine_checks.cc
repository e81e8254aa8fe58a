#include "harness/site/netns/machine_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "harness/launch/privileges.h"
#include "harness/site/netns/kind.h"
#include "harness/site/netns/probe.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::netns {
namespace {

using injector::KernelMechanism;

constexpr const char* kClusterGroup = "clusters inside this machine (network namespaces)";

/// What is known of the mechanisms that probe() tries, beyond what it says. They are needed for
/// `uses`, and for the faults that need `mechanism`.
struct Row {
  std::string_view name;
  bool required;
  std::string_view uses;
  KernelMechanism mechanism;
  std::string_view remedy;
};

constexpr std::string_view kContainer =
    "use a kernel that has it; in a container, start it with --privileged, or with the "
    "capabilities NET_ADMIN, NET_RAW and SYS_ADMIN and /proc/sys writable";
constexpr KernelMechanism kNone = KernelMechanism::kNone;

constexpr std::array kRows{
    Row{"privileges", true, "making namespaces and links", kNone,
        "run as root, or allow user namespaces (see what was found)"},
    Row{"network namespace", true, "one node of a cluster each", kNone, kContainer},
    Row{"network settings", true, "traffic that nothing but the scenario disturbs", kNone,
        kContainer},
    Row{"veth", true, "rails: the cable between a node and a switch", kNone,
        "modprobe veth as root; or a kernel with CONFIG_VETH"},
    Row{"port up and down", true, "", KernelMechanism::kPortState, kContainer},
    Row{"interface counters", true,
        "faults in the middle of an iteration, and bytes per rail in the report", kNone,
        kContainer},
    Row{"packet socket", false, "evidence of faults while the job itself sends nothing", kNone,
        kContainer},
    Row{"htb and u32", true, "rail_rate", KernelMechanism::kShaper,
        "modprobe sch_htb cls_u32 as root; or a kernel with CONFIG_NET_SCH_HTB and "
        "CONFIG_NET_CLS_U32"},
    Row{"clsact and cls_bpf", false, "", KernelMechanism::kDropFilter,
        "modprobe sch_ingress cls_bpf as root; or a kernel with CONFIG_NET_CLS_BPF"},
    Row{"eBPF programs for packets", false, "", KernelMechanism::kPacketProgram,
        "run as root of the machine, outside of a user namespace (CAP_BPF)"},
    Row{"SOCK_DESTROY", false, "", KernelMechanism::kSocketDestroy,
        "a kernel with CONFIG_INET_DIAG_DESTROY"},
    Row{"bridge", true, "the switches of a cluster", kNone,
        "modprobe bridge as root; or a kernel with CONFIG_BRIDGE"},
    Row{"bridge port state", false, "", KernelMechanism::kBridgePortState, kContainer},
};

std::string neededFor(const Row& row) {
  std::string text(row.uses);
  if (row.mechanism == kNone) return text;
  return text + (text.empty() ? "" : ", and ") + injector::faultsThatNeed(row.mechanism);
}

std::string clustersOfThisKind() { return fmt::format("clusters of kind {}", kKind.name); }

void addCluster(std::vector<site::MachineCheck>& checks) {
  const auto probed = probe();
  if (!probed.ok()) {
    checks.push_back({kClusterGroup, "trial", false, true, probed.status().message(),
                      "knowing what this kernel can do", clustersOfThisKind(),
                      "see what was found"});
    return;
  }
  for (const Capability& capability : *probed) {
    const auto* const known = std::ranges::find(kRows, capability.name, &Row::name);
    const bool isKnown = known != kRows.end();
    site::MachineCheck check{
        kClusterGroup,      capability.name,
        capability.ok,      isKnown ? known->required : true,
        capability.details, isKnown ? neededFor(*known) : clustersOfThisKind(),
        capability.cost,    std::string(isKnown ? known->remedy : "see what was found")};
    if (capability.ok && capability.name == "privileges") {
      check.found = ::geteuid() == 0 ? "root" : "root of a user namespace of our own";
    }
    checks.push_back(std::move(check));
  }
}

/// Whether somebody who is not root could run here as well.
void addRootless(std::vector<site::MachineCheck>& checks) {
  const launch::UserNamespaceFacts facts = launch::readUserNamespaceFacts();
  const bool blocked =
      facts.apparmor_restricts || facts.unprivileged_disabled || facts.limit_is_zero;
  checks.push_back({kClusterGroup, "user namespaces", !blocked, false,
                    blocked ? launch::explainUserNamespaceRefusal(EPERM, facts).message()
                            : "no setting forbids them",
                    "running without root", "everything must be run as root",
                    "change the setting that was found, or run as root"});
}

}  // namespace

std::vector<site::MachineCheck> checkMachine() {
  std::vector<site::MachineCheck> checks;
  addCluster(checks);
  addRootless(checks);
  return checks;
}

}  // namespace faultline::netns
