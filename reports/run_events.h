#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What happened in a run: failovers, restarts, faults and their evidence, what ranks recorded and
/// planned. A part of the result model (result.h, which has the units).
namespace faultline::reports {

/// One rail of one channel found dead, fenced, and its data moved to other rails.
struct Failover {
  int rank = 0;           ///< who saw it
  int rail = 0;           ///< the failed rail
  int peer = 0;           ///< the other end
  std::string direction;  ///< "send", "recv" or "both": what was under way, seen from `rank`
  std::string cause;      ///< e.g. "local_nic", "remote_nic", "path"
  std::string verdict;    ///< by what it was known, e.g. "port_event", "reset", "probes"
  std::string where = "unknown";  ///< "local", "remote", "between" or "unknown", seen from `rank`
  /// Of cause "path": which direction carried nothing, seen from `rank`: "outgoing", "incoming",
  /// "both", or "unknown".
  std::string dead_direction = "unknown";
  std::optional<double> fault_ms;     ///< the injector's moment; null when no fault of ours matches
  double fault_within_ms = 0;         ///< it struck not later than so much after it
  std::optional<double> detected_ms;  ///< the rail was declared dead
  std::optional<double> fenced_ms;    ///< both ends fenced: no byte can land on it any more
  std::optional<double> resumed_ms;   ///< what was outstanding has been delivered elsewhere
  std::optional<double> restored_ms;  ///< the rail carries data again (failback)
  double pause_ms = 0;                ///< `failover_pause_ms` of the contract
  std::int64_t resent_bytes = 0;
  std::int64_t duplicate_bytes = 0;  ///< arrived twice and thrown away; never reduced twice

  /// False: it took so long to do the fault (other changes of the network had the kernel's lock)
  /// that nobody knows when it struck. Then `pause_ms` counts from when it surely had, and how
  /// long it took to be noticed is in no statistic.
  bool timed() const { return fault_within_ms <= kMomentKnownMs; }
  static constexpr double kMomentKnownMs = 5;
};

/// A healed rail taken back into use.
struct Failback {
  int rank = 0;
  int rail = 0;
  int peer = 0;
  double at_ms = 0;  ///< first payload on the rail again
};

/// A rail that lived and was far slower than the others.
struct Degradation {
  int rank = 0;  ///< who saw it: what it sent was slow
  int rail = 0;
  int peer = 0;
  double at_ms = 0;                ///< it was found to be
  std::optional<double> until_ms;  ///< it was found to be so no more; null: not before the end
  double share = 0;                ///< what it carried until `at_ms`, of the fastest other rail
};

/// The error with which a rank gave its job up.
struct RankError {
  int rank = 0;
  double at_ms = 0;     ///< the controller heard of it
  std::string message;  ///< what the library returned to the rank
};

/// What a fail-stop library costs: everything dies, waits, loads a checkpoint and works again.
struct Restart {
  double fault_ms = 0;
  double hang_ms = 0;       ///< from the fault until the watchdog fired
  double isolate_ms = 0;    ///< ranks killed, waiting until the port was back
  double load_ms = 0;       ///< ranks started and the checkpoint read
  int lost_iterations = 0;  ///< begun before, done again after; with the one that was cut off
  double lost_ms = 0;       ///< time that they had taken until the fault
  std::optional<int> cut_iteration;         ///< the one that was under way
  std::optional<int> checkpoint_iteration;  ///< the last iteration in the checkpoint file
  /// hang_ms + isolate_ms + load_ms + lost_ms, had the watchdog been the usual 600 s.
  std::optional<double> unscaled_total_ms;
};

/// A communicator was made anew: as Run::shrinks by those that were left when processes had died or
/// left, as Run::rebuilds by all.
struct Shrink {
  std::optional<double> fault_ms;  ///< the latest fault before it; null: there was none
  double noticed_ms = 0;           ///< the first rank that was left had its error
  double resumed_ms = 0;           ///< all that were left had a communicator and the same state
  int ranks = 0;                   ///< that were left
  std::vector<int> missing;        ///< of the ranks at the start
  int iteration = 0;               ///< that they went on with
};

/// A rank that left the job because a port of its node was down (`exclude_rank`); the others are in
/// the Shrink that follows.
struct Exclusion {
  int rank = 0;
  double at_ms = 0;        ///< it left
  std::vector<int> rails;  ///< whose ports were down there
};

/// Totals of one rail of one node over the run, from the interface's counters.
struct RailTotals {
  int node = 0;
  int rail = 0;
  std::int64_t tx_bytes = 0;
  std::int64_t rx_bytes = 0;
};

/// Bytes that one rail of one node sent, over time.
struct RailSeries {
  int node = 0;
  int rail = 0;
  double start_ms = 0;  ///< where the first bin begins
  double bin_ms = 0;    ///< width of a bin
  std::vector<std::int64_t> tx_bytes;
};

/// An independent observation that a fault really happened (not the flag that was set read back).
struct Evidence {
  int fault = 0;         ///< index into Run::faults
  std::string kind;      ///< what was looked at, e.g. "peer_carrier", "tx_counters"
  std::string observed;  ///< what was seen, in words and numbers
  bool ok = false;
  std::map<std::string, std::int64_t> numbers{};  ///< what was counted, by name, if anything was
};

/// What the process of one rank held, from t = 0 on: looked at after every iteration. In a run with
/// restarts, of its last process.
struct ResourceUse {
  int rank = 0;
  std::int64_t memory_start_bytes = 0;  ///< resident, after warm-up
  std::int64_t memory_end_bytes = 0;    ///< after the last iteration
  std::int64_t memory_max_bytes = 0;    ///< the most after any iteration
  int open_files_start = 0;             ///< descriptors, likewise
  int open_files_end = 0;
  int open_files_max = 0;
  /// In the measured iterations, without what lies between them (data checks, barriers): processor
  /// time of all its threads, `compute: {burn}` included; system calls for communication; and the
  /// payload that it sent from t = 0 on.
  double cpu_ms = 0;
  std::int64_t system_calls = 0;
  std::int64_t sent_bytes = 0;
};

/// How a process of a program that is not ours ended (workload `command`).
struct ProgramEnd {
  int rank = 0;
  int node = 0;
  int exit_code = 0;  ///< as a shell has it: 128 and the number of a signal that ended it
  int signal = 0;     ///< that ended it; 0: none
  double at_ms = 0;
  std::string output;  ///< its folder, below that of the result: stdout.txt, stderr.txt, its files
};

struct FaultTarget {
  std::optional<int> node;
  std::optional<int> rail;
  std::optional<int> rank;
  std::string text;           ///< in words: "node 1, rail 0"
  std::optional<int> peer{};  ///< a node: not the link is meant, but the path to there
};

/// Proof that a `during` fault hit the iteration that it was meant for.
struct FaultHit {
  bool ok = false;
  std::optional<int> iteration;
  std::optional<double> progress_pct;  ///< how far the iteration was at the moment of applying
  std::string detail;                  ///< e.g. "iteration 20 ended 31 ms later on 4 of 4 ranks"
};

/// What the scenario asks of one strike of a fault, where that is a number. Null: it does not ask
/// for it, or it depends on the run.
struct AskedStrike {
  std::optional<double> start_ms;      ///< of strikes that come at a time
  std::optional<int> iteration;        ///< of the first strike of those that come in an iteration
  std::optional<double> progress_pct;  ///< of it, likewise
  std::optional<double> ms;            ///< how long it lasts; null: until the end of the run
  /// How often something that flaps is lost; null: it does not flap, or flaps until the run ends.
  std::optional<std::int64_t> losses;
};

/// A fault as it was applied in one run.
struct AppliedFault {
  std::string kind;       ///< "port_down", ...
  std::string mechanism;  ///< how it was done here, e.g. "carrier of the switch's end"
  FaultTarget target;
  std::string trigger;                              ///< in words: "iteration 20, 50 %" or "at 2s"
  double start_ms = 0;                              ///< applied, and not later than
  double start_within_ms = 0;                       ///< so much after it
  std::optional<double> end_ms;                     ///< reverted; null: until the end of the run
  std::optional<FaultHit> hit;                      ///< null for faults triggered by time alone
  std::map<std::string, std::string> parameters{};  ///< of its kind, as a scenario writes them
  AskedStrike asked{};
  std::optional<std::int64_t> losses{};  ///< there were, of something that flaps; see AskedStrike
};

/// What the ranks recorded (`telemetry: on`), as one list per field; entry i of all lists is one
/// event. docs/report.md has the kinds.
struct Telemetry {
  /// Events for which all lists have an entry.
  std::size_t size() const {
    return std::min({kind.size(), rank.size(), peer.size(), rail.size(), at_ms.size(), ms.size(),
                     bytes.size(), number.size()});
  }

