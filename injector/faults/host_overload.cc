#include "injector/faults/host_overload.h"

#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {
namespace {

constexpr std::array kHostOverloadParameters{
    ParameterSpec{"threads",
                  ParameterType::kInteger,
                  "4",
                  "busy threads for each CPU that the bench may use",
                  {},
                  1,
                  64},
    ParameterSpec{"nice",
                  ParameterType::kInteger,
                  "-10",
                  "their priority: below 0 they go before the job, which needs root",
                  {},
                  -20,
                  19},
};

}  // namespace

constinit const FaultKind kHostOverloadKind{
    .name = "host_overload",
    .summary = "Busy threads take the CPUs of this machine away from everything else.",
    .sees = "nothing but time: answers come late, from everywhere",
    .evidence = "a probe thread of normal priority that always wants to run waits most of the time",
    .undo = "the threads go to sleep; they die with the program",
    .parameters = kHostOverloadParameters,
    .target = TargetKind::kNone,
    .make = makeOne<HostOverload>};

namespace {

// Many turns of the scheduler, whose slices are some milliseconds long.
constexpr Duration kProbeWindow = 200ms;
// Who looks at the probe is late as everybody else, by some hundred milliseconds at times.
constexpr Duration kProbeBudget = 3s;
// Behind four others of its own priority a thread waits for so long: that is an overload. It is
// ours when the busy threads had several times as much of the CPU as the probe; how much there was
// to be had depends on what else runs here.
constexpr double kWaitedShare = 0.8;
constexpr double kTakenTimes = 2;

Duration timeOf(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

/// The CPUs that this thread may run on.
std::vector<int> usableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

class HostOverload::Worker {
 public:
  /// Returns when the thread is in place and sleeps, or with the error of what failed.
  static Result<std::unique_ptr<Worker>> start(int cpu, int nice) {
    std::unique_ptr<Worker> worker(new Worker);
    worker->thread_ = std::thread([self = worker.get(), cpu, nice] { self->run(cpu, nice); });
    if (::pthread_getcpuclockid(worker->thread_.native_handle(), &worker->clock_) != 0) {
      return errorf(Code::kUnsupported, "this system has no CPU clocks of threads");
    }
    worker->state_.wait(kStarting);
    if (worker->error_ == 0) return worker;
    return Status::fromErrno(worker->error_,
                             fmt::format("run threads at nice {} on CPU {}", nice, cpu));
  }
  ~Worker() {
    set(kEnding);
    thread_.join();
  }
  void setWorking(bool on) { set(on ? kWorking : kSleeping); }
  Duration cpuTime() const { return timeOf(clock_); }

 private:
  enum State : int { kStarting, kSleeping, kWorking, kEnding };
  Worker() = default;

  void set(State state) {
    state_.store(state);
    state_.notify_all();
  }
  void run(int cpu, int nice) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    const auto self = static_cast<id_t>(::syscall(SYS_gettid));
    if (::sched_setaffinity(0, sizeof set, &set) != 0 ||
        (nice != 0 && ::setpriority(PRIO_PROCESS, self, nice) != 0)) {
      error_ = errno;
    }
    int starting = kStarting;
    state_.compare_exchange_strong(starting, kSleeping);
    state_.notify_all();
    while (true) {
      const int state = state_.load();
      if (state == kEnding) return;
      if (state == kSleeping) state_.wait(kSleeping);
    }
  }

  std::atomic<int> state_{kStarting};
  int error_ = 0;  // written before the state is changed
  clockid_t clock_{};
  std::thread thread_;
};

HostOverload::HostOverload(const FaultParameters& parameters, const netlink::LinkTarget& /*target*/)
    : threads_(static_cast<int>(parameters.get<std::int64_t>("threads"))),
      nice_(static_cast<int>(parameters.get<std::int64_t>("nice"))) {}

HostOverload::~HostOverload() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("host_overload: {}", status.message());
}

Status HostOverload::prepare() {
  constexpr int kNormal = 0;
  for (const int number : usableCpus()) {
    Cpu& cpu = cpus_.emplace_back();
    cpu.number = number;
    ASSIGN_OR_RETURN(cpu.probe, Worker::start(number, kNormal));
    for (int thread = 0; thread < threads_; ++thread) {
      auto worker = Worker::start(number, nice_);
      if (worker.status().code() == Code::kPermissionDenied) {
        return errorf(Code::kUnsupported,
                      "host_overload: {}: this needs root (CAP_SYS_NICE); with 'nice: 0' and more "
                      "threads it does not",
                      worker.status().message());
      }
      if (!worker.ok()) return worker.status().withContext("host_overload");
      cpu.busy.push_back(std::move(*worker));
    }
  }
  return okStatus();
}

Status HostOverload::apply() {
  window_ = {};
  for (Cpu& cpu : cpus_) cpu.waited = cpu.taken = 0;
  applied_ = true;
  return transit(true, [&] {
    for (const Cpu& cpu : cpus_) {
      for (const auto& worker : cpu.busy) worker->setWorking(true);
    }
    return okStatus();
  });
}

Duration HostOverload::busyTime(const Cpu& cpu) {
  Duration sum{};
  for (const auto& worker : cpu.busy) sum += worker->cpuTime();
  return sum;
}

void HostOverload::setProbing(bool on, TimePoint now) {
  probing_ = on;
  since_ = now;
  for (Cpu& cpu : cpus_) {
    cpu.probe->setWorking(on);
    cpu.busy_before = busyTime(cpu);
    cpu.probe_before = cpu.probe->cpuTime();
  }
}

Status HostOverload::step(TimePoint now) {
  if (conclusive()) return okStatus();
  if (!probing_) {
    setProbing(true, now);
    return okStatus();
  }
  const Duration passed = faultline::now() - since_;
  if (passed < kProbeWindow) return okStatus();
  window_ = passed;
  for (Cpu& cpu : cpus_) {
    const Duration probe_ran = cpu.probe->cpuTime() - cpu.probe_before;
    cpu.waited = 1 - toSeconds(probe_ran) / toSeconds(passed);
    cpu.taken = toSeconds(busyTime(cpu) - cpu.busy_before) / toSeconds(passed);
  }
  setProbing(false, now);
  return okStatus();
}

bool HostOverload::conclusive() const {
  return !cpus_.empty() && window_ >= kProbeWindow &&
         std::ranges::all_of(cpus_, [](const Cpu& cpu) {
           return cpu.waited >= kWaitedShare && cpu.taken > kTakenTimes * (1 - cpu.waited);
         });
}

Duration HostOverload::evidenceBudget() const { return kProbeBudget; }

Evidence HostOverload::verdict() const {
  std::string observed;
  for (const Cpu& cpu : cpus_) {
    observed += fmt::format(
        "{}CPU {}: a thread that wanted to run all the time waited {:.0f} % of {:.0f} ms, of which "
        "the busy threads had {:.0f} %",
        observed.empty() ? "" : "; ", cpu.number, cpu.waited * kWholeInPercent,
        toMilliseconds(window_), cpu.taken * kWholeInPercent);
  }
  return {"host_overload", "waiting time of a probe thread", observed, conclusive()};
}

Status HostOverload::revert() {
  if (probing_) setProbing(false, now());
  if (!std::exchange(applied_, false)) return okStatus();
  return transit(false, [&] {
    for (const Cpu& cpu : cpus_) {
      for (const auto& worker : cpu.busy) worker->setWorking(false);
    }
    return okStatus();
  });
}

}  // namespace faultline::injector
