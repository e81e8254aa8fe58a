#include "harness/site/agents.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <utility>
#include <variant>

#include "base/json.h"
#include "base/units.h"
#include "harness/site/moments.h"
#include "wire/rank.h"

namespace faultline::site {

using nlohmann::json;

namespace {

// Of questions for a node's clock: a busy one answers late, and the best of some is kept.
constexpr Duration kClockInterval = 250ms;
constexpr Duration kReadyPause = 20ms;
constexpr int kMostAtOnce = 256;  // messages of an agent

void toOurs(wire::HolderAnswer& answer, const ClockOffset& clock) {
  const TimePoint heard = now();
  for (wire::FaultChange& change : answer.changes) {
    change.before = clock.ours(change.before, heard);
    change.after = clock.ours(change.after, heard);
  }
  if (answer.lapsed) answer.lapsed = clock.ours(*answer.lapsed, heard);
}

/// What a rank of another machine says. Nothing is changed of what is no message: whoever reads it
/// says so.
void toOurs(json& message, const ClockOffset& clock) {
  auto said = wire::fromJson<wire::FromRank>(message);
  if (!said.ok()) return;
  const TimePoint heard = now();
  eachMoment(*said, [&](TimePoint& moment) { moment = clock.ours(moment, heard); });
  message = wire::toJson(*said);
}

}  // namespace

void Agents::alsoHear(int fd, std::function<Status()> look) {
  besideFd_ = fd;
  beside_ = std::move(look);
}

Status Agents::add(int node, launch::MessageChannel agent, const ClockOffset& clock,
                   const wire::AgentSetup& setup) {
  const bool known = clock.at(now()).has_value();
  agents_.insert_or_assign(
      node,
      Agent{
          .channel = std::move(agent), .clock = clock, .estimated = !known, .lease = setup.lease});
  return tell(node, setup);
}

bool Agents::isReady(int node) const {
  const auto found = agents_.find(node);
  return found != agents_.end() && found->second.ready && found->second.clock.at(now());
}

bool Agents::isLost(int node) const {
  const auto found = agents_.find(node);
  return found != agents_.end() && !found->second.lost.ok();
}

Status Agents::awaitReady(Duration budget) {
  const TimePoint deadline = now() + budget;
  for (const auto& [node, agent] : agents_) {
    while (!isReady(node)) {
      RETURN_IF_ERROR(listen(kReadyPause));
      RETURN_IF_ERROR(unlessGivenUp(giveUp_, fmt::format("start the agent of node {}", node)));
      if (now() < deadline) continue;
      return errorf(Code::kDeadlineExceeded, "the agent of node {} is not ready after {}", node,
                    formatDuration(budget));
    }
  }
  return okStatus();
}

Status Agents::lose(Agent& agent, int node, const std::string& what, bool lives) {
  if (agent.lost.ok()) agent.lost = lost_(node, what, lives);
  return agent.lost;
}

Status Agents::requireLife(int node, TimePoint since) {
  const auto found = agents_.find(node);
  if (found == agents_.end()) return okStatus();
  Agent& agent = found->second;
  RETURN_IF_ERROR(agent.lost);
  const bool last = giveUp_ && giveUp_();
  const Duration patience = last ? std::min(patience_, kLastPatience) : patience_;
  if (now() > std::max(since, agent.heard) + patience) {
    return lose(agent, node, "has not answered for " + formatDuration(patience), /*lives=*/true);
  }
  if (agent.clockAsked) return okStatus();  // the answer to that is one
  agent.clockAsked = now();
  return tell(node, wire::AskClock{});
}

Status Agents::tell(int node, const wire::ToAgent& message, std::span<const int> descriptors) {
  const auto found = agents_.find(node);
  if (found == agents_.end()) return errorf(Code::kNotFound, "node {} has no agent", node);
  Agent& agent = found->second;
  RETURN_IF_ERROR(agent.lost);
  const GiveUp tooLate = [&, began = now(), ending = std::optional<TimePoint>()]() mutable {
    if (agent.lease > Duration::zero() && now() - began >= agent.lease) return true;
    if (!giveUp_ || !giveUp_()) return false;
    if (!ending) ending = now();
    return now() - *ending >= kLastPatience;
  };
  const Status sent = agent.channel.send(wire::toJson(message), descriptors, tooLate);
  if (sent.ok()) return okStatus();
  return lose(agent, node, "cannot be told anything any more: " + sent.message());
}

Status Agents::askForClocks() {
  for (auto& [node, agent] : agents_) {
    const TimePoint time = now();
    const bool asked = agent.estimated || agent.lease > Duration::zero();
    if (!asked || !agent.ready || agent.clockAsked || time < agent.clockDue) continue;
    agent.clockAsked = time;
    agent.clockDue = time + kClockInterval;
    (void)tell(node, wire::AskClock{});  // one that is lost is told of below
  }
  return okStatus();
}

bool Agents::isSilent(const Agent& agent) const {
  return agent.lease > Duration::zero() && agent.clockAsked &&
         now() - std::max(*agent.clockAsked, agent.heard) >= agent.lease;
}

Status Agents::listen(Duration timeout, std::span<pollfd> others) {
  RETURN_IF_ERROR(askForClocks());
  std::vector<pollfd> waiting(others.begin(), others.end());
  waiting.push_back({besideFd_, POLLIN, 0});
  for (const auto& [node, agent] : agents_) {
    waiting.push_back({agent.lost.ok() ? agent.channel.fd() : -1, POLLIN, 0});
    if (agent.lost.ok() && agent.more) timeout = Duration::zero();
  }
  const timespec pause{.tv_sec = duration_cast<std::chrono::seconds>(timeout).count(),
                       .tv_nsec = (timeout % 1s).count()};
  if (::ppoll(waiting.data(), waiting.size(), &pause, nullptr) < 0) {
    if (errno != EINTR) return Status::fromErrno(errno, "wait for the agents of nodes");
    for (pollfd& one : waiting) one.revents = 0;
  }
  std::copy_n(waiting.begin(), others.size(), others.begin());
  auto next = waiting.begin() + static_cast<std::ptrdiff_t>(others.size());
  Status first;
  if (beside_) first = beside_();
  for (auto& [node, agent] : agents_) {
    ++next;
    Status status = agent.lost;
    if (status.ok() && (next->revents != 0 || agent.more)) {
      status = take(node, agent);
    }
    // Only now: what has come meanwhile is its sign of life.
    if (status.ok() && isSilent(agent)) {
      status =
          lose(agent, node, "has not answered for " + formatDuration(agent.lease), /*lives=*/true);
    }
    if (first.ok()) first = status;
  }
  return first;
}

Status Agents::take(int node, Agent& agent) {
  // One that never stops talking must leave others, and who has called, their turn.
  agent.more = false;
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    Result<std::optional<json>> message = agent.channel.receive();
    if (!message.ok()) {
      return lose(agent, node, "is not heard any more: " + message.status().message());
    }
    if (!*message) return okStatus();
    agent.heard = now();
    auto said = wire::fromJson<wire::FromAgent>(**message);
    if (!said.ok()) {
      return lose(agent, node, "says what nobody understands: " + said.status().message());
    }
    RETURN_IF_ERROR(received(node, agent, std::move(*said)));
  }
  agent.more = true;
  return okStatus();
}

