#include "injector/faults/verbs_fault.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>

#include "base/units.h"
#include "injector/faults/node_processes.h"
#include "injector/faults/verbs_evidence.h"
#include "injector/faults/verbs_rule.h"

namespace faultline::injector {
namespace {

/// Counters are asked for no more often: each time is a packet to the program and one back.
constexpr Duration kReadEvery = 5ms;
/// A program that is not busy answers within this; for others step() does not wait.
constexpr Duration kSoon = 1ms;
/// Long enough for many completions at any rate that one would call a throttle.
constexpr Duration kRateWindow = 200ms;
constexpr Duration kMoreThanOneWindow = 1s;

bool isOver(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kNotFound;
}

}  // namespace

VerbsPrograms program(pid_t pid) {
  return {[pid] { return Result<std::vector<pid_t>>(std::vector<pid_t>{pid}); }, true, {}};
}

VerbsPrograms programsOf(const netlink::LinkTarget& target) {
  return programsIn(target.nic.socket->namespaceFd(), target.startedWith);
}

VerbsPrograms programsIn(int namespace_fd, const std::vector<std::string>& started_with) {
  return {[namespace_fd, started_with]() -> Result<std::vector<pid_t>> {
            ASSIGN_OR_RETURN(const std::vector<HeldProcess> processes,
                             processesIn(namespace_fd, started_with));
            std::vector<pid_t> pids;
            for (const HeldProcess& process : processes) pids.push_back(process.pid());
            return pids;
          },
          false,
          started_with.empty()
              ? ""
              : fmt::format(" that was started with {}", fmt::join(started_with, " and "))};
}

VerbsFault::VerbsFault(verbs::Effect effect, const FaultParameters& parameters,
                       VerbsPrograms programs)
    : effect_(effect), parameters_(parameters), where_(std::move(programs)) {}

VerbsFault::~VerbsFault() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("{}: {}", effectName(effect_), status.message());
}

std::string VerbsFault::mechanism() const {
  return effect_ == verbs::Effect::kQpError
             ? "verbs shim: ibv_modify_qp to the error state, by the owner"
             : "verbs shim: the program's own calls of the provider are changed";
}

Duration VerbsFault::evidenceBudget() const {
  if (effect_ == verbs::Effect::kQpRate) return kMoreThanOneWindow;
  return Fault::evidenceBudget() + rule_.delay;
}

void VerbsFault::stopWhen(std::function<bool()> stop) {
  stop_ = std::move(stop);
  for (Program& program : programs_) program.connection.giveUpWhen(stop_);
}

Status VerbsFault::prepare() {
  ASSIGN_OR_RETURN(rule_, verbsRule(effect_, parameters_));
  return where_.known ? connect() : okStatus();
}

Status VerbsFault::connect() {
  programs_.clear();
  ASSIGN_OR_RETURN(const std::vector<pid_t> pids, where_.find());
  for (const pid_t pid : pids) {
    auto connection = verbs::Connection::open(pid);
    if (!connection.ok()) {
      if (!where_.known && isOver(connection.status())) continue;
      return connection.status();
    }
    connection->giveUpWhen(stop_);
    ASSIGN_OR_RETURN(const verbs::ShimFacts facts, connection->hello());
    if (facts.missedContexts + facts.missedQueuePairs > 0) {
      spdlog::warn(
          "process {}: the shim could not take over {} contexts and {} extended queue pairs", pid,
          facts.missedContexts, facts.missedQueuePairs);
    }
    programs_.push_back({.connection = std::move(*connection)});
  }
  if (!programs_.empty()) return okStatus();
  return errorf(Code::kUnavailable,
                "no process of this node{} has the verbs shim and an RDMA device open: {}",
                where_.who, verbs::kHowToLoad);
}

Status VerbsFault::armIn(Program& program, const verbs::Rule& rule) {
  const TimePoint asked = now();
  ASSIGN_OR_RETURN(program.fault, program.connection.arm(rule));
  program.renewed = asked;
  program.meter.emplace(kRateWindow);
  return okStatus();
}

Status VerbsFault::arm() {
  if (rule_.one && programs_.size() > 1) return armOne();
  Status missing = okStatus();
  bool armed = false;
  for (Program& program : programs_) {
    const Status status = armIn(program, rule_);
    if (status.ok()) {
      armed = true;
    } else if (!isOver(status)) {
      return status;
    } else if (missing.ok()) {
      missing = status;
    }
  }
  return armed ? okStatus() : missing;
}

// Asked for one, each shim would choose one of its own.
Status VerbsFault::armOne() {
  struct Candidate {
    Program* program;
    verbs::QueuePairFacts facts;
  };
  std::vector<Candidate> candidates;
  for (Program& program : programs_) {
    auto list = program.connection.list();
    if (!list.ok() && isOver(list.status())) continue;
    RETURN_IF_ERROR(list.status());
    // As the shim does, so that a seed means the same in the next run.
    std::ranges::sort(*list, {}, [](const verbs::QueuePairFacts& facts) {
      return std::tie(facts.device, facts.number);
    });
    for (verbs::QueuePairFacts& facts : *list) {
      if (matches(rule_.match, facts)) candidates.push_back({&program, std::move(facts)});
    }
  }
  const std::size_t fitting = candidates.size();
  Status last = okStatus();
  while (!candidates.empty()) {
    const auto chosen = candidates.begin() + static_cast<std::ptrdiff_t>(verbs::chooseOne(
                                                 candidates.size(), rule_.trigger.seed));
    verbs::Rule rule = rule_;
    rule.match.device = chosen->facts.device;
    rule.match.number = chosen->facts.number;
    const Status status = armIn(*chosen->program, rule);
    if (!isOver(status)) return status;
    last = status;
    candidates.erase(chosen);  // gone meanwhile, or not in use, as the shim says
  }
  return errorf(Code::kNotFound,
                "{}: none of the {} processes with the verbs shim has {} in use (of {} that fit){}",
                effectName(effect_), programs_.size(), inWords(rule_.match), fitting,
                last.ok() ? "" : "; the last one asked: " + last.message());
}

