#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/inference/requests.h"
#include "harness/scenario/scenario.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/channel/link.h"
#include "wire/message.h"

namespace faultline::workload {

/// What a server is asked for, besides what the workload says of it.
struct ServerConfig {
  std::vector<inference::Arrivals> rates;  ///< without what is served already
  int firstRate = 0;                       ///< number of the first of them in the run
  TimePoint rateStart{};                   ///< when that one began; 0: it has not
  int usualPrompt = 1;                     ///< tokens of the requests for warming up
  int usualOutput = 1;
  bool operator==(const ServerConfig&) const = default;
};

/// Everything that one rank is told by the controller: its first message.
struct RankConfig {
  struct Nic {
    std::string device;   ///< "rail0"; empty: any (loopback tests)
    std::string address;  ///< IPv4
    bool operator==(const Nic&) const = default;
  };

  int version = wire::kVersion;
  int rank = 0;
  int size = 1;
  /// Processes with another key are refused. A secret: this configuration reaches the rank through
  /// its own socket, and is written nowhere.
  auth::JobKey jobKey;
  std::vector<Nic> nics;          ///< rail r uses the r-th of every rank
  std::string managementAddress;  ///< IPv4 of this rank
  std::string rendezvousAddress;  ///< IPv4 of rank 0
  std::uint16_t rendezvousPort = 0;
  int controlTos = 0;  ///< TOS byte of control messages

  bool resilient = true;  ///< false: as a stock library, without failover
  channel::Policy policy = channel::Policy::kPinned;
  int segments = 2;                ///< parts of a collective that are under way at the same time
  std::string algorithm = "ring";  ///< of AllReduce; comm::CommunicatorOptions::algorithm
  bool planned = false;            ///< comm::CommunicatorOptions::planned
  std::string schedule;            ///< text of comm::CommunicatorOptions::written; empty: none
  scenario::Limits limits;         ///< `deadline` is also the time for meeting the other ranks
  scenario::TelemetryMode telemetry = scenario::TelemetryMode::kOff;
  int ioThreads = 0;  ///< fabric::FabricOptions::ioThreads

  scenario::Workload workload;
  /// On its way: values that only the workload's folder knows, as its JobKind::write has them. They
  /// are `workload.own` before and after.
  nlohmann::json own;
  std::optional<ServerConfig> server;  ///< of workloads with requests
  std::uint64_t seed = 1;              ///< of the data

  /// When the communicator fails, go on with those that are left
  /// (comm::Communicator::shrink, with this patience); 0: the job ends.
  Duration shrinkPatience = 0s;
  /// Not 0: a collective that is not done so long after its call has failed, and when one has, a
  /// rank with a port that is down leaves the job for good. Then the others go on with
  /// `shrinkPatience`, once.
  Duration excludeAfter = 0s;
  int checkpointEvery = 0;  ///< iterations; 0: never
  /// This rank's own file. Where there is one, the rank goes on from it, also when it writes none.
  std::string checkpointPath;
  /// Damages one element of one result, on rank 0 in iteration 0: the self-test of the checks.
  bool corruptOneElement = false;

  bool operator==(const RankConfig&) const = default;
};

nlohmann::json toJson(const RankConfig& config);

/// kInvalidArgument, with the field, when one is missing, unknown, of another type, or out of
/// range.
Result<RankConfig> rankConfigFromJson(const nlohmann::json& json);

/// The JSON Schema of it.
nlohmann::ordered_json rankConfigSchema();

}  // namespace faultline::workload
