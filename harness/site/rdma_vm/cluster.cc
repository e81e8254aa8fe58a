#include "harness/site/rdma_vm/cluster.h"

#include <algorithm>
#include <set>

#include "harness/site/addresses.h"
#include "harness/site/rdma_vm/laboratory_faults.h"

namespace faultline::rdma_vm {
namespace {

// The guard sends SIGKILL when it has read the message; emulation is slow.
constexpr Duration kKillBudget = 10s;
constexpr Duration kKillPause = 10ms;

bool isLastWord(const wire::FromGuard& message) {
  return std::visit(
      []<typename Message>(const Message&) {
        return wire::isOneOf<Message, wire::GuardFinished, wire::GuardError, wire::Gone>;
      },
      message);
}

/// Guards inside of guests.
class GuestGuards final : public site::Processes {
 public:
  explicit GuestGuards(Laboratory& laboratory) : laboratory_(laboratory) {}

  Status start(const std::vector<site::GuardProcess>& guards) {
    for (const site::GuardProcess& guard : guards) {
      ASSIGN_OR_RETURN(jobs_.emplace_back(), laboratory_.startGuard(guard.node, guard.job));
    }
    return okStatus();
  }

  Status poll(Duration timeout, int /*interruptFd*/, const Received& received) override {
    return laboratory_.poll(
        timeout,
        [&](int job, const wire::FromGuard& message) {
          if (isLastWord(message)) ended_.insert(job);
          const auto guard = std::ranges::find(jobs_, job);
          return received(static_cast<int>(guard - jobs_.begin()), wire::toJson(message));
        },
        [&](int job) { return std::ranges::count(jobs_, job) > 0; });
  }
  void broadcast(const nlohmann::json& message) override {
    const auto typed = wire::fromJson<wire::ToGuard>(message);
    if (!typed.ok()) return;
    // What a host that is gone does not hear, poll() tells.
    for (const int job : jobs_) (void)laboratory_.tell(job, *typed);
  }
  /// A guard ends with all that its programs have started. What does not end then ends with its
  /// host, and the hosts with the cluster.
  Status kill() override {
    broadcast(wire::toJson(wire::ToGuard(wire::EndPrograms{.grace = Duration::zero()})));
    const TimePoint deadline = now() + kKillBudget;
    while (!allEnded()) {
      constexpr int kNoInterrupt = -1;
      const Status heard =
          poll(kKillPause, kNoInterrupt, [](int, const nlohmann::json&) { return okStatus(); });
      if (!heard.ok()) return okStatus();  // the host is gone, and they with it
      if (now() < deadline) continue;
      return errorf(Code::kDeadlineExceeded, "programs in guests outlive SIGKILL by {}",
                    formatDuration(kKillBudget));
    }
    return okStatus();
  }
  bool allEnded() const override { return ended_.size() == jobs_.size(); }

 private:
  Laboratory& laboratory_;
  std::vector<int> jobs_;
  std::set<int> ended_;
};

}  // namespace

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
  auto started = std::make_unique<GuestGuards>(*laboratory_);
  RETURN_IF_ERROR(started->start(guards));
  return std::unique_ptr<site::Processes>(std::move(started));
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