Status Agents::received(int node, Agent& agent, wire::FromAgent message) {
  // Of jobs of other nodes it knows nothing: one that speaks of them is broken, or lies.
  const auto jobOf = [this, node](int id) -> Job* {
    const auto found = jobs_.find(id);
    return found == jobs_.end() || found->second.node != node ? nullptr : &found->second;
  };
  if (std::holds_alternative<wire::AgentReady>(message)) {
    agent.ready = true;
  } else if (const auto* const error = std::get_if<wire::AgentError>(&message)) {
    return lose(agent, node, "cannot do its work: " + error->message);
  } else if (const auto* const clock = std::get_if<wire::ClockTold>(&message)) {
    if (agent.clockAsked && agent.estimated) agent.clock.add(*agent.clockAsked, clock->at, now());
    agent.clockAsked.reset();
  } else if (auto* const rails = std::get_if<wire::RailsTold>(&message)) {
    agent.rails = std::move(rails->rails);
  } else if (auto* const holder = std::get_if<wire::HolderSaid>(&message)) {
    if (auto* const answer = std::get_if<wire::HolderAnswer>(&holder->message)) {
      toOurs(*answer, agent.clock);
    }
    const auto found = faults_.find(holder->fault);
    if (found != faults_.end()) found->second.said.push_back(std::move(holder->message));
  } else if (auto* const facts = std::get_if<wire::HostFacts>(&message)) {
    agent.facts = std::move(*facts);
  } else if (auto* const service = std::get_if<wire::FaultServiceTold>(&message)) {
    agent.service = std::move(*service);
  } else if (auto* const counters = std::get_if<wire::CountersTold>(&message)) {
    agent.counters = std::move(counters->ports);
  } else if (const auto* const logged = std::get_if<wire::Logged>(&message)) {
    if (Job* const job = jobOf(logged->job)) log(job->logged.add(logged->text));
  } else if (auto* const rank = std::get_if<wire::RankSaid>(&message)) {
    Job* const job = jobOf(rank->job);
    if (job == nullptr) return okStatus();
    Result<json> said = parseJson(rank->message);
    if (!said.ok()) {
      return lose(agent, node, "says what nobody understands: " + said.status().message());
    }
    if (agent.estimated) toOurs(*said, agent.clock);
    job->rankSaid.push_back(*std::move(said));
  } else if (const auto* const begun = std::get_if<wire::JobStarted>(&message)) {
    if (Job* const job = jobOf(begun->job)) job->started = okStatus();
  } else if (const auto* const refused = std::get_if<wire::JobRefused>(&message)) {
    if (Job* const job = jobOf(refused->job)) job->started = refused->outcome.status();
  } else if (auto* const end = std::get_if<wire::RankEnded>(&message)) {
    if (Job* const job = jobOf(end->job)) {
      log(job->logged.end());
      job->end = std::move(end->how);
    }
  } else if (auto* const output = std::get_if<wire::JobOutput>(&message)) {
    if (Job* const job = jobOf(output->job)) job->output = std::move(output->programs);
  } else if (auto* const missing = std::get_if<wire::JobChecked>(&message)) {
    agent.missing = std::move(missing->missing);
  } else if (const auto* const shared = std::get_if<wire::FolderShared>(&message)) {
    agent.shared = shared->outcome.status();
  } else if (const auto* const wrote = std::get_if<wire::JobWrote>(&message)) {
    Job* const job = jobOf(wrote->job);
    if (job != nullptr && job->wrote && job->broken.ok()) {
      job->broken = job->wrote(wrote->file, wrote->bytes.data);
    }
  } else if (auto* const guard = std::get_if<wire::GuardSaid>(&message)) {
    Job* const job = jobOf(guard->job);
    if (job == nullptr) return okStatus();
    wire::FromGuard& heard = job->said.emplace_back(std::move(guard->message));
    const auto toOurClock = [&](auto& said) {
      if constexpr (requires { said.at; }) said.at = agent.clock.ours(said.at, now());
    };
    std::visit(toOurClock, heard);
  }
  return okStatus();
}

