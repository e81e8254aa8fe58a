#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/parameter.h"
#include "base/units.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/scenario.h"
#include "resilient_ccl/schedule/collective.h"

/// What the bench asks of a workload before and beside its run: one row each. Who asks knows the
/// row and never which one it is: a property says what follows from a kind. docs/workload.md.
namespace faultline::scenario {

/// What a section is read from: the whole document, its scalars by their paths
/// (RecordReader::read), and the cluster, which is read already.
struct WorkloadReading {
  const Node& root;
  const Parameters& values;
  const Cluster& cluster;
  Findings& findings;
};

/// A scenario that is read, where its values stand, and what is wrong with it.
struct WorkloadChecking {
  const Scenario& scenario;
  const Node& root;
  Findings& findings;
};

/// Where the bench starts processes.
struct Placement {
  int perNode = 1;
  std::vector<int> nodes{};  ///< in the order of processes

  int processes() const { return perNode * static_cast<int>(nodes.size()); }
  int nodeOf(int process) const { return nodes[static_cast<std::size_t>(process / perNode)]; }
};

/// A call that a rank makes of a communicator of all ranks.
struct WorkloadCall {
  std::int64_t elements = 0;  ///< of data, as schedules count them
  Bytes elementSize = 1;
  std::string what;  ///< "a bucket of the gradient"
};

/// How many of each a rank may tell of: what it says of others is refused.
struct WorkloadCounts {
  std::int64_t iterations = 0;  ///< measured ones or those before, whichever are more
  std::int64_t requests = 0;
  std::int64_t rates = 0;  ///< at which requests come
};

/// What `faultline init` has been asked for.
struct WorkloadStarter {
  int nodes = 4;
  std::string program{};  ///< a line for the shell; empty: an example
  int seconds = 0;        ///< that an example runs, past the last fault
  bool inGuests = false;  ///< with RDMA
  bool needsShim = false;
};

struct WorkloadKind {
  std::string_view name;
  std::string_view summary;  ///< one sentence
  std::string_view brief;    ///< a few words, for the meaning of the key `kind`
  /// What it adds to the keys of `workload`; and all keys that it has there, besides `kind`: its
  /// own, those of all (workload_table.cc), or some of another kind.
  std::span<const Field> (*fields)() = nullptr;
  std::span<const std::string_view> keys;

  bool runsRanks = true;   ///< ranks of ours, whose data are checked; otherwise any programs
  bool hasCells = false;   ///< its iterations are calls of several combinations, a row each (cells)
  bool keepsState = true;  ///< ranks that are started again go on from a checkpoint
  bool mayLoseRanks = false;  ///< some ranks can go on without the others
  /// Its iterations are requests, which overlap, are of different lengths and come as they like, in
  /// each block at other moments; what faults cost is their latency.
  bool hasRequests = false;
  /// Why there is no best possible time of it; empty with `hasBound`: see speed_bound.h. Also empty
  /// where nobody expects one.
  bool hasBound = false;
  std::string_view whyNoBound{};

  // The language. Functions that may be null say what that means.
  /// Everything but kind, iterations and time, which are read before.
  void (*read)(const WorkloadReading& reading, Workload& workload);
  /// What is read again as the same.
  nlohmann::ordered_json (*write)(const Workload& workload);
  /// Adds what is wrong besides single values. Null: nothing can be.
  void (*check)(const WorkloadChecking& checking) = nullptr;
  /// Why no fault can strike during an iteration; empty: one can. Null: always.
  std::string (*whyNotDuring)(const Workload& workload, const Findings& findings) = nullptr;
  /// Why a strategy that goes on with fewer ranks is not possible; empty: it is. Of ranks of ours.
  std::string (*whyAllRanksAreNeeded)(const Workload& workload) = nullptr;
  /// Why calls cannot follow a schedule that is written down; empty: they can, and these are they.
  /// Of ranks of ours.
  std::string (*whyNoSchedule)(const Workload& workload) = nullptr;
  std::vector<WorkloadCall> (*calls)(const Scenario& scenario) = nullptr;
  /// Which collectives are called, where the section chooses. Null: AllReduce.
  std::span<const schedule::Collective> (*operations)(const Workload& workload) = nullptr;
  /// Why this metric of a row, which its programs tell, never has a value; empty: it may have one.
  /// Null: as of all others.
  std::string (*whyUntold)(std::string_view metric, const Workload& workload) = nullptr;
  /// Whether a process can have the verbs shim. Null: none has queue pairs.
  bool (*mayHaveShim)(const Scenario& scenario) = nullptr;

  // What a run is like, by the scenario alone.
  /// How long the work of a run takes without faults. Null: nobody knows.
  Duration (*estimate)(const Scenario& scenario, int block) = nullptr;
  /// Its iterations. Null: nobody knows.
  int (*iterations)(const Workload& workload) = nullptr;
  /// Null: as `Workload::iterations` and `warmupIterations` say.
  WorkloadCounts (*counts)(const Scenario& scenario, int block) = nullptr;
  /// What a rank has of the job's data. Null: nothing that we know.
  Bytes (*dataOfRank)(const Scenario& scenario) = nullptr;
  /// Null: ranks, as the cluster has them.
  Placement (*placement)(const Scenario& scenario) = nullptr;
  /// When a run is ended. Null: at limits.deadline.
  Duration (*longest)(const Scenario& scenario) = nullptr;
  /// Ranks that say when they wait for nobody, so that their silence shows a hang. Null: none does,
  /// an iteration that does not end is the sign.
  std::vector<int> (*tellers)(const Scenario& scenario) = nullptr;

  // For people.
  /// As `faultline describe` has it, behind the name: "60 iterations of ...".
  std::string (*inWords)(const Workload& workload);
  /// Lines below `kind` of a section that validates, with comments, two blanks deep.
  std::string (*starter)(const WorkloadStarter& starter);
};

/// In the order in which they are listed.
std::span<const WorkloadKind* const> workloadKinds();
std::span<const std::string_view> workloadKindNames();

/// nullptr when there is none of that name.
const WorkloadKind* findWorkloadKind(std::string_view name);

/// The first with the property, for messages that say what to write instead.
std::string_view workloadWith(bool WorkloadKind::*property, bool value = true);

/// Whether a workload of this kind has this key of `workload`.
bool hasWorkloadKey(const WorkloadKind& kind, std::string_view key);

/// Where the processes of the job are.
Placement placementOf(const Scenario& scenario);

}  // namespace faultline::scenario
