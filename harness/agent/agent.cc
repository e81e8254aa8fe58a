#include "harness/agent/agent.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_text.h"
#include "harness/agent/fault_holder.h"
#include "harness/agent/guard.h"
#include "harness/launch/process.h"

namespace faultline::agent {

using nlohmann::json;

namespace {

class Agent {
 public:
  Agent(launch::MessageChannel& controller, const LookAtRails& rails)
      : controller_(controller), rails_(rails) {}
  Status serve();

 private:
  struct Job {
    wire::GuardJob programs;
    bool read = false;
    std::optional<launch::Process> guard{};
    bool spoken = false;    // its last word
    bool finished = false;  // and that all went as it should
  };

  Status obey(const wire::ToGuest& message);
  Status start(const wire::StartJob& message);
  Status startGuard(int id, Job job);
  Status relay(int id, Job& job);
  Status sendOutput(int id, const Job& job);
  Status tellHolder(const wire::TellHolder& message);
  Status startHolder(const wire::TellHolder& message);
  Status relayHolder(int id, launch::Process& holder);
  Status tell(const wire::FromGuest& message) { return controller_.send(wire::toJson(message)); }

  launch::MessageChannel& controller_;
  const LookAtRails& rails_;
  std::map<int, Job> jobs_;
  std::map<int, launch::Process> faults_;  // holders
};

Status Agent::serve() {
  for (;;) {
    std::vector<pollfd> ready{{controller_.fd(), POLLIN, 0}};
    for (auto& [id, job] : jobs_) ready.push_back({job.guard->messages().fd(), POLLIN, 0});
    for (auto& [id, holder] : faults_) ready.push_back({holder.messages().fd(), POLLIN, 0});
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
      return Status::fromErrno(errno, "wait for messages");
    }
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
      if (!message) break;
      ASSIGN_OR_RETURN(const auto asked, wire::fromJson<wire::ToGuest>(*message));
      RETURN_IF_ERROR(obey(asked));
    }
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(relay(current->first, current->second));
      if (current->second.spoken) jobs_.erase(current);
    }
    for (auto at = faults_.begin(); at != faults_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(relayHolder(current->first, current->second));
    }
  }
}

Status Agent::obey(const wire::ToGuest& message) {
  if (const auto* const job = std::get_if<wire::StartJob>(&message)) return start(*job);
  if (const auto* const told = std::get_if<wire::TellGuard>(&message)) {
    const auto found = jobs_.find(told->job);
    // One that has just ended needs to be told nothing.
    if (found != jobs_.end()) {
      (void)found->second.guard->messages().send(wire::toJson(told->message));
    }
    return okStatus();
  }
  if (const auto* const told = std::get_if<wire::TellHolder>(&message)) return tellHolder(*told);
  if (const auto* const end = std::get_if<wire::EndFault>(&message)) {
    faults_.erase(end->fault);
    return okStatus();
  }
  if (std::holds_alternative<wire::AskClock>(message)) return tell(wire::ClockTold{now()});
  if (std::holds_alternative<wire::AskRails>(message)) {
    return tell(wire::GuestRails{rails_()});
  }
  return errorf(Code::kInvalidArgument, "a node is set up once");
}

Status Agent::start(const wire::StartJob& message) {
  const Status started = startGuard(message.job, {.programs = message.guard, .read = message.read});
  if (started.ok()) return started;
  return tell(wire::GuardSaid{message.job, wire::Gone{started.message()}});
}

Status Agent::startGuard(int id, Job job) {
  launch::SpawnOptions options;
  options.body = guardMain;
  options.own_process_namespace = true;
  options.first_message = wire::toJson(wire::ToGuard(job.programs));
  ASSIGN_OR_RETURN(launch::Process guard, launch::Process::spawn(options));
  job.guard.emplace(std::move(guard));
  jobs_.insert_or_assign(id, std::move(job));
  return okStatus();
}

Status Agent::relay(int id, Job& job) {
  while (!job.spoken) {
    Result<std::optional<json>> message = job.guard->messages().receive();
    if (!message.ok()) {
      job.spoken = true;
      return tell(wire::GuardSaid{id, wire::Gone{message.status().message()}});
    }
    if (!*message) return okStatus();
    auto said = wire::fromJson<wire::FromGuard>(**message);
    if (!said.ok()) {  // its guard ends with the job
      job.spoken = true;
      return tell(wire::GuardSaid{id, wire::Gone{said.status().message()}});
    }
    job.finished = std::holds_alternative<wire::GuardFinished>(*said);
    job.spoken = job.finished || std::holds_alternative<wire::GuardError>(*said);
    RETURN_IF_ERROR(tell(wire::GuardSaid{id, std::move(*said)}));
  }
  return job.read && job.finished ? sendOutput(id, job) : okStatus();
}

Status Agent::sendOutput(int id, const Job& job) {
  wire::GuestOutput output{.job = id};
  for (const wire::GuardedProgram& program : job.programs.programs) {
    output.programs.push_back({fileText(program.stdoutPath), fileText(program.stderrPath)});
    ::unlink(program.stdoutPath.c_str());
    ::unlink(program.stderrPath.c_str());
  }
  return tell(output);
}

Status Agent::tellHolder(const wire::TellHolder& message) {
  const auto found = faults_.find(message.fault);
  const Status told = found == faults_.end()
                          ? startHolder(message)
                          : found->second.messages().send(wire::toJson(message.message));
  if (told.ok()) return told;
  return tell(wire::HolderSaid{message.fault, wire::Gone{told.message()}});
}

/// In the first process namespace, where it sees all programs.
Status Agent::startHolder(const wire::TellHolder& message) {
  launch::SpawnOptions options;
  options.body = faultHolderMain;
  options.first_message = wire::toJson(message.message);
  ASSIGN_OR_RETURN(launch::Process holder, launch::Process::spawn(options));
  faults_.emplace(message.fault, std::move(holder));
  return okStatus();
}

Status Agent::relayHolder(int id, launch::Process& holder) {
  for (;;) {
    const Result<std::optional<json>> message = holder.messages().receive();
    if (message.ok() && !*message) return okStatus();
    auto said = message.ok() ? wire::fromJson<wire::FromHolder>(**message)
                             : Result<wire::FromHolder>(message.status());
    if (!said.ok()) {
      faults_.erase(id);  // which takes the fault back
      return tell(wire::HolderSaid{id, wire::Gone{said.status().message()}});
    }
    RETURN_IF_ERROR(tell(wire::HolderSaid{id, std::move(*said)}));
  }
}

}  // namespace

Status serve(launch::MessageChannel& controller, const LookAtRails& rails) {
  return Agent(controller, rails).serve();
}

}  // namespace faultline::agent
