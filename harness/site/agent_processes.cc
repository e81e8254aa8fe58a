#include "harness/site/agent_processes.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "base/units.h"
#include "harness/site/file_copies.h"
#include "wire/agent.h"

namespace faultline::site {
namespace {

constexpr Duration kPause = 10ms;
constexpr Duration kStartBudget = 60s;
// A rank that has closed its messages is on its way out; the loop does not wait longer for its exit
// status.
constexpr Duration kExitBudget = 200ms;

bool isLastWord(const wire::FromGuard& message) {
  return std::visit(
      []<typename Message>(const Message&) {
        return wire::kIsOneOf<Message, wire::GuardFinished, wire::GuardError, wire::Gone>;
      },
      message);
}

/// What a guard on another machine is to start, and where its files are to come: by their place in
/// the message.
struct JobElsewhere {
  wire::StartJob message{};
  std::vector<std::string> here{};
};

JobElsewhere jobElsewhere(const GuardProcess& guard, const std::string& there) {
  JobElsewhere job;
  job.message.guard = guard.job;
  job.message.folder = there;
  const auto bring = [&](const std::string& path, wire::Bringing how) {
    job.message.files.push_back({fmt::format("{}/{}", there, path), how});
    job.here.push_back(fmt::format("{}/{}", guard.folder, path));
  };
  for (const wire::GuardedProgram& program : guard.job.programs) {
    for (const std::string& printed : {program.stdoutPath, program.stderrPath}) {
      bring(std::filesystem::path(printed).lexically_relative(there).string(),
            wire::Bringing::kGrowing);
    }
  }
  for (const WrittenFile& file : guard.files) bring(file.path, file.how);
  return job;
}

/// The first, with the words of all.
Status asOne(const std::map<int, Status>& errors) {
  if (errors.empty()) return okStatus();
  std::string text;
  for (const auto& [node, error] : errors) text += (text.empty() ? "" : "; ") + error.message();
  return Status(errors.begin()->second.code(), text);
}

}  // namespace

Result<std::unique_ptr<Processes>> AgentProcesses::startRanks(Agents& agents,
                                                              const std::vector<RankProcess>& ranks,
                                                              int logFd) {
  std::unique_ptr<AgentProcesses> started(new AgentProcesses(agents, "rank"));
  for (const RankProcess& rank : ranks) {
    ASSIGN_OR_RETURN(auto ends, launch::MessageChannel::makePair());
    ASSIGN_OR_RETURN(const int job,
                     agents.startRank(rank.node, rank.environment, ends.second.fd(), logFd));
    started->processes_.push_back({.job = job, .channel = std::move(ends.first)});
    // It waits in the channel. One that cannot be started does not read it, which is told below.
    const Status sent = started->processes_.back().channel->send(rank.config, {}, agents.giveUp());
    if (sent.ok() || sent.code() == Code::kUnavailable) continue;
    return sent.withContext(fmt::format("start rank {}", started->processes_.size() - 1));
  }
  RETURN_IF_ERROR(started->awaitStarted());
  return std::unique_ptr<Processes>(std::move(started));
}

Result<std::unique_ptr<Processes>> AgentProcesses::startRelayedRanks(
    Agents& agents, const std::vector<RankProcess>& ranks) {
  std::unique_ptr<AgentProcesses> started(new AgentProcesses(agents, "rank"));
  for (const RankProcess& rank : ranks) {
    ASSIGN_OR_RETURN(const int job,
                     agents.startRelayedRank(rank.node, rank.environment, rank.config,
                                             fmt::format("rank {}", started->processes_.size())));
    started->processes_.push_back({.job = job, .relayed = true});
  }
  RETURN_IF_ERROR(started->awaitStarted());
  return std::unique_ptr<Processes>(std::move(started));
}

Result<std::unique_ptr<Processes>> AgentProcesses::startGuards(
    Agents& agents, const std::vector<GuardProcess>& guards, int logFd, Duration killBudget) {
  std::unique_ptr<AgentProcesses> started(new AgentProcesses(agents, "the guard", killBudget));
  for (const GuardProcess& guard : guards) {
    constexpr bool kRead = false;  // files of the controller's machine
    ASSIGN_OR_RETURN(const int job, agents.startGuard(guard.node, guard.job, kRead, logFd));
    started->processes_.push_back({.job = job});
  }
  RETURN_IF_ERROR(started->awaitStarted());
  return std::unique_ptr<Processes>(std::move(started));
}

Result<std::unique_ptr<Processes>> AgentProcesses::startGuardsElsewhere(
    Agents& agents, const std::vector<GuardProcess>& guards, const FolderThere& folderThere) {
  std::unique_ptr<AgentProcesses> started(new AgentProcesses(agents, "the guard"));
  for (const GuardProcess& guard : guards) {
    const JobElsewhere job = jobElsewhere(guard, folderThere(guard.node, guard.folder));
    const auto copies = std::make_shared<FileCopies>(job.here);
    ASSIGN_OR_RETURN(const int id, agents.startGuard(guard.node, job.message,
                                                     [copies](int file, std::string_view bytes) {
                                                       return copies->append(file, bytes);
                                                     }));
    One& one = started->processes_.emplace_back(One{.job = id});
    for (std::size_t file = 0; file < job.here.size(); ++file) {
      one.here.emplace(job.message.files[file].path, job.here[file]);
    }
  }
  RETURN_IF_ERROR(started->awaitStarted());
  return std::unique_ptr<Processes>(std::move(started));
}

AgentProcesses::~AgentProcesses() {
  if (!killed_) (void)kill();
  for (const One& one : processes_) agents_.forget(one.job);
}

Status AgentProcesses::awaitStarted() {
  const TimePoint deadline = now() + kStartBudget;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const int job = processes_[index].job;
    while (!agents_.started(job)) {
      RETURN_IF_ERROR(agents_.listen(kPause));
      RETURN_IF_ERROR(unlessGivenUp(agents_.giveUp(), fmt::format("start {} {}", what_, index)));
      if (now() < deadline) continue;
      return errorf(Code::kDeadlineExceeded,
                    "start {} {}: the agent of node {} has not done it "
                    "within {}",
                    what_, index, agents_.nodeOf(job), formatDuration(kStartBudget));
    }
    RETURN_IF_ERROR(agents_.started(job)->withContext(fmt::format("start {} {}", what_, index)));
  }
  return okStatus();
}

