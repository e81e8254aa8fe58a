#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/parameter.h"

/// The one table of strategies and their options: the scenario reader, its JSON Schema, `faultline
/// describe` and the documentation are made from it.
namespace faultline::baseline {

/// How a job meets faults: a row of the report.
struct StrategySpec {
  std::string_view name;
  std::string_view summary;   ///< what it does, in one sentence
  std::string_view measures;  ///< what its row is for
  bool meetsFaults = true;    ///< the scenario's faults are injected into its runs
  std::span<const ParameterSpec> options;
  /// How AllReduce is planned: by this algorithm, or kAnyAlgorithm; empty: it is not, and is a
  /// ring.
  std::string_view plannedBy{};
  bool modelled = false;        ///< computed by modelOf (modelled.h), never run
  std::string_view workload{};  ///< the only kind for which there is such a row; empty: any

  bool planned() const { return !plannedBy.empty(); }
};

/// Names of strategies, where code must tell them apart.
inline constexpr std::string_view kFaultFree = "fault_free";
inline constexpr std::string_view kArmed = "armed";
inline constexpr std::string_view kFailStop = "fail_stop";
inline constexpr std::string_view kHotRepair = "hot_repair";
inline constexpr std::string_view kBalance = "balance";
inline constexpr std::string_view kShrink = "shrink";
inline constexpr std::string_view kExcludeRank = "exclude_rank";
inline constexpr std::string_view kRestartAtScale = "restart_at_scale";
inline constexpr std::string_view kRestartServer = "restart_server";
inline constexpr std::string_view kRerouteRequests = "reroute_requests";
inline constexpr std::string_view kKvReplicate = "kv_replicate";
/// For programs that are not ours, and only for them; they know no other one that meets faults.
inline constexpr std::string_view kUnprotected = "unprotected";
/// Likewise, with variables for NCCL.
inline constexpr std::string_view kNccl = "nccl";
/// Option of kNccl, and its values.
inline constexpr std::string_view kMode = "mode";
inline constexpr std::string_view kStock = "stock";
inline constexpr std::string_view kPortFailover = "port_failover";
inline constexpr std::string_view kAbortReinit = "abort_reinit";
inline constexpr std::string_view kShrinkMode = "shrink";

/// Option of kShrink and kExcludeRank: comm::Communicator::shrink.
inline constexpr std::string_view kPatience = "patience";
/// Option of kExcludeRank, and of kNccl where the program rebuilds: a collective that is not done
/// for so long has failed.
inline constexpr std::string_view kWait = "wait";
inline constexpr std::string_view kR2AllReduce = "r2_allreduce";
inline constexpr std::string_view kOptcc = "optcc";
inline constexpr std::string_view kOptccServer = "optcc_server";
inline constexpr std::string_view kAuto = "auto";

/// As comm::CommunicatorOptions::kAnyAlgorithm.
inline constexpr std::string_view kAnyAlgorithm = "auto";

/// Flag of every strategy but kUnprotected: one element of one result is changed after the
/// collective, so that the run must be seen to be wrong. For testing the bench itself.
inline constexpr std::string_view kCorruptOneElement = "corrupt_one_element";

/// Likewise: what its ranks record, instead of what the scenario says; with
/// the default, kAsTheScenario, that.
inline constexpr std::string_view kTelemetry = "telemetry";
inline constexpr std::string_view kAsTheScenario = "scenario";

/// Option of kArmed: the strategy of which everything is on, but for the faults.
inline constexpr std::string_view kLike = "like";

/// Key beside the options of a strategy, for all of them: its row gets this name, so that one
/// strategy can be run with different options, or twice with the same ones.
const ParameterSpec& rowNameSpec();

/// Likewise: variables of the environment that the row's programs have, a mapping of texts; only
/// for programs that are not ours.
const ParameterSpec& rowEnvironmentSpec();

/// Whether its jobs go on as fewer ranks, so that no rank may have what no other one has.
bool losesRanks(std::string_view strategy);

/// Whether it is computed, not executed.
bool isModelled(std::string_view strategy);

/// Whether programs that are not ours can be run under it: all it asks for is faults, or none.
bool suitsForeignPrograms(std::string_view strategy);

/// Whether it is a mode of kNccl in which the program itself makes a communicator anew.
bool rebuildsItself(std::string_view ncclMode);

/// All strategies that can be run, in the order in which they are listed.
std::span<const StrategySpec> strategies();

/// nullptr when there is none of that name.
const StrategySpec* findStrategy(std::string_view name);

/// The page of `faultline describe <strategy>`: plain text of at most kTextColumns columns.
std::string describeStrategy(const StrategySpec& strategy);

}  // namespace faultline::baseline
