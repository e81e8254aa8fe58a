#include "harness/site/netns/machine_checks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "harness/launch/privileges.h"
#include "harness/site/netns/probe.h"

namespace faultline::netns {
namespace {

constexpr const char* kClusterGroup = "clusters inside this machine (network namespaces)";

/// What is known of the mechanisms that probe() tries, beyond what it says.
struct Mechanism {
  std::string_view name;
  bool required;
  std::string_view neededFor;
  std::string_view remedy;
};

constexpr std::string_view kContainer =
    "use a kernel that has it; in a container, start it with --privileged, or with the "
    "capabilities NET_ADMIN, NET_RAW and SYS_ADMIN and /proc/sys writable";

constexpr std::array kMechanisms{
    Mechanism{"privileges", true, "making namespaces and links",
              "run as root, or allow user namespaces (see what was found)"},
    Mechanism{"network namespace", true, "one node of a cluster each", kContainer},
    Mechanism{"network settings", true, "traffic that nothing but the scenario disturbs",
              kContainer},
    Mechanism{"veth", true, "rails: the cable between a node and a switch",
              "modprobe veth as root; or a kernel with CONFIG_VETH"},
    Mechanism{"port up and down", true, "the faults port_down and port_flap", kContainer},
    Mechanism{"interface counters", true,
              "faults in the middle of an iteration, and bytes per rail in the report", kContainer},
    Mechanism{"packet socket", false, "evidence of faults while the job itself sends nothing",
              kContainer},
    Mechanism{"htb and u32", true, "rail_rate, and the fault throttle",
              "modprobe sch_htb cls_u32 as root; or a kernel with CONFIG_NET_SCH_HTB and "
              "CONFIG_NET_CLS_U32"},
    Mechanism{"clsact and cls_bpf", false, "the faults loss and one_way_loss",
              "modprobe sch_ingress cls_bpf as root; or a kernel with CONFIG_NET_CLS_BPF"},
    Mechanism{"eBPF programs for packets", false,
              "faults that look at every packet (docs/faults.md)",
              "run as root of the machine, outside of a user namespace (CAP_BPF)"},
    Mechanism{"SOCK_DESTROY", false, "the fault connection_reset (how: reset)",
              "a kernel with CONFIG_INET_DIAG_DESTROY"},
    Mechanism{"bridge", true, "the switches of a cluster",
              "modprobe bridge as root; or a kernel with CONFIG_BRIDGE"},
    Mechanism{"bridge port state", false, "the faults blackhole and path_flap", kContainer},
};

void addCluster(std::vector<site::MachineCheck>& checks) {
  const auto probed = probe();
  if (!probed.ok()) {
    checks.push_back({kClusterGroup, "trial", false, true, probed.status().message(),
                      "knowing what this kernel can do", "clusters of kind netns",
                      "see what was found"});
    return;
  }
  for (const Capability& capability : *probed) {
    const auto* const known =
        std::find_if(kMechanisms.begin(), kMechanisms.end(),
                     [&](const Mechanism& row) { return row.name == capability.name; });
    const bool isKnown = known != kMechanisms.end();
    site::MachineCheck check{
        kClusterGroup,      capability.name,
        capability.ok,      isKnown ? known->required : true,
        capability.details, std::string(isKnown ? known->neededFor : "clusters of kind netns"),
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
