#include "injector/faults/process_kill.h"

#include <signal.h>

#include <algorithm>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {

constinit const FaultKind kProcessKillKind{
    .name = "process_kill",
    .summary = "All processes of a node are killed (SIGKILL).",
    .sees = "connections that end, a peer that is gone for good",
    .evidence = "every process has ended, and the node has none left",
    .undo = "nothing can be undone",
    .target = TargetKind::kProcesses,
    .forGood = true,
    .signatures = kAnySignatures,
    .endsProcesses = true,
    .make = makeOne<ProcessKill>};

ProcessKill::ProcessKill(const FaultParameters& /*parameters*/, const netlink::LinkTarget& target)
    : target_(target) {}

Status ProcessKill::prepare() { return requireProcessHandles().withContext("process_kill"); }

Status ProcessKill::apply() {
  ended_ = left_ = 0;
  ASSIGN_OR_RETURN(processes_, processesOf(target_));
  applied_ = true;  // without any process there will be no evidence
  return transit(true, [&]() -> Status {
    for (const HeldProcess& process : processes_) {
      const Status status = process.signal(SIGKILL);
      if (!status.ok() && !process.hasEnded()) return status;
    }
    return okStatus();
  });
}

Status ProcessKill::step(TimePoint /*now*/) {
  if (conclusive()) return okStatus();
  ended_ = static_cast<int>(std::ranges::count_if(processes_, &HeldProcess::hasEnded));
  if (ended_ < static_cast<int>(processes_.size())) return okStatus();
  ASSIGN_OR_RETURN(const std::vector<HeldProcess> left, processesOf(target_));
  left_ = static_cast<int>(left.size());
  return okStatus();
}

bool ProcessKill::conclusive() const {
  return !processes_.empty() && ended_ == static_cast<int>(processes_.size()) && left_ == 0;
}

Evidence ProcessKill::verdict() const {
  return {
      "process_kill", "ends of the processes",
      fmt::format("{} of {} processes have ended; {} are left", ended_, processes_.size(), left_),
      conclusive()};
}

Status ProcessKill::revert() {
  if (!std::exchange(applied_, false)) return okStatus();
  return transit(false, [] { return okStatus(); });
}

}  // namespace faultline::injector