void Agents::log(const std::string& lines) {
  if (logFd_ >= 0) (void)!::write(logFd_, lines.data(), lines.size());
}

Result<int> Agents::startGuard(int node, const wire::GuardJob& job, bool read, int logFd) {
  const int id = nextJob_++;
  jobs_[id] = Job{.node = node};
  const std::array log{logFd};
  const bool logs = logFd >= 0;
  RETURN_IF_ERROR(tell(node, wire::StartJob{.job = id, .guard = job, .read = read, .logs = logs},
                       std::span(log).first(logs ? 1 : 0)));
  return id;
}

Result<int> Agents::startGuard(int node, wire::StartJob message, Wrote wrote) {
  message.job = nextJob_++;
  jobs_[message.job] = Job{.node = node, .wrote = std::move(wrote)};
  const int id = message.job;
  RETURN_IF_ERROR(tell(node, std::move(message)));
  return id;
}

Status Agents::askForMissing(int node, const wire::CheckJob& job) {
  agents_.at(node).missing.reset();
  return tell(node, job);
}

Status Agents::askForShared(int node, const wire::ShareFolder& folder) {
  agents_.at(node).shared.reset();
  return tell(node, folder);
}

Result<int> Agents::startRank(int node, const std::map<std::string, std::string>& environment,
                              int messagesFd, int logFd) {
  const int id = nextJob_++;
  jobs_[id] = Job{.node = node};
  const std::array descriptors{messagesFd, logFd};
  RETURN_IF_ERROR(tell(node, wire::StartRank{id, false, environment}, descriptors));
  return id;
}

