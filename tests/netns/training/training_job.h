#pragma once

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/cluster/netns_cluster.h"
#include "harness/launch/process.h"
#include "harness/workload/rank_config.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::workload {

/// Longer than anything that works takes on a busy machine.
inline constexpr Duration kLong = 30s;

/// The ranks of one job, one per node of a cluster, and all that they have said.
class TrainingJob {
 public:
  struct Rank {
    launch::Process process;
    std::vector<nlohmann::json> messages;
  };

  /// `shape` is what all ranks have in common; ranks, addresses and files are filled in.
  static Result<std::unique_ptr<TrainingJob>> start(cluster::NetnsCluster& cluster,
                                                    const RankConfig& shape) {
    auto job = std::make_unique<TrainingJob>();
    const cluster::ClusterSpec& spec = cluster.spec();
    const auth::JobKey key = auth::JobKey::random();
    for (int node = 0; node < spec.nodes; ++node) {
      RankConfig config = shape;
      config.rank = node;
      config.size = spec.nodes;
      config.jobKey = key;
      for (int rail = 0; rail < spec.rails; ++rail) {
        config.nics.push_back({cluster::railName(rail), cluster::railAddress(node, rail)});
      }
      config.managementAddress = cluster::managementAddress(node);
      config.rendezvousAddress = cluster::managementAddress(0);
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
        rank.messages.push_back(std::move(**message));
        any = true;
      }
    }
    return any;
  }

  /// All messages of a type from one rank; warm-up left out.
  std::vector<nlohmann::json> of(int rank, const std::string& type) const {
    std::vector<nlohmann::json> found;
    for (const auto& message : ranks_[rank].messages) {
      if (message["type"] == type && !message.value("warmup", false)) found.push_back(message);
    }
    return found;
  }

  /// Waits until every rank has sent `count` messages of a type.
  bool await(const std::string& type, std::size_t count = 1) {
    return test::pollUntil(kLong, [&] {
      read();
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        if (of(rank, type).size() < count) return false;
      }
      return true;
    });
  }

  void tellAll(const std::string& type) {
    for (Rank& rank : ranks_) EXPECT_OK(rank.process.messages().send({{"type", type}}));
  }

  /// From the spawning to the controller's "start".
  bool begin() {
    if (!await("ready")) return false;
    tellAll("start");
    return true;
  }

  /// Waits for the end of all ranks and expects it to be a good one.
  void expectDone() {
    EXPECT_TRUE(await("done"));
    for (Rank& rank : ranks_) {
      const auto ended = rank.process.waitFor(kLong);
      ASSERT_TRUE(ended.ok()) << ended.status().toString();
      EXPECT_TRUE(ended->ok()) << ended->toString();
    }
    read();
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      for (const auto& error : of(rank, "error")) ADD_FAILURE() << error.dump();
    }
  }

  void killAll() {
    for (Rank& rank : ranks_) EXPECT_OK(rank.process.signal(SIGKILL));
    for (Rank& rank : ranks_) EXPECT_OK(rank.process.waitFor(kLong).status());
  }

  /// Those of one rank: each travels in the first message that ends something after it.
  std::vector<nlohmann::json> failoversOf(int rank) const {
    std::vector<nlohmann::json> all;
    for (const char* type : {"end", "done"}) {
      for (const auto& message : of(rank, type)) {
        if (!message.contains("failovers")) continue;
        all.insert(all.end(), message["failovers"].begin(), message["failovers"].end());
      }
    }
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
