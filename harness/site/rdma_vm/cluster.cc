#include "harness/site/rdma_vm/cluster.h"

#include "harness/site/addresses.h"
#include "harness/site/agent_processes.h"
#include "harness/site/rdma_vm/laboratory_faults.h"

namespace faultline::rdma_vm {
Cluster::Cluster(const VmSpec& spec)
    : site::Cluster(site::plannedNetwork(spec.hosts, spec.rails)), spec_(spec) {}

Status Cluster::build(const GiveUp& giveUp) {
  ASSIGN_OR_RETURN(const Laboratory::Files files, Laboratory::findFiles());
  ASSIGN_OR_RETURN(laboratory_, Laboratory::boot(spec_, files, giveUp));
  return okStatus();
}

Result<std::unique_ptr<site::Processes>> Cluster::startRanks(
    const std::vector<site::RankProcess>& /*ranks*/, int /*logFd*/) {
  return errorf(Code::kUnsupported, "guests run programs that are not ours, and no ranks");
}

Result<std::unique_ptr<site::Processes>> Cluster::startGuards(
    const std::vector<site::GuardProcess>& guards, int /*logFd*/) {
  constexpr int kNoLog = -1;  // of a guest's
  return site::AgentProcesses::startGuards(laboratory_->agents(), guards, kNoLog);
}

Result<std::unique_ptr<injector::Fault>> Cluster::makeFault(
    const std::string& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target) {
  return makeLaboratoryFault(kind, parameters, *laboratory_, target.node, target.rail.value_or(0),
                             target.startedWith);
}

Status Cluster::readRailCounters(std::vector<site::RailCounters>& counters) {
  counters.clear();
  for (int node = 0; node < spec_.hosts; ++node) {
    for (int rail = 0; rail < spec_.rails; ++rail) {
      const SwitchPort& port = laboratory_->port(node, rail);
      counters.push_back({port.inBytes.load(), port.outBytes.load()});
    }
  }
  return okStatus();
}

Result<std::map<std::string, std::string>> Cluster::describe() const {
  return std::map<std::string, std::string>{
      {"cluster", "rdma_vm"},
      {"guest_kernel", laboratory_->guestKernel()},
      {"rdma", "rxe (soft-RoCE), in guests of qemu without hardware help"},
      {"mtu", std::to_string(spec_.mtu)},
      {"guest_memory_mib", std::to_string(spec_.memoryMiB)},
      {"clock_error", formatDuration(laboratory_->clockError())},
      {"rail_rate", "unshaped"}};
}

}  // namespace faultline::rdma_vm
