#include "harness/control/program_ground.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "harness/command/variables.h"
#include "harness/control/rank_group.h"
#include "harness/site/rdma_vm/laboratory.h"
#include "harness/site/rdma_vm/laboratory_faults.h"

namespace faultline::run {

namespace {

class NetnsGround final : public ProgramGround {
 public:
  explicit NetnsGround(std::unique_ptr<netns::Cluster> cluster) : cluster_(std::move(cluster)) {}

  Sampler sampler() override { return Sampler(*cluster_); }
  Result<FaultControl> faults(const scenario::Scenario& scenario) override {
    return FaultControl::create(scenario, *cluster_);
  }
  Status start(std::vector<NodeJob> jobs, int log_fd) override {
    std::vector<launch::SpawnOptions> processes;
    for (NodeJob& node : jobs) {
      node.job.networkNamespace =
          fmt::format("/proc/{}/fd/{}", getpid(), cluster_->nodeNamespace(node.node));
      launch::SpawnOptions& guard = processes.emplace_back();
      guard.arguments = {"faultline", "guard"};
      guard.own_process_namespace = true;
      guard.stderr_fd = log_fd;
      guard.first_message = wire::toJson(wire::ToGuard(node.job));
    }
    ASSIGN_OR_RETURN(guards_, RankGroup::start(processes, "the guard"));
    return okStatus();
  }
  Status poll(Duration timeout, Interrupt& interrupt, const Received& received) override {
    return guards_->poll(
        timeout, interrupt, [&](int guard, const nlohmann::json& message) -> Status {
          ASSIGN_OR_RETURN(const auto said, wire::fromJson<wire::FromGuard>(message));
          return received(static_cast<std::size_t>(guard), said);
        });
  }
  void broadcast(const wire::ToGuard& message) override {
    guards_->broadcast(wire::toJson(message));
  }
  Status kill() override { return guards_->kill(); }
  Result<std::map<std::string, std::string>> describe() override { return cluster_->describe(); }
  std::unique_ptr<netns::Cluster> keep() override { return std::move(cluster_); }

 private:
  std::unique_ptr<netns::Cluster> cluster_;
  std::optional<RankGroup> guards_;
};

class RdmaVmGround final : public ProgramGround {
 public:
  explicit RdmaVmGround(std::unique_ptr<rdma_vm::Laboratory> laboratory)
      : laboratory_(std::move(laboratory)) {}

  Sampler sampler() override {
    const int nodes = laboratory_->spec().hosts;
    const int rails = laboratory_->spec().rails;
    return Sampler(nodes, rails, [this, nodes, rails](std::vector<netns::RailCounters>& counters) {
      counters.clear();
      for (int node = 0; node < nodes; ++node) {
        for (int rail = 0; rail < rails; ++rail) {
          const rdma_vm::SwitchPort& port = laboratory_->port(node, rail);
          counters.push_back({port.inBytes.load(), port.outBytes.load()});
        }
      }
      return okStatus();
    });
  }
  Result<FaultControl> faults(const scenario::Scenario& scenario) override {
    return FaultControl::create(scenario, [this](const scenario::Fault& fault) {
      const scenario::Target target = fault.target.value_or(scenario::Target{});
      return rdma_vm::makeLaboratoryFault(fault.kind, fault.parameters, *laboratory_, target.node,
                                          target.rail,
                                          target.rank ? command::rankEntry(*target.rank) : "");
    });
  }
  Status start(std::vector<NodeJob> jobs, int /*log_fd*/) override {
    for (const NodeJob& node : jobs) {
      ASSIGN_OR_RETURN(jobs_.emplace_back(), laboratory_->startGuard(node.node, node.job));
    }
    return okStatus();
  }
  Status poll(Duration timeout, Interrupt& /*interrupt*/, const Received& received) override {
    return laboratory_->poll(timeout, [&](int job, wire::FromGuard message) {
      const auto guard = std::ranges::find(jobs_, job);
      if (guard == jobs_.end()) return okStatus();
      // A guest's clock begins when it boots.
      const auto setTime = [](auto& said) {
        if constexpr (requires { said.at; }) said.at = now();
      };
      std::visit(setTime, message);
      return received(static_cast<std::size_t>(guard - jobs_.begin()), message);
    });
  }
  void broadcast(const wire::ToGuard& message) override {
    // What a host that is gone does not hear, poll() tells.
    for (const int job : jobs_) (void)laboratory_->tell(job, message);
  }
  /// They end with their hosts, which end with this.
  Status kill() override { return okStatus(); }
  Result<std::map<std::string, std::string>> describe() override {
    const rdma_vm::VmSpec& spec = laboratory_->spec();
    return std::map<std::string, std::string>{
        {"cluster", "rdma_vm"},
        {"guest_kernel", laboratory_->guestKernel()},
        {"rdma", "rxe (soft-RoCE), in guests of qemu without hardware help"},
        {"mtu", std::to_string(spec.mtu)},
        {"guest_memory_mib", std::to_string(spec.memoryMiB)},
        {"rail_rate", "unshaped"}};
  }

 private:
  std::unique_ptr<rdma_vm::Laboratory> laboratory_;
  std::vector<int> jobs_;
};

Result<std::unique_ptr<ProgramGround>> makeNetnsGround(const scenario::Scenario& scenario) {
  netns::ClusterSpec spec;
  spec.nodes = scenario.cluster.nodes;
  spec.ranks_per_node = scenario.workload.command.perNode;
  spec.rails = scenario.cluster.rails;
  spec.rail_rate = scenario.cluster.railRate;
  spec.congestion_control = scenario.cluster.congestionControl;
  ASSIGN_OR_RETURN(auto cluster, netns::Cluster::create(spec));
  return std::unique_ptr<ProgramGround>(std::make_unique<NetnsGround>(std::move(cluster)));
}

Result<std::unique_ptr<ProgramGround>> makeRdmaVmGround(const scenario::Scenario& scenario,
                                                        const std::string& folder,
                                                        Interrupt& interrupt) {
  rdma_vm::VmSpec spec;
  spec.hosts = scenario.cluster.nodes;
  spec.rails = scenario.cluster.rails;
  spec.sharedFolder = folder;
  ASSIGN_OR_RETURN(const rdma_vm::Laboratory::Files files, rdma_vm::Laboratory::findFiles());
  ASSIGN_OR_RETURN(auto laboratory,
                   rdma_vm::Laboratory::boot(spec, files, [&] { return interrupt.pending(); }));
  return std::unique_ptr<ProgramGround>(std::make_unique<RdmaVmGround>(std::move(laboratory)));
}

}  // namespace

Result<std::unique_ptr<ProgramGround>> makeGround(const scenario::Scenario& scenario,
                                                  const std::string& folder, Interrupt& interrupt) {
  if (scenario.cluster.kind == scenario::ClusterKind::kRdmaVm) {
    return makeRdmaVmGround(scenario, folder, interrupt);
  }
  return makeNetnsGround(scenario);
}

}  // namespace faultline::run
