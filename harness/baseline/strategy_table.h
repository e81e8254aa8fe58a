#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/parameter.h"

/// The one table of strategies and their options: the scenario reader, its JSON Schema, `faultline
/// describe` and the documentation are made from it.
namespace faultline::baseline {

struct Modelled;
struct ServingCase;

/// Computes a row that is never run; nullopt: it needs a server, and `serving` is null.
using Model = std::optional<Modelled> (*)(const ServingCase* serving, const Parameters& options);

/// How a job meets faults: a row of the report. All that anybody decides about a strategy follows
/// from these properties; nobody tells one by its name (`StrategyNamesTest` looks).
struct StrategySpec {
  std::string_view name;
  std::string_view summary;   ///< what it does, in one sentence
  std::string_view measures;  ///< what its row is for
  bool meetsFaults = true;    ///< the scenario's faults are injected into its runs
  std::span<const ParameterSpec> options{};
  /// Nothing that is for faults is on, and there are none: others are compared with it.
  bool reference = false;
  /// Its library moves what a failed rail carried to other rails, and gives up by a budget.
  bool resilient = false;
  /// Each rail takes as much as it carries (channel::Policy::kPull); otherwise each has its part.
  bool sharesLoad = false;
  /// How AllReduce is planned: by this algorithm, or kAnyAlgorithm; empty: it is not, and is a
  /// ring.
  std::string_view plannedBy{};
  /// The collective that it measures follows a schedule that somebody wrote down (kSchedule).
  bool written = false;
  /// Killed when it hangs, and started again from its last checkpoint.
  bool restarts = false;
  bool losesRanks = false;  ///< goes on as fewer ranks: no rank may have what no other one has
  /// Those that it loses live, and leave because their port is down.
  bool leavesRanksOut = false;
  /// Option: a job that hangs for so long has failed; empty: it is not made to hang.
  std::string_view hangOption{};
  Model model = nullptr;        ///< computes it; null: it is run
  std::string_view workload{};  ///< the only kind for which there is such a row; empty: any
  /// Programs that are not ours can be run under it: all it asks for is faults, or none.
  bool suitsForeign = false;
  bool setsUpNccl = false;  ///< its programs get the variables that its kMode needs

  bool planned() const { return !plannedBy.empty(); }
  bool modelled() const { return model != nullptr; }
};

/// The row that others are compared with: of the strategy that is the reference, the one without a
/// name of its own.
inline constexpr std::string_view kReferenceRow = "fault_free";

/// Option of those that set up NCCL, and its values.
inline constexpr std::string_view kMode = "mode";
inline constexpr std::string_view kStock = "stock";
inline constexpr std::string_view kPortFailover = "port_failover";
inline constexpr std::string_view kAbortReinit = "abort_reinit";
inline constexpr std::string_view kShrinkMode = "shrink";

/// Option of those that lose ranks: comm::Communicator::shrink.
inline constexpr std::string_view kPatience = "patience";
/// Option of those that leave ranks out, and of NCCL where the program rebuilds: a collective that
/// is not done for so long has failed.
inline constexpr std::string_view kWait = "wait";
/// Options of those that restart.
inline constexpr std::string_view kWatchdog = "watchdog";
inline constexpr std::string_view kCheckpointEvery = "checkpoint_every";

/// As comm::CommunicatorOptions::kAnyAlgorithm.
inline constexpr std::string_view kAnyAlgorithm = "auto";

/// Flag of every strategy whose ranks are ours: one element of one result is changed after the
/// collective, so that the run must be seen to be wrong. For testing the bench itself.
inline constexpr std::string_view kCorruptOneElement = "corrupt_one_element";

/// Likewise: what its ranks record, instead of what the scenario says; with
/// the default, kAsTheScenario, that.
inline constexpr std::string_view kTelemetry = "telemetry";
inline constexpr std::string_view kAsTheScenario = "scenario";

/// Option: the strategy of which everything is on, but for the faults.
inline constexpr std::string_view kLike = "like";

/// Option of those whose schedule is written down: its file, relative to the scenario.
inline constexpr std::string_view kSchedule = "schedule";
/// Key beside it, which the reader fills in: the text of that file.
inline constexpr std::string_view kContent = "content";
const ParameterSpec& contentSpec();

/// Key beside the options of a strategy, for all of them: its row gets this name, so that one
/// strategy can be run with different options, or twice with the same ones.
const ParameterSpec& rowNameSpec();

/// Likewise: variables of the environment that the row's programs have, a mapping of texts; only
/// for programs that are not ours.
const ParameterSpec& rowEnvironmentSpec();

/// Whether it is computed, not executed; false of a name that is none.
bool isModelled(std::string_view strategy);

/// Whether it is a mode of NCCL in which the program itself makes a communicator anew.
bool rebuildsItself(std::string_view ncclMode);

/// All strategies that can be run, in the order in which they are listed.
std::span<const StrategySpec> strategies();

/// nullptr when there is none of that name.
const StrategySpec* findStrategy(std::string_view name);

/// The first that holds, in the order of the list; there must be one.
const StrategySpec& firstStrategy(const std::function<bool(const StrategySpec&)>& holds);

/// What a new user is offered: the first whose ranks are ours (or, `foreign`, whose programs are
/// not) and that goes on when faults come.
const StrategySpec& usualStrategy(bool foreign);

/// "a, b and c": all that hold, for messages.
std::string namesOf(const std::function<bool(const StrategySpec&)>& holds);

/// What the ranks of a row do, but for the faults: the strategy that its option kLike names, or its
/// own.
const StrategySpec& carriedOut(const StrategySpec& strategy, const Parameters& options);

/// The page of `faultline describe <strategy>`: plain text of at most kTextColumns columns.
std::string describeStrategy(const StrategySpec& strategy);

}  // namespace faultline::baseline