Status AgentProcesses::poll(Duration timeout, int interruptFd, const Received& received) {
  std::vector<pollfd> waiting{{interruptFd, POLLIN, 0}};
  for (const One& one : processes_) {
    waiting.push_back({one.silent || !one.channel ? -1 : one.channel->fd(), POLLIN, 0});
  }
  RETURN_IF_ERROR(agents_.listen(timeout, waiting));
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const One& one = processes_[index];
    if (one.silent || (one.channel && waiting[index + 1].revents == 0)) continue;
    const Status heard = one.channel   ? drainRank(index, received)
                         : one.relayed ? drainRelayed(index, received)
                                       : drainGuard(index, received);
    RETURN_IF_ERROR(heard.withContext(fmt::format("listen to {} {}", what_, index)));
  }
  return okStatus();
}

Status AgentProcesses::drainRank(std::size_t index, const Received& received) {
  One& self = processes_[index];
  for (;;) {
    auto message = self.channel->receive();
    if (!message.ok()) {
      self.silent = true;
      if (message.status().code() != Code::kUnavailable) return message.status();
      ASSIGN_OR_RETURN(const std::string how, awaitEnd(self));
      const std::variant<wire::Gone> gone(wire::Gone{how});
      return received(static_cast<int>(index), wire::toJson(gone));
    }
    if (!*message) return okStatus();
    if (wire::isGone(**message)) {
      return errorf(Code::kInvalidArgument, "it says of itself that it is gone");
    }
    RETURN_IF_ERROR(received(static_cast<int>(index), **message));
  }
}

/// An error when it has ended with its agent.
Result<std::string> AgentProcesses::awaitEnd(const One& rank) {
  const int node = agents_.nodeOf(rank.job);
  const TimePoint deadline = now() + (silent_.contains(node) ? Duration::zero() : kExitBudget);
  for (;;) {
    if (auto how = agents_.rankEnd(rank.job)) return *how;
    if (now() >= deadline) {
      silent_.insert(node);
      return fmt::format("it still runs after {}", formatDuration(kExitBudget));
    }
    RETURN_IF_ERROR(agents_.listen(kPause));
  }
}

