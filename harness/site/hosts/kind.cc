#include "harness/site/hosts/kind.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/site/hosts/cluster.h"
#include "harness/site/hosts/host_faults.h"
#include "harness/site/hosts/hosts_spec.h"

namespace faultline::hosts {
namespace {

// ssh, or the agent itself where the host is this machine.
constexpr Bytes kLauncherMemory = 8 << 20;
constexpr std::int64_t kPerHost =
    6;  // the channel, twice, what it prints, its process, its lifeline
constexpr std::int64_t kAgentDescriptors = 16;
// A rank of a host that is this machine, with its connections to some others.
constexpr Bytes kRankMemory = 16 << 20;
constexpr std::int64_t kRankThreads = 4;
constexpr std::int64_t kRankDescriptors = 40;

site::Footprint footprint(const site::ClusterSpec& spec) {
  const HostsSpec own = hostsSpec(spec);
  site::Footprint taken = site::kController;
  taken.processes += spec.nodes;
  taken.threads += spec.nodes;
  taken.descriptors += spec.nodes * kPerHost;
  taken.files = taken.descriptors + spec.nodes * kAgentDescriptors;
  taken.memory += spec.nodes * kLauncherMemory;
  if (own.launcher != Launcher::kLocal) return taken;
  const std::int64_t ranks = std::int64_t{spec.nodes} * spec.ranksPerNode;
  taken.processes += ranks;
  taken.threads += ranks * kRankThreads;
  taken.files += ranks * kRankDescriptors;
  taken.memory += ranks * kRankMemory;
  return taken;
}

std::vector<site::MachineCheck> checkMachine() {
  std::error_code error;
  const bool found = std::filesystem::exists("/usr/bin/ssh", error);
  return {{.group = "hosts",
           .name = "ssh",
           .ok = found,
           .found = found ? "/usr/bin/ssh" : "there is no /usr/bin/ssh",
           .neededFor = "clusters of kind hosts whose launcher is ssh",
           .cost = "only 'launcher: local' works",
           .remedy = "install openssh-client"}};
}

Result<std::unique_ptr<site::Cluster>> make(const site::ClusterSpec& spec) {
  HostsSpec own = hostsSpec(spec);
  const std::vector<site::Refusal> wrong = check(own);
  if (!wrong.empty()) return errorf(Code::kInvalidArgument, "cluster: {}", wrong.front().reason);
  return std::unique_ptr<site::Cluster>(std::make_unique<Cluster>(std::move(own)));
}

}  // namespace

constinit const site::Kind kKind{
    .name = "hosts",
    .summary = "hosts that are there already, by ssh, with the rails that they have",
    .most = site::kMost,
    .runsRanks = true,
    .ownKernels = true,
    .runsPrograms = false,
    .sharesFolder = false,
    .takesPrivileges = false,
    .findsRails = true,
    .settings = kSettings,
    .nodes =
        [](const site::ClusterSpec& spec) {
          return static_cast<int>(hostsSpec(spec).names.size());
        },
    .check = [](const site::ClusterSpec& spec) { return check(hostsSpec(spec)); },
    .refusal = refusal,
    .footprint = footprint,
    .checkMachine = checkMachine,
    .make = make};

}  // namespace faultline::hosts
