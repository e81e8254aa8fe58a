#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "harness/agent/job_folder.h"
#include "harness/site/agent_processes.h"
#include "harness/site/hosts/cluster.h"

// Programs on hosts, and the folder that all hosts see. They share none with the controller.

namespace faultline::hosts {
namespace {

// A file system over a network may show a new folder to others a little later.
constexpr Duration kShareBudget = 10s;
constexpr Duration kSharePause = 100ms;

}  // namespace

std::string Cluster::folderThere(int node, const std::string& /*folder*/) const {
  return fmt::format("{}/{}{}-{}", facts_[static_cast<std::size_t>(node)].temporary,
                     agent::kRunFolderPrefix, token_, node);
}

/// All hosts are asked, so that what is missing is told at once.
Status Cluster::requirePrograms(const std::vector<site::GuardProcess>& guards) {
  for (const site::GuardProcess& guard : guards) {
    RETURN_IF_ERROR(agents_.askForMissing(guard.node, {guard.job, guard.needs}));
  }
  const auto asked = [&](int host) {
    return std::ranges::any_of(guards,
                               [&](const site::GuardProcess& one) { return one.node == host; });
  };
  RETURN_IF_ERROR(
      listenUntil([&](int host) { return !asked(host) || agents_.toldMissing(host).has_value(); },
                  agents_.giveUp(), "look for the programs"));
  std::vector<std::string> missing;
  for (const site::GuardProcess& guard : guards) {
    for (const std::string& what : *agents_.toldMissing(guard.node)) {
      missing.push_back(fmt::format("host {}: {}", name(guard.node), what));
    }
  }
  if (missing.empty()) return okStatus();
  return errorf(Code::kNotFound, "{}",
                join(std::vector<std::string_view>(missing.begin(), missing.end()), "; "));
}

Result<std::unique_ptr<site::Processes>> Cluster::startGuards(
    const std::vector<site::GuardProcess>& guards, int logFd) {
  agents_.logTo(logFd, spec_.names);
  RETURN_IF_ERROR(requirePrograms(guards));
  std::vector<site::GuardProcess> marked = guards;
  for (site::GuardProcess& guard : marked) {
    for (wire::GuardedProgram& program : guard.job.programs) {
      program.environment.insert(faults_.markOf(guard.node));
    }
  }
  return site::AgentProcesses::startGuardsElsewhere(
      agents_, marked,
      [this](int node, const std::string& folder) { return folderThere(node, folder); });
}

Status Cluster::shareFolder(const GiveUp& giveUp) {
  const std::string folder = fmt::format("{}/faultline-shared-{}", spec_.folder, token_);
  const auto told = [this](int host) { return agents_.toldShared(host).has_value(); };
  const auto refused = [&](int host, const Status& why) {
    return Status(
        why.code(),
        fmt::format("host {} does not share {} with {}: {}; name one that all hosts see "
                    "and may write in 'folder'",
                    name(host), spec_.folder, name(host == 0 ? 1 % hosts() : 0), why.message()));
  };
  constexpr int kFirst = 0;
  RETURN_IF_ERROR(agents_.askForShared(kFirst, {folder, token_, /*first=*/true}));
  RETURN_IF_ERROR(
      listenUntil([&](int host) { return host != kFirst || told(host); }, giveUp, "make a folder"));
  if (!agents_.toldShared(kFirst)->ok()) return refused(kFirst, *agents_.toldShared(kFirst));
  const TimePoint deadline = now() + kShareBudget;
  for (int host = 0; host < hosts(); ++host) {
    RETURN_IF_ERROR(agents_.askForShared(host, {folder, token_, /*first=*/false}));
  }
  for (;;) {
    RETURN_IF_ERROR(listenUntil(told, giveUp, "look for the shared folder"));
    bool all = true;
    for (int host = 0; host < hosts(); ++host) {
      const Status seen = *agents_.toldShared(host);
      if (seen.ok()) continue;
      if (seen.code() != Code::kNotFound || now() >= deadline) return refused(host, seen);
      all = false;
      RETURN_IF_ERROR(agents_.askForShared(host, {folder, token_, /*first=*/false}));
    }
    if (all) break;
    RETURN_IF_ERROR(agents_.listen(kSharePause));
  }
  shared_ = folder;
  return okStatus();
}

}  // namespace faultline::hosts
