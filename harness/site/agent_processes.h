#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/message_channel.h"
#include "harness/site/agents.h"
#include "harness/site/cluster.h"
#include "harness/site/processes.h"

namespace faultline::site {

/// Processes that agents have started and will end. What guards say comes by their agents. Ranks of
/// this machine, who say more and sooner, have channels of their own.
class AgentProcesses final : public Processes {
 public:
  /// `agents` is borrowed, and has those of all nodes that are named. They log into `logFd`
  /// (borrowed).
  static Result<std::unique_ptr<Processes>> startRanks(Agents& agents,
                                                       const std::vector<RankProcess>& ranks,
                                                       int logFd);
  /// The same on other machines, by their agents. They log where `agents` has been told.
  static Result<std::unique_ptr<Processes>> startRelayedRanks(
      Agents& agents, const std::vector<RankProcess>& ranks);
  /// `logFd`: -1 where it is not of the agents' machines.
  static Result<std::unique_ptr<Processes>> startGuards(Agents& agents,
                                                        const std::vector<GuardProcess>& guards,
                                                        int logFd,
                                                        Duration killBudget = kKillBudget);
  /// The same on other machines, whose folders are not the controller's: what is printed and
  /// written there comes into GuardProcess::folder. `folderThere` as Cluster::folderThere.
  using FolderThere = std::function<std::string(int node, const std::string& folder)>;
  static Result<std::unique_ptr<Processes>> startGuardsElsewhere(
      Agents& agents, const std::vector<GuardProcess>& guards, const FolderThere& folderThere);
  ~AgentProcesses() override;

  /// For all of them together, after SIGKILL: a process is gone as soon as the kernel has torn it
  /// down; guests are slow. An agent that does not answer is not waited for so long: this is more
  /// than the patience of any site.
  static constexpr Duration kKillBudget = 20s;

  Status poll(Duration timeout, int interruptFd, const Received& received) override;
  void broadcast(const nlohmann::json& message) override;
  Status kill() override;
  bool allEnded() const override;

 private:
  struct One {
    int job = 0;
    std::optional<launch::MessageChannel> channel{};  // of a rank of this machine
    bool relayed = false;                             // a rank of another one
    bool silent = false;                              // nothing more will come from it
    std::map<std::string, std::string> here{};  // of files of a guard elsewhere: by their path
  };
  AgentProcesses(Agents& agents, std::string_view what, Duration killBudget = kKillBudget)
      : agents_(agents), what_(what), killBudget_(killBudget) {}

  Status awaitStarted();
  Status drainRank(std::size_t index, const Received& received);
  Status drainRelayed(std::size_t index, const Received& received);
  Status drainGuard(std::size_t index, const Received& received);
  Result<std::string> awaitEnd(const One& rank);
  bool hasEnded(const One& one) const;
  using Hung = std::map<int, Status>;  // by node: why its agent is lost
  /// Notes those that are lost by now.
  void requireLife(const std::set<int>& nodes, TimePoint since, Hung& hung);

  Agents& agents_;
  std::string_view what_;  // they are
  Duration killBudget_;
  std::vector<One> processes_;
  bool killed_ = false;
  std::set<int> silent_;  // nodes whose agents have not told how a rank has ended
};

}  // namespace faultline::site