Status AgentProcesses::drainRelayed(std::size_t index, const Received& received) {
  One& self = processes_[index];
  while (const auto message = agents_.rankSaid(self.job)) {
    if (wire::isGone(*message)) {
      return errorf(Code::kInvalidArgument, "it says of itself that it is gone");
    }
    RETURN_IF_ERROR(received(static_cast<int>(index), *message));
  }
  const auto how = agents_.rankEnd(self.job);  // it comes after all that the rank has said
  if (!how) return okStatus();
  self.silent = true;
  const std::variant<wire::Gone> gone(wire::Gone{*how});
  return received(static_cast<int>(index), wire::toJson(gone));
}

Status AgentProcesses::drainGuard(std::size_t index, const Received& received) {
  One& self = processes_[index];
  RETURN_IF_ERROR(agents_.broken(self.job));
  while (auto message = agents_.guardSaid(self.job)) {
    if (isLastWord(*message)) self.silent = true;
    if (auto* const finished = std::get_if<wire::GuardFinished>(&*message)) {
      for (std::string& file : finished->cut) {
        if (const auto found = self.here.find(file); found != self.here.end()) file = found->second;
      }
    }
    RETURN_IF_ERROR(received(static_cast<int>(index), wire::toJson(*message)));
  }
  return okStatus();
}

void AgentProcesses::broadcast(const nlohmann::json& message) {
  // One that has just died is noticed by poll.
  for (One& one : processes_) {
    if (one.silent) continue;
    if (one.channel) {
      (void)one.channel->send(message, {}, agents_.giveUp());
    } else if (one.relayed) {
      (void)agents_.tellRank(one.job, message);
    } else if (const auto typed = wire::fromJson<wire::ToGuard>(message); typed.ok()) {
      (void)agents_.tellGuard(one.job, *typed);
    }
  }
}

bool AgentProcesses::hasEnded(const One& one) const {
  const auto started = agents_.started(one.job);
  const bool refused = started && !started->ok();
  const bool over = one.channel || one.relayed ? agents_.rankEnd(one.job).has_value() : one.silent;
  // With its agent, or with its node, ends all that it has started.
  return over || refused || agents_.isLost(agents_.nodeOf(one.job));
}

void AgentProcesses::requireLife(const std::set<int>& nodes, TimePoint since, Hung& hung) {
  for (const int node : nodes) {
    if (agents_.isLost(node)) continue;
    const Status status = agents_.requireLife(node, since);
    if (!status.ok()) hung.emplace(node, status);
  }
}

Status AgentProcesses::kill() {
  killed_ = true;
  const auto running = [this](const One& one) { return !hasEnded(one); };
  std::set<int> nodes;
  for (const One& one : processes_) {
    if (!running(one)) continue;
    (void)agents_.end(one.job);
    nodes.insert(agents_.nodeOf(one.job));
  }
  const TimePoint asked = now();
  const TimePoint deadline = asked + killBudget_;
  Hung hung;  // and with them all that they have started
  while (std::ranges::any_of(processes_, running)) {
    const Status heard = agents_.listen(kPause);
    for (One& one : processes_) {
      if (one.channel || one.relayed) continue;
      while (const auto message = agents_.guardSaid(one.job)) {
        one.silent = one.silent || isLastWord(*message);
      }
    }
    // That of an agent which is lost leaves those of the others.
    const bool oneIsLost = std::ranges::any_of(
        processes_, [this](const One& one) { return agents_.isLost(agents_.nodeOf(one.job)); });
    if (!heard.ok() && !oneIsLost) break;  // the nodes are gone, and they with them
    requireLife(nodes, asked, hung);
    if (now() < deadline) continue;
    const auto last = std::ranges::find_if(processes_, running);
    if (last == processes_.end()) break;  // those that were left have just been given up
    return errorf(Code::kDeadlineExceeded,
                  "processes of node {} outlive SIGKILL by {}, or its agent does not tell",
                  agents_.nodeOf(last->job), formatDuration(killBudget_));
  }
  for (One& one : processes_) one.silent = true;
  return asOne(hung);
}

bool AgentProcesses::allEnded() const { return std::ranges::all_of(processes_, &One::silent); }

}  // namespace faultline::site
