#pragma once

#include <poll.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "harness/site/clock_offset.h"
#include "harness/site/log_lines.h"
#include "wire/agent.h"

namespace faultline::site {

/// The controller's side of the agents of a cluster's nodes (harness/agent/agent.h). What they are
/// told goes through it; what they say waits here for who asks for it. One with a lease
/// (wire::AgentSetup) is asked often enough to keep it, and lost when it is silent for as long. Not
/// thread-safe.
///
/// Moments in what it hands out are those of this process's clock: those of a node's clock become
/// so by the offset of the two, which it asks for all the time where the clocks are not the same.
class Agents {
 public:
  /// Why the agent of a node is not there any more: its site knows, and ends what is left of it.
  /// `what`: what was noticed, "is not heard any more: ..."; `lives`: it hangs, perhaps, and does
  /// not end by itself. Never ok.
  using Lost = std::function<Status(int node, const std::string& what, bool lives)>;
  /// An answer of an agent of this machine takes less than a millisecond, when nothing is wrong.
  static constexpr Duration kPatience = 3s;
  /// When nobody waits any more: it is killed a moment later anyway.
  static constexpr Duration kLastPatience = 1s;
  /// `patience`: how long an agent may say nothing that is to end something.
  explicit Agents(Lost lost, Duration patience = kPatience)
      : lost_(std::move(lost)), patience_(patience) {}

  /// What is to be heard besides, whenever agents are listened to: a descriptor, and what to do
  /// then.
  void alsoHear(int fd, std::function<Status()> look);
  /// To be asked by what waits until something has begun; not by what waits for an end.
  void giveUpWhen(GiveUp giveUp) { giveUp_ = std::move(giveUp); }
  const GiveUp& giveUp() const { return giveUp_; }

  /// An agent that waits for its first message; `clock`: what is known of its clock.
  Status add(int node, launch::MessageChannel agent, const ClockOffset& clock,
             const wire::AgentSetup& setup);
  bool has(int node) const { return agents_.contains(node); }
  /// It serves, and its clock is known.
  bool isReady(int node) const;
  /// To execute a program takes milliseconds, but on a machine that is busy with others.
  static constexpr Duration kReadyBudget = 30s;
  /// Until all are; kDeadlineExceeded, kAborted when it was given up.
  Status awaitReady(Duration budget = kReadyBudget);
  /// Its site has said why.
  bool isLost(int node) const;

  /// Asks it for a sign of life. It is lost, which is the error, when it has given none for too
  /// long, since `since` at the earliest. To be called again and again, after listen().
  Status requireLife(int node, TimePoint since);

  /// Takes in what has come, and waits for at most `timeout` when nothing has; also returns when
  /// something of `others` has come, whose `revents` are set. An error when an agent is lost, again
  /// and again, after those of the others have been heard.
  Status listen(Duration timeout, std::span<pollfd> others = {});

  // What runs on a node. A job has a number, and is forgotten by who has started it.

  /// Starts a guard. `logFd`: where the guard itself logs to (borrowed); -1: where its agent does.
  Result<int> startGuard(int node, const wire::GuardJob& job, bool read, int logFd = -1);
  /// What a file of a job has got (wire::JobWrote), as it comes.
  using Wrote = std::function<Status(int file, std::string_view bytes)>;
  /// Starts one on another machine, whose files come here: `message` without its number. The first
  /// error of `wrote` is kept (broken()).
  Result<int> startGuard(int node, wire::StartJob message, Wrote wrote);
  Status broken(int job) const { return jobs_.at(job).broken; }
  /// Starts a rank, with its end of a message channel (borrowed).
  Result<int> startRank(int node, const std::map<std::string, std::string>& environment,
                        int messagesFd, int logFd);
  /// Starts one on another machine: what it and the controller say goes through its agent. `name`:
  /// "rank 3", in front of what it logs.
  Result<int> startRelayedRank(int node, const std::map<std::string, std::string>& environment,
                               const nlohmann::json& config, const std::string& name = "");
  /// What such a rank has said next, if it has come.
  std::optional<nlohmann::json> rankSaid(int job);
  Status tellRank(int job, const nlohmann::json& message);
  /// Where to write what such ranks log (borrowed), line by line, each with the name of its node,
  /// its own and its job's number; -1: it is thrown away.
  void logTo(int fd, std::vector<std::string> nodes) {
    logFd_ = fd;
    nodes_ = std::move(nodes);
  }
  /// Whether it has been started; nothing: that is not known yet.
  std::optional<Status> started(int job) const;
  /// How a rank has ended, once it has.
  std::optional<std::string> rankEnd(int job) const;
  /// What a guard has said next, if it has come.
  std::optional<wire::FromGuard> guardSaid(int job);
  /// What its programs have printed until its last word, which may be that it failed: comes after
  /// it, where it was to be read.
  std::optional<std::vector<wire::Printed>> output(int job) const;
  Status tellGuard(int job, const wire::ToGuard& message);
  /// SIGKILL; its end comes later.
  Status end(int job);
  int nodeOf(int job) const { return jobs_.at(job).node; }
  void forget(int job) { jobs_.erase(job); }