  std::vector<std::string> kind;
  std::vector<int> rank;      ///< that recorded it
  std::vector<int> peer;      ///< the other end
  std::vector<int> rail;      ///< -1: of no rail
  std::vector<double> at_ms;  ///< begin
  std::vector<double> ms;     ///< length; 0: a moment
  std::vector<std::int64_t> bytes;
  std::vector<std::uint64_t> number;  ///< of the chunk on its rail and epoch, or of the message
};

/// What a port has, as a share of the job's fastest.
struct PortHealth {
  double send = 1;
  double receive = 1;
};

/// What a message of n bytes takes, as the ranks measured it when they began: latency + per_message
/// + n / bandwidth.
struct LinkCost {
  double latency_us = 0;
  double per_message_us = 0;
  double bandwidth = 0;  ///< bytes per second and direction, of the fastest port
};

/// How a collective of one size was done from a moment on (strategies that plan): told when a plan
/// is used for the first time. All ranks have the same.
struct AppliedPlan {
  double at_ms = 0;  ///< rank 0 issued the first call with it; below 0: in the warm-up
  std::uint32_t communicator = 0;  ///< 1: of all ranks
  std::uint64_t epoch = 0;         ///< changes of health before it
  std::uint64_t operation = 0;     ///< number of that call among the communicator's
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::string collective = "all_reduce";  ///< as `CollectiveRow::operation`
  std::string algorithm;
  int segments = 1;
  bool tried = false;              ///< for some calls, to see how long they take
  std::vector<PortHealth> health;  ///< by rank: what it was made for
  double predicted_ms = 0;         ///< by the planner's model; 0: it has no answer
  double ring_ms = 0;              ///< likewise, of the best ring
  double bound_ms = 0;             ///< likewise, of the best possible algorithm, without latencies
  std::string hash;
  LinkCost link;
};

/// What a path between two ranks carried in a test of the ports, as a share of `bandwidth`
/// (LinkCost).
struct PathShare {
  int from = 0;
  int to = 0;
  double share = 0;
};

/// A test of the ports (strategies that plan): operations waited for it.
struct PortTest {
  double at_ms = 0;  ///< below 0: in the warm-up
  std::uint32_t communicator = 0;
  std::uint64_t operation = 0;  ///< number of the first call that waited
  double ms = 0;
  int rounds = 0;                     ///< exchanges between all ranks
  std::optional<double> lateness;     ///< time of the calls before it over the time predicted
  bool complete = false;              ///< else it was given up
  bool changed = false;               ///< it found a port to be other than before
  std::vector<PathShare> slow_paths;  ///< of its rounds, the slowest first, 32 at most
};

}  // namespace faultline::reports
