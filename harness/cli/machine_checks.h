#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What this machine can do: the rows of `faultline doctor`.
namespace faultline::cli {

struct MachineCheck {
  std::string group;
  std::string name;
  bool ok = false;
  bool required = false;  ///< the quick start cannot run without it
  std::string found;      ///< what is there, or what happened when it was tried
  std::string neededFor;
  std::string cost;    ///< of not having it
  std::string remedy;  ///< what to do when it is missing
};

/// Looks at everything. Mechanisms of clusters are tried for real in a process of their own, which
/// takes them away with it: nothing is left behind. Call it while the process has one thread.
std::vector<MachineCheck> checkMachine();

/// All that the quick start needs is there. Pure.
bool canRunQuickstart(const std::vector<MachineCheck>& checks);

/// The first executable file of that name in the folders of `path` (as $PATH), or "".
std::string findProgram(std::string_view name, std::string_view path);

}  // namespace faultline::cli