  // Faults that are held on a node, by number.

  Result<int> startFault(int node, const wire::HeldFault& fault);
  Status tellFault(int fault, const wire::ToHolder& message);
  std::optional<wire::FromHolder> faultSaid(int fault);
  Status endFault(int fault);

  Status askForRails(int node);
  /// The answer, once it has come.
  std::optional<std::vector<wire::RailState>> toldRails(int node) const;

  Status askForFacts(int node) { return tell(node, wire::AskFacts{}); }
  /// The answer, once it has come.
  const std::optional<wire::HostFacts>& toldFacts(int node) const { return agents_.at(node).facts; }

  /// Has its agent ask the fault service of its machine.
  Status askFaultService(int node, const wire::AskFaultService& question) {
    agents_.at(node).service.reset();
    return tell(node, question);
  }
  /// What that has said, or why there is no answer, once that is known.
  const std::optional<wire::FaultServiceTold>& toldFaultService(int node) const {
    return agents_.at(node).service;
  }

  /// What is missing to start that there; toldMissing() is the answer.
  Status askForMissing(int node, const wire::CheckJob& job);
  const std::optional<std::vector<std::string>>& toldMissing(int node) const {
    return agents_.at(node).missing;
  }

  /// What its agent says of that folder; toldShared() is the answer.
  Status askForShared(int node, const wire::ShareFolder& folder);
  const std::optional<Status>& toldShared(int node) const { return agents_.at(node).shared; }

  /// Has its agent tell what these interfaces have carried, as often as that.
  Status watchCounters(int node, const std::vector<std::string>& interfaces, Duration every) {
    return tell(node, wire::WatchCounters{interfaces, every});
  }
  /// What was told last; empty: nothing yet.
  const std::vector<wire::PortCounters>& toldCounters(int node) const {
    return agents_.at(node).counters;
  }

  /// What is known of the clock of a node now.
  std::optional<ClockOffset::Estimate> clockOf(int node) const {
    return agents_.at(node).clock.at(now());
  }
  /// How far the nodes' clocks may be from what is taken for them, at most.
  Duration clockError() const;

 private:
  struct Agent {
    launch::MessageChannel channel;
    ClockOffset clock;
    bool ready = false;
    TimePoint heard{};  // the latest that it has said
    bool more = false;  // something may have come already that is not taken yet
    Status lost{};
    bool estimated = false;                               // its clock is
    std::optional<TimePoint> clockAsked{};                // and not answered yet
    TimePoint clockDue{};                                 // when it is to be asked again
    std::optional<std::vector<wire::RailState>> rails{};  // the latest answer
    Duration lease{};                                     // 0: it may be silent for ever
    std::optional<wire::HostFacts> facts{};
    std::optional<wire::FaultServiceTold> service{};  // the latest answer
    std::optional<std::vector<std::string>> missing{};
    std::optional<Status> shared{};
    std::vector<wire::PortCounters> counters{};
  };
  struct Job {
    int node = 0;
    std::optional<Status> started{};
    std::optional<std::string> end{};  // of a rank
    std::deque<wire::FromGuard> said{};
    std::deque<nlohmann::json> rankSaid{};
    LogLines logged{};
    std::optional<std::vector<wire::Printed>> output{};
    Wrote wrote{};
    Status broken{};
  };
  struct Holder {
    int node = 0;
    std::deque<wire::FromHolder> said{};
  };

  Status tell(int node, const wire::ToAgent& message, std::span<const int> descriptors = {});
  bool isSilent(const Agent& agent) const;
  Status lose(Agent& agent, int node, const std::string& what, bool lives = false);
  Status askForClocks();
  Status take(int node, Agent& agent);
  Status received(int node, Agent& agent, wire::FromAgent message);
  void log(const std::string& lines);

  Lost lost_;
  Duration patience_;
  int besideFd_ = -1;
  int logFd_ = -1;
  std::vector<std::string> nodes_;  // by name, for logs
  std::function<Status()> beside_;
  GiveUp giveUp_;
  std::map<int, Agent> agents_;  // by node
  std::map<int, Job> jobs_;
  int nextJob_ = 1;
  std::map<int, Holder> faults_;
  int nextFault_ = 1;
};

}  // namespace faultline::site
