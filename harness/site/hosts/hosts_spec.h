#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "harness/site/cluster.h"
#include "harness/site/kind.h"
#include "harness/site/settings.h"

namespace faultline::hosts {

struct Launcher;

/// What a scenario says of the hosts, with defaults filled in.
struct HostsSpec {
  const Launcher* launcher = nullptr;  ///< who starts the agent of a host; never null
  std::vector<std::string> names;
  std::string management;  ///< name of the interface; empty: it is found
  std::string folder;      ///< that all hosts see, for checkpoints; empty: there is none
  std::string program;     ///< path of this program on the hosts; empty: as it is here
  /// How these are called: the command, and what options it gets.
  std::vector<std::string> ssh;
  std::vector<std::string> srun;
  std::vector<std::string> mpirun;
  std::string job;     ///< of Slurm; empty: that of the environment
  Duration lease{};    ///< who is silent for so long is lost
  std::string holder;  ///< who has the hosts, for those who would have them, too
  int ranksPerNode = 1;
  site::RailChoice railChoice;
  int rails = 0;               ///< how many, where the choice has no names
  BitsPerSecond railRate = 0;  ///< as the scenario says; 0: it does not
};

/// Agents are light, and ranks are not: what one machine starts and hears (docs/hosts.md).
inline constexpr site::Limits kMost{
    .nodes = 512, .ranksPerNode = site::kMost.ranksPerNode, .rails = site::kMost.rails};
/// Of all hosts together, as of other clusters.
inline constexpr int kMostRanks = site::kMost.nodes * site::kMost.ranksPerNode;

/// The key of a folder that all hosts see.
inline constexpr std::string_view kFolderSetting = "folder";
/// The keys that the kind adds.
extern const std::array<site::Setting, 10> kSettings;
HostsSpec hostsSpec(const site::ClusterSpec& spec);
/// What is wrong with it.
std::vector<site::Refusal> check(const HostsSpec& spec);

/// What is executed here for the agent of a host. `ownProgram`: the path of this program.
std::vector<std::string> agentCommand(const HostsSpec& spec, const std::string& host,
                                      const std::string& ownProgram);

}  // namespace faultline::hosts
