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

/// Who starts the agent of a host.
enum class Launcher {
  kSsh,    ///< ssh, as the user has configured it
  kLocal,  ///< this machine is every host
};

/// What a scenario says of the hosts, with defaults filled in.
struct HostsSpec {
  Launcher launcher = Launcher::kSsh;
  std::vector<std::string> names;
  std::string management;        ///< name of the interface; empty: it is found
  std::string folder;            ///< that all hosts see, for checkpoints; empty: there is none
  std::string program;           ///< path of this program on the hosts; empty: as it is here
  std::vector<std::string> ssh;  ///< how ssh is called: the command, and what options it gets
  Duration lease{};              ///< who is silent for so long is lost
  site::RailChoice railChoice;
  int rails = 0;               ///< how many, where the choice has no names
  BitsPerSecond railRate = 0;  ///< as the scenario says; 0: it does not
};

/// The key of a folder that all hosts see.
inline constexpr std::string_view kFolderSetting = "folder";
/// The keys that the kind adds.
extern const std::array<site::Setting, 7> kSettings;
HostsSpec hostsSpec(const site::ClusterSpec& spec);
/// What is wrong with it.
std::vector<site::Refusal> check(const HostsSpec& spec);

/// What is executed here for the agent of a host. `ownProgram`: the path of this program.
std::vector<std::string> agentCommand(const HostsSpec& spec, const std::string& host,
                                      const std::string& ownProgram);

}  // namespace faultline::hosts