Result<int> Agents::startRelayedRank(int node,
                                     const std::map<std::string, std::string>& environment,
                                     const json& config, const std::string& name) {
  const int id = nextJob_++;
  const auto place = static_cast<std::size_t>(node);
  const std::string host = place < nodes_.size() ? nodes_[place] : fmt::format("node {}", node);
  jobs_[id] =
      Job{.node = node, .logged = LogLines(fmt::format("{} {} (job {}): ", host, name, id))};
  RETURN_IF_ERROR(tell(node, wire::StartRank{id, true, environment}));
  RETURN_IF_ERROR(tellRank(id, config));
  return id;
}

std::optional<json> Agents::rankSaid(int job) {
  std::deque<json>& said = jobs_.at(job).rankSaid;
  if (said.empty()) return std::nullopt;
  std::optional message(std::move(said.front()));
  said.pop_front();
  return message;
}

Status Agents::tellRank(int job, const json& message) {
  return tell(nodeOf(job), wire::TellRank{job, launch::MessageChannel::textOf(message)});
}

std::optional<Status> Agents::started(int job) const { return jobs_.at(job).started; }

std::optional<std::string> Agents::rankEnd(int job) const { return jobs_.at(job).end; }

std::optional<wire::FromGuard> Agents::guardSaid(int job) {
  std::deque<wire::FromGuard>& said = jobs_.at(job).said;
  if (said.empty()) return std::nullopt;
  std::optional message(std::move(said.front()));
  said.pop_front();
  return message;
}

std::optional<std::vector<wire::Printed>> Agents::output(int job) const {
  return jobs_.at(job).output;
}

Status Agents::tellGuard(int job, const wire::ToGuard& message) {
  return tell(nodeOf(job), wire::TellGuard{job, message});
}

Status Agents::end(int job) { return tell(nodeOf(job), wire::EndJob{job}); }

Result<int> Agents::startFault(int node, const wire::HeldFault& fault) {
  const int id = nextFault_++;
  faults_[id] = Holder{.node = node};
  RETURN_IF_ERROR(tellFault(id, fault));
  return id;
}

Status Agents::tellFault(int fault, const wire::ToHolder& message) {
  const auto found = faults_.find(fault);
  if (found == faults_.end()) return errorf(Code::kNotFound, "there is no fault {}", fault);
  return tell(found->second.node, wire::TellHolder{fault, message});
}

std::optional<wire::FromHolder> Agents::faultSaid(int fault) {
  const auto found = faults_.find(fault);
  if (found == faults_.end() || found->second.said.empty()) return std::nullopt;
  std::optional message(std::move(found->second.said.front()));
  found->second.said.pop_front();
  return message;
}

Status Agents::endFault(int fault) {
  const auto found = faults_.find(fault);
  if (found == faults_.end()) return okStatus();
  const int node = found->second.node;
  faults_.erase(found);
  return tell(node, wire::EndFault{fault});
}

Status Agents::askForRails(int node) {
  const auto found = agents_.find(node);
  if (found != agents_.end()) found->second.rails.reset();
  return tell(node, wire::AskRails{});
}

std::optional<std::vector<wire::RailState>> Agents::toldRails(int node) const {
  return agents_.at(node).rails;
}

Duration Agents::clockError() const {
  Duration most{};
  for (const auto& [node, agent] : agents_) {
    if (const auto known = agent.clock.at(now())) most = std::max(most, known->error);
  }
  return most;
}

}  // namespace faultline::site