Status VerbsFault::apply() {
  RETURN_IF_ERROR(revert());
  total_ = {};
  lapsed_.reset();
  if (!where_.known) RETURN_IF_ERROR(connect());
  for (Program& program : programs_) {
    program.counters = {};
    program.meter.reset();
    program.ended.reset();
  }
  armed_ = now();
  return transit(true, [&] { return arm(); });
}

void VerbsFault::add(Program& program, const verbs::Counters& counters) {
  program.counters = counters;
  total_ = {};
  for (const Program& each : programs_) total_ = sum(total_, each.counters);
}

Result<bool> VerbsFault::take(Program& program, Duration patience) {
  const auto counters = program.connection.takeCounters(patience);
  const pid_t pid = program.connection.pid();
  if (counters.ok() && !counters->has_value()) {
    if (now() - *program.asked < verbs::Connection::kPatience) return false;
    program.asked.reset();
    program.fault.reset();
    program.connection.close();
    return errorf(Code::kDeadlineExceeded,
                  "{}: the verbs shim of process {} has not answered for {}; the program may have "
                  "been stopped. The connection is closed, with which the fault ends",
                  effectName(effect_), pid, formatDuration(verbs::Connection::kPatience));
  }
  const TimePoint asked = *std::exchange(program.asked, {});
  if (counters.ok()) {
    program.renewed = asked;
    add(program, **counters);
    return true;
  }
  if (!isOver(counters.status())) return counters.status();
  const std::uint64_t fault = *std::exchange(program.fault, {});
  if (counters.status().code() == Code::kNotFound) {
    return errorf(Code::kUnavailable,
                  "{}: the fault's lease in process {} ended after about {:.0f} ms, as nothing was "
                  "heard from this process for {}: it was stopped, or the machine is too busy",
                  effectName(effect_), pid, toMilliseconds(program.renewed + rule_.lease - armed_),
                  formatDuration(rule_.lease));
  }
  // As programs do whose queue pairs fail; what it told stays true.
  if (const auto last = program.connection.last(fault)) add(program, *last);
  program.ended = now();
  spdlog::info("{}: {}", effectName(effect_), counters.status().message());
  return true;
}

Status VerbsFault::step(TimePoint now) {
  TimePoint until = now;
  if (now - read_ >= kReadEvery) {
    read_ = now;
    for (Program& program : programs_) {
      if (!program.fault || program.asked) continue;
      program.asked = faultline::now();
      RETURN_IF_ERROR(program.connection.askCounters(*program.fault));
      until = *program.asked + kSoon;
    }
  }
  for (Program& program : programs_) {
    if (!program.asked) continue;
    ASSIGN_OR_RETURN(const bool answered,
                     take(program, std::max(until - faultline::now(), Duration(0))));
    if (!answered) continue;
    program.meter->observe(now, program.counters.releasedBytes,
                           static_cast<Bytes>(program.counters.held));
  }
  return okStatus();
}

std::optional<TimePoint> VerbsFault::endedAt() const {
  std::optional<TimePoint> last;
  for (const Program& program : programs_) {
    if (program.fault) return std::nullopt;
    if (program.ended) last = std::max(last.value_or(*program.ended), *program.ended);
  }
  return last;
}

bool VerbsFault::conclusive() const {
  // An answer that is under way may say that the fault has ended too early.
  const auto asked = [](const Program& program) { return program.asked.has_value(); };
  if (std::ranges::any_of(programs_, asked)) return false;
  return endedAt().has_value() || verdict().ok;
}

Evidence VerbsFault::verdict() const {
  std::vector<std::optional<MeasuredRate>> achieved;
  for (const Program& program : programs_) {
    if (program.meter) achieved.push_back(program.meter->measured());
  }
  Evidence evidence = judgeVerbs(rule_, total_, achieved);
  for (const Program& program : programs_) {
    if (!program.ended) continue;
    evidence.observed += fmt::format("; process {} ended after {:.0f} ms", program.connection.pid(),
                                     toMilliseconds(*program.ended - armed_));
  }
  return evidence;
}

Status VerbsFault::revert() {
  const bool armed = std::ranges::any_of(
      programs_, [](const Program& program) { return program.fault.has_value(); });
  if (!armed) return okStatus();
  return transit(false, [&] {
    Status first = okStatus();
    for (Program& program : programs_) {
      if (!program.fault) continue;
      program.asked.reset();
      const std::uint64_t fault = *std::exchange(program.fault, {});
      const auto counters = program.connection.disarm(fault);
      const auto last = program.connection.last(fault);
      if (counters.ok() || last) {
        add(program, counters.ok() ? *counters : *last);
      } else if (counters.status().code() == Code::kDeadlineExceeded) {
        program.connection.close();
        spdlog::warn("{}: {}; the connection is closed, with which the fault ends when it runs",
                     effectName(effect_), counters.status().message());
      } else if (counters.status().code() == Code::kNotFound) {
        const TimePoint end = program.renewed + rule_.lease;
        lapsed_ = std::min(lapsed_.value_or(end), end);
        spdlog::warn(
            "{}: its lease in process {} ended after about {:.0f} ms, before it was taken back",
            effectName(effect_), program.connection.pid(), toMilliseconds(end - armed_));
      } else if (!isOver(counters.status()) && first.ok()) {
        first = counters.status();
      }
    }
    return first;
  });
}

}  // namespace faultline::injector
