#include "injector/faults/process_stop.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/fault_list.h"

namespace faultline::injector {

constinit const FaultKind kProcessStopKind{
    .name = "process_stop",
    .summary = "All processes of a node are stopped (SIGSTOP), and go on when the fault ends.",
    .sees = "a peer that neither answers nor ends, while its kernel still acknowledges",
    .evidence = "every process is in the state stopped and uses no CPU time",
    .undo = "SIGCONT",
    .target = TargetKind::kProcesses,
    .make = makeOne<ProcessStop>};

namespace {

// A stopped process goes on as soon as the kernel gives it a CPU.
constexpr Duration kContinueBudget = 1s;

}  // namespace

ProcessStop::ProcessStop(const FaultParameters& /*parameters*/, const netlink::LinkTarget& target)
    : target_(target) {}

ProcessStop::~ProcessStop() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("process_stop: {}", status.message());
}

Status ProcessStop::prepare() { return requireProcessHandles().withContext("process_stop"); }

Status ProcessStop::apply() {
  stopped_ = 0;
  cpu_time_ = {};
  ASSIGN_OR_RETURN(processes_, processesOf(target_));
  applied_ = true;  // without any process there will be no evidence
  return transit(true, [&] { return signalAll(SIGSTOP); });
}

Status ProcessStop::signalAll(int number) {
  for (const HeldProcess& process : processes_) {
    const Status status = process.signal(number);
    if (!status.ok() && !process.hasEnded()) return status;
  }
  return okStatus();
}

Status ProcessStop::step(TimePoint now) {
  if (conclusive()) return okStatus();
  stopped_ = static_cast<int>(std::ranges::count_if(processes_, &HeldProcess::isStopped));
  Duration ran{};
  for (const HeldProcess& process : processes_) ran += process.cpuTime();
  cpu_time_.observe(static_cast<std::uint64_t>(ran.count()), now);
  return okStatus();
}

bool ProcessStop::conclusive() const {
  return !processes_.empty() && stopped_ == static_cast<int>(processes_.size()) &&
         cpu_time_.stillFor() >= kStill;
}

Evidence ProcessStop::verdict() const {
  return {"process_stop", "state and CPU time of the processes",
          fmt::format("{} of {} processes are stopped; their CPU time stood still for {:.0f} ms",
                      stopped_, processes_.size(), toMilliseconds(cpu_time_.stillFor())),
          conclusive()};
}

Status ProcessStop::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(false, [&] { return signalAll(SIGCONT); }));
  applied_ = false;
  const TimePoint deadline = now() + kContinueBudget;
  while (std::ranges::any_of(processes_, &HeldProcess::isStopped)) {
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "process_stop: a process did not go on");
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
  return okStatus();
}

}  // namespace faultline::injector
