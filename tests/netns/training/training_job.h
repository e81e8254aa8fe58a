#pragma once

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/launch/process.h"
#include "harness/site/netns/cluster.h"
#include "harness/workload/rank_config.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"
#include "wire/rank.h"

namespace faultline::workload {

/// Longer than anything that works takes on a busy machine.
inline constexpr Duration kLong = 30s;

/// The ranks of one job, one per node of a cluster, and all that they have said.
class TrainingJob {
 public:
  struct Rank {
    launch::Process process;
    std::vector<wire::FromRank> messages;
  };

  /// `shape` is what all ranks have in common; ranks, addresses and files are filled in.
  static Result<std::unique_ptr<TrainingJob>> start(netns::Cluster& cluster,
                                                    const RankConfig& shape) {
    auto job = std::make_unique<TrainingJob>();
    const netns::ClusterSpec& spec = cluster.spec();
    const auth::JobKey key = auth::JobKey::random();
    for (int node = 0; node < spec.nodes; ++node) {
      RankConfig config = shape;
      config.rank = node;
      config.size = spec.nodes;
      config.jobKey = key;
      for (int rail = 0; rail < spec.rails; ++rail) {
        config.nics.push_back({netns::railName(rail), netns::railAddress(node, rail)});
      }
      config.managementAddress = netns::managementAddress(node);
      config.rendezvousAddress = netns::managementAddress(0);
      config.rendezvousPort = kRendezvousPort;
      config.controlTos = cluster.controlTos();
      if (!shape.checkpointPath.empty()) config.checkpointPath += "." + std::to_string(node);
      launch::SpawnOptions spawn;
      spawn.executable = FAULTLINE_PROGRAM;
      spawn.arguments = {"faultline", "rank"};
      spawn.namespace_fd = cluster.nodeNamespace(node);
      spawn.first_message = toJson(config);
      ASSIGN_OR_RETURN(launch::Process process, launch::Process::spawn(spawn));
      job->ranks_.push_back({std::move(process), {}});
    }
    return job;
  }

  std::vector<Rank>& ranks() { return ranks_; }

  /// Reads what has come; true when something has.
  bool read() {
    bool any = false;
    for (Rank& rank : ranks_) {
      while (true) {
        auto message = rank.process.messages().receive();
        if (!message.ok() || !*message) break;
        const auto said = wire::fromJson<wire::FromRank>(**message);
        EXPECT_OK(said.status());
        if (said.ok()) rank.messages.push_back(*said);
        any = true;
      }
    }
    return any;
  }

  /// All messages of a kind from one rank; warm-up left out.
  template <typename Message>
  std::vector<Message> of(int rank) const {
    std::vector<Message> found;
    for (const wire::FromRank& message : ranks_[rank].messages) {
      const auto* const one = std::get_if<Message>(&message);
      if (one == nullptr) continue;
      if constexpr (requires { one->warmup; }) {
        if (one->warmup) continue;
      }
      found.push_back(*one);
    }
    return found;
  }

  /// Waits until every rank has sent `count` messages of a kind.
  template <typename Message>
  bool await(std::size_t count = 1) {
    return test::pollUntil(kLong, [&] {
      read();
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        if (of<Message>(rank).size() < count) return false;
      }
      return true;
    });
  }

  void tell(int rank, const wire::ToRank& message) {
    EXPECT_OK(ranks_[rank].process.messages().send(wire::toJson(message)));
  }
  void tellAll(const wire::ToRank& message) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) tell(rank, message);
  }

  /// From the spawning to the controller's wire::Start.
  bool begin() {
    if (!await<wire::Ready>()) return false;
    tellAll(wire::Start{});
    return true;
  }

  /// Waits for the end of all ranks and expects it to be a good one.
  void expectDone() {
    EXPECT_TRUE(await<wire::Done>());
    for (Rank& rank : ranks_) {
      const auto ended = rank.process.waitFor(kLong);
      ASSERT_TRUE(ended.ok()) << ended.status().toString();
      EXPECT_TRUE(ended->ok()) << ended->toString();
    }
    read();
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      for (const auto& error : of<wire::Error>(rank)) ADD_FAILURE() << error.message;
    }
  }

  void killAll() {
    for (Rank& rank : ranks_) EXPECT_OK(rank.process.signal(SIGKILL));
    for (Rank& rank : ranks_) EXPECT_OK(rank.process.waitFor(kLong).status());
  }

  /// Those of one rank: each travels in the first message that ends something after it.
  std::vector<wire::Failover> failoversOf(int rank) const {
    std::vector<wire::Failover> all;
    const auto add = [&all](const wire::Network& network) {
      all.insert(all.end(), network.failovers.begin(), network.failovers.end());
    };
    for (const wire::End& end : of<wire::End>(rank)) {
      if (end.network) add(*end.network);
    }
    for (const wire::Events& events : of<wire::Events>(rank)) add(events.network);
    for (const wire::Done& done : of<wire::Done>(rank)) add(done.network);
    return all;
  }

  std::size_t failovers() const {
    std::size_t count = 0;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      count += failoversOf(rank).size();
    }
    return count;
  }

 private:
  static constexpr std::uint16_t kRendezvousPort = 29500;
  std::vector<Rank> ranks_;
};

}  // namespace faultline::workload
