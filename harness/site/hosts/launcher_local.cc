#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

std::vector<site::Refusal> checkLocal(const HostsSpec& spec) {
  std::vector<site::Refusal> wrong;
  if (!spec.railChoice.names.empty() || !spec.railChoice.byNode.empty()) {
    wrong.push_back(
        {"rails",
         "rails: with 'launcher: local' all hosts are this machine, whose addresses reach each "
         "other by loopback: write how many, or leave it out"});
  }
  if (!spec.management.empty()) {
    wrong.push_back({"management", "management: with 'launcher: local' it is loopback; remove it"});
  }
  return wrong;
}

std::vector<std::string> localCommand(const HostsSpec& /*spec*/, const std::string& /*host*/,
                                      const std::string& program) {
  return {program, "agent", "--stdio"};
}

}  // namespace

constinit const Launcher kLocalLauncher{
    .name = "local",
    .doc = "this machine is every host, and its ranks reach each other by loopback and memory",
    .program = "its agent",
    .thisMachine = true,
    .patience = 30s,
    .check = checkLocal,
    .command = localCommand};

}  // namespace faultline::hosts
