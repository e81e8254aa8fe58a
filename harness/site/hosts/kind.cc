#include "harness/site/hosts/kind.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>

#include "base/user_name.h"
#include "harness/site/hosts/cluster.h"
#include "harness/site/hosts/host_faults.h"
#include "harness/site/hosts/host_names.h"
#include "harness/site/hosts/hosts_spec.h"
#include "harness/site/hosts/launcher.h"

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
  if (!own.launcher->thisMachine) return taken;
  const std::int64_t ranks = std::int64_t{spec.nodes} * spec.ranksPerNode;
  taken.processes += ranks;
  taken.threads += ranks * kRankThreads;
  taken.files += ranks * kRankDescriptors;
  taken.memory += ranks * kRankMemory;
  return taken;
}

std::vector<site::MachineCheck> checkMachine() {
  std::vector<site::MachineCheck> checks;
  for (const Launcher* const launcher : launchers()) {
    if (launcher->checkMachine != nullptr) checks.push_back(launcher->checkMachine());
  }
  return checks;
}

/// "run 'quickstart' of alice at login1, since 2026-12-01 09:00:00 UTC"
std::string inWords(const std::string& run) {
  utsname system{};
  const std::string here = ::uname(&system) == 0 ? system.nodename : "?";
  return fmt::format("run '{}' of {} at {}, since {:%Y-%m-%d %H:%M:%S} UTC", run, userName(), here,
                     fmt::gmtime(std::time(nullptr)));
}

Result<std::unique_ptr<site::Cluster>> make(const site::ClusterSpec& spec) {
  HostsSpec own = hostsSpec(spec);
  const std::vector<site::Refusal> wrong = check(own);
  if (!wrong.empty()) return errorf(Code::kInvalidArgument, "cluster: {}", wrong.front().reason);
  own.holder = inWords(spec.run);
  return std::unique_ptr<site::Cluster>(std::make_unique<Cluster>(std::move(own)));
}

}  // namespace

constinit const site::Kind kKind{
    .name = "hosts",
    .summary = "hosts that are there already, by ssh, Slurm or MPI, with the rails that they have",
    .most = kMost,
    .runsRanks = true,
    .mayHaveGpus = true,
    .ownKernels = true,
    .sharesFolder = false,
    .folderSetting = kFolderSetting,
    .takesPrivileges = false,
    .findsRails = true,
    .settings = kSettings,
    .section = sectionOf,
    .complete = findHosts,
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
