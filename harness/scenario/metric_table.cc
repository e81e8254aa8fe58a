#include "harness/scenario/metric_table.h"

#include <algorithm>
#include <array>

#include "harness/scenario/verdict_words.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::scenario {
namespace {

using Measure = MetricType;
using Scope = Metric::Scope;
using Owner = Metric::Owner;
using Trust = Metric::Trust;

constexpr std::array<std::string_view, 4> kStatuses{"ok", "failed", "hung", "invalid"};

constexpr std::span kCauses = std::span(channel::kCauseNames).subspan<1>();  // without "none"

// As schedule::algorithms(); a test compares.
constexpr std::array<std::string_view, 8> kAlgorithms{
    "ring",     "tree",         "halving_doubling", "optcc",
    "optcc_r2", "optcc_server", "r2_allreduce",     "r2_recursive"};

constexpr std::array kMetrics{
    Metric{"status", Measure::kName, Scope::kEveryRun, Owner::kBoth, Trust::kAlways,
           "how each run ended: ok, failed, hung or invalid", false, kStatuses},
    Metric{"message", Measure::kText, Scope::kEveryRun, Owner::kStrategy, Trust::kAlways,
           "why each run did not end as it should, or that it was restarted; empty: it was ok"},
    Metric{"exit_code", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kAlways,
           "how each process of a command ended; 128 and the number of the signal that ended it"},
    Metric{
        kAnyProgramMetric, Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
        "a number that the programs of a command told, by its name in 'workload.command.metrics'"},
    Metric{"errors.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "ranks that gave the job up with an error, per run"},
    Metric{"errors.message", Measure::kText, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "the words of each rank's error"},
    Metric{"errors.distinct", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "different words among the errors of a run's ranks"},
    Metric{"errors.after_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "from the begin of the run's last fault to each rank's error"},
    Metric{"errors.names", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "each rank that an error is about; -1: it names none"},
    Metric{"wrong_elements", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kAlways,
           "elements of results that differ from what they must be, per run"},
    Metric{"checked_elements", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kAlways,
           "elements of results that were compared, per run"},
    Metric{"digest_matches", Measure::kFlag, Scope::kEveryRun, Owner::kBoth, Trust::kAlways,
           "the digests of all results on all ranks equal those of fault_free", true},
    Metric{"evidence.ok", Measure::kFlag, Scope::kEveryRun, Owner::kBoth, Trust::kAlways,
           "every fault of the run left its evidence"},
    Metric{"duration", Measure::kTime, Scope::kEveryRun, Owner::kStrategy, Trust::kAlways,
           "from the start to the end of each run"},
    Metric{"duration", Measure::kTime, Scope::kSummary, Owner::kGlobal, Trust::kAlways,
           "how long the whole experiment took, with set-up"},
    Metric{"runs.count", Measure::kCount, Scope::kSummary, Owner::kBoth, Trust::kAlways,
           "runs that were made"},
    Metric{"iterations.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kAlways,
           "iterations that each run finished, those repeated after a restart counted once"},
    Metric{"iteration_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "median time of an iteration, over all runs; one that was interrupted and done again "
           "lasts from its first begin to its final end"},
    Metric{"iteration_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "longest iteration of all runs; one that was interrupted and done again lasts from "
           "its first begin to its final end"},
    Metric{"throughput.median", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "work per second, in the workload's unit (training: iterations), median over the runs"},
    Metric{"overhead_pct.median", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed, "v0 / v - 1 against fault_free, per block, median over the blocks", true},
    Metric{"overhead_pct.ci95", Measure::kInterval, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "95 % interval of overhead_pct.median (from 6 blocks on), as a whole: above another "
           "one, or a value, when all of it is",
           true},
    Metric{"overhead_pct.ci95.lo", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "lower end of the 95 % interval of overhead_pct.median (from 6 blocks on)", true},
    Metric{"overhead_pct.ci95.hi", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of overhead_pct.median (from 6 blocks on)", true},
    Metric{"overhead_pct.at_most", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "what the overhead is at most: the upper end of its 95 % interval, or the noise of "
           "a median, if that is greater (needs a second row of fault_free)",
           true},
    Metric{"overhead_pct.distinguishable", Measure::kFlag, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed, "the overhead is more than noise (needs a second row of fault_free)",
           true},
    Metric{"exposed_overhead_pct.median", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "what the median iteration after the fault adds to the time that computing stands still "
           "for communication, in percent of a fault-free iteration, per block, median over the "
           "blocks; only with a 'model'",
           true},
    Metric{"exposed_overhead_pct.ci95", Measure::kInterval, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "95 % interval of exposed_overhead_pct.median (from 6 blocks on), as a whole", true},
    Metric{"exposed_overhead_pct.ci95.lo", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "lower end of the 95 % interval of exposed_overhead_pct.median (from 6 blocks on)",
           true},
    Metric{"exposed_overhead_pct.ci95.hi", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of exposed_overhead_pct.median (from 6 blocks on)",
           true},
    Metric{"exposed_overhead_pct.half_width", Measure::kPercent, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "half the length of the 95 % interval of exposed_overhead_pct.median (from 6 blocks "
           "on)",
           true},
    Metric{"noise.band_pct", Measure::kPercent, Scope::kSummary, Owner::kGlobal, Trust::kAlways,
           "95 % of the pairs of equal runs differ by at most this much (needs a second row of "
           "fault_free; above 2 % all speeds are void)",
           true},
    Metric{"noise.median_band_pct", Measure::kPercent, Scope::kSummary, Owner::kGlobal,
           Trust::kAlways,
           "the median difference of the pairs of equal runs is at most this far from 0", true},
    Metric{"noise.drift_pct", Measure::kPercent, Scope::kSummary, Owner::kGlobal, Trust::kAlways,
           "how much more time equal runs took at the end than at the beginning", true},
    Metric{"failovers.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that traffic left a failed rail, per faulted run"},
    Metric{"failovers.per_connection", Measure::kCount, Scope::kEveryRun, Owner::kStrategy,
           Trust::kFault,
           "the most often that one rail to one peer was given up, carrying anything or not"},
    Metric{"failovers.cause", Measure::kName, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "what each failover held to be broken: local_nic, remote_nic, rail, path, protocol",
           false, kCauses},
    Metric{"failovers.verdict", Measure::kName, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "by what each failover was known: port_event, reset, probes, back_off, "
           "told_by_peer, protocol",
           false, verdict::kAll},
    Metric{"failovers.where", Measure::kName, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "at which end of the rail the fault of each failover was, seen from the rank that "
           "failed over: local, remote, between, unknown",
           false, channel::kWhereNames},
    Metric{"failovers.dead_direction", Measure::kName, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault,
           "which way nothing passed any more at each failover: outgoing, incoming, both, "
           "unknown",
           false, channel::kDirectionNames},
    Metric{"failovers.rail", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "the rail that each failover left"},
    Metric{"failovers.resent_bytes", Measure::kBytes, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "bytes sent again on another rail, per failover (report.md)"},
    Metric{"failovers.duplicate_bytes", Measure::kBytes, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "bytes that arrived twice and were dropped, per failover (report.md)"},
    Metric{"failovers.after_return_ms", Measure::kMilliseconds, Scope::kEveryEvent,
           Owner::kStrategy, Trust::kFault,
           "of failovers that had to wait for a link that was struck to be put right: from then "
           "until all was delivered"},
    Metric{
        "verdicts.right_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
        Trust::kFault,
        "share of the verdicts that are what was injected: of each fault, at the struck node and "
        "at the others, as the matrix has it (self_test.md)"},
    Metric{"verdicts.unexplained", Measure::kCount, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "failovers that no fault of the scenario explains (self_test.md)"},
    Metric{"failover_pause_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "median pause of a failover"},
    Metric{"failover_pause_ms.p95", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "95th percentile of the pause of a failover (from 60 failovers on)"},
    Metric{"failover_pause_ms.p99", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "99th percentile of the pause of a failover (from 300 failovers on)"},
    Metric{"failover_pause_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "longest pause of a failover"},
    Metric{"failover_pause_ms.n", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kFault,
           "failovers whose pause was measured, over all runs"},
    Metric{"after_pct.median", Measure::kPercent, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "work done in the first second after the last fault was taken back, in percent of what "
           "fault_free does in a second, median over the runs that have such a second; 0 of a run "
           "that failed",
           true},
    Metric{"after_pct.min", Measure::kPercent, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "work done in the first second after the last fault was taken back, in percent of "
           "what fault_free does in a second: the least of the runs",
           true},
    Metric{"back_to_95_pct_ms.median", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "from when the last fault was taken back until a second begins in which 95 % of the "
           "work of a fault-free second is done, median over the runs; above every bound where "
           "half of them never came back",
           true},
    Metric{"back_to_95_pct_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kSpeed,
           "from when the last fault was taken back until a second begins in which 95 % of the "
           "work of a fault-free second is done, the longest of the runs; above every bound "
           "where a run never came back",
           true},
    Metric{"detection_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "median time from the fault to its detection"},
    Metric{"detection_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy,
           Trust::kFault, "longest time from the fault to its detection"},
    Metric{"receive_stall_ms.max", Measure::kMilliseconds, Scope::kEveryRun, Owner::kStrategy,
           Trust::kFault,
           "the longest that the oldest receive of a channel that had begun got nothing, at any "
           "rank, whether a rail was given up or not, per run; where ranks were killed or lost, at "
           "least from the fault until then"},
    Metric{"failbacks.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that a healed rail was taken back, per faulted run"},
    Metric{"degradations.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that a living rail became much slower than the others, over all ranks"},
    Metric{
        "degradations.missed", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
        "throttles of a link to less than 60 % that no rank at that link told of, per faulted run"},
    Metric{"degradations.unexplained", Measure::kCount, Scope::kEveryRun, Owner::kStrategy,
           Trust::kFault,
           "times that a rail became much slower than the others without a throttle, per "
           "faulted run"},
    Metric{"restarts.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that the job was killed and started again, per faulted run"},
    Metric{"restarts.hang_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "how long the job hung before each restart"},
    Metric{"restarts.isolate_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "how long each restart waited for the repair"},
    Metric{"restarts.load_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "how long each restart took to start and load the checkpoint"},
    Metric{"restarts.lost_iterations", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "iterations that each restart had to do again"},
    Metric{"shrinks.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that the job went on without ranks that had died or left, per faulted run"},
    Metric{"shrinks.ranks", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "ranks that were left each time that the job went on without some"},
    Metric{"shrinks.notice_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "from the fault until a rank that was left had an error"},
    Metric{"shrinks.rebuild_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault,
           "from the first error after ranks were lost until all ranks that were left went on"},
    Metric{
        "rebuilds.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
        "times that the programs made a communicator of all ranks anew (nccl, abort_reinit), per "
        "faulted run"},
    Metric{"rebuilds.notice_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault, "from the fault until a program told that its communicator had failed"},
    Metric{"rebuilds.rebuild_ms", Measure::kMilliseconds, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kFault,
           "from when a program told that its communicator had failed until all had told of a "
           "new one"},
    Metric{"exclusions.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "ranks that left the job because a port of their node was down, per faulted run"},
    Metric{"exclusions.rank", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kFault,
           "each rank that left the job because a port of its node was down"},
    Metric{"plans.count", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "plans of AllReduce that each run used: one for each size, those of barriers too, and "
           "again for each when health had changed"},
    Metric{"plans.changes", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "times that a change of health led to new plans, per run"},
    Metric{"plans.algorithm", Measure::kName, Scope::kEveryRun, Owner::kStrategy, Trust::kFault,
           "algorithm of the last plan for the largest size", false, kAlgorithms},
    Metric{"cells.time_over_best", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of a sweep, over that of the best other strategy whose "
           "algorithm is fixed"},
    Metric{"cells.large.time_over_best", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of at least 8 MiB, over that of the best other strategy "
           "whose algorithm is fixed"},
    Metric{"cells.large.all_reduce.time_over_best", Measure::kCount, Scope::kEveryEvent,
           Owner::kStrategy, Trust::kSpeed,
           "median time of each cell of AllReduce of at least 8 MiB, over that of the best "
           "other strategy whose algorithm is fixed: what its plan gains"},
    Metric{"cells.large.time_over_bound", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of at least 8 MiB, over that of the best possible "
           "algorithm; none where a cell has no bound"},
    Metric{"cells.large.time_over_ideal", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of at least 8 MiB, over what the healthy network needs "
           "for the bytes"},
    Metric{"cells.large.time_over_model", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of at least 8 MiB, over the model of the strategy's own "
           "schedule"},
    Metric{"cells.large.time_over_formula", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median time of each cell of at least 8 MiB, over the formula of r2_allreduce's "
           "authors; none where another algorithm runs, or more than one node is slow"},
    Metric{"cells.large.busbw_kept_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "median busbw of each cell of at least 8 MiB, in percent of that of fault_free; "
           "none where a port carries little more than its burst"},
    Metric{"ttft_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "median of a request's time from its arrival to its first token, over all runs, at "
           "the rates with which fault_free keeps up (at all, if with none)"},
    Metric{"ttft_ms.p95", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "95th percentile of a request's time to its first token, at the rates with which "
           "fault_free keeps up (at all, if with none); from 60 requests on"},
    Metric{"ttft_ms.p99", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "99th percentile of a request's time to its first token, at the rates with which "
           "fault_free keeps up (at all, if with none); from 300 requests on"},
    Metric{"ttft_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "longest of a request's time to its first token, at the rates with which fault_free "
           "keeps up (at all, if with none)"},
    Metric{"ttft_ms.n", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kFault,
           "requests whose ttft was measured"},
    Metric{"tpot_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "median of a request's mean time of each further token, over all runs, at the rates "
           "with which fault_free keeps up (at all, if with none)"},
    Metric{"tpot_ms.p95", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "95th percentile of a request's mean time of each further token, at the rates with "
           "which fault_free keeps up (at all, if with none); from 60 requests on"},
    Metric{"tpot_ms.p99", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "99th percentile of a request's mean time of each further token, at the rates with "
           "which fault_free keeps up (at all, if with none); from 300 requests on"},
    Metric{"tpot_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "longest of a request's mean time of each further token, at the rates with which "
           "fault_free keeps up (at all, if with none)"},
    Metric{"tpot_ms.n", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kFault,
           "requests whose tpot was measured"},
    Metric{"e2e_ms.p50", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "median of a request's time from its arrival to its last token, over all runs, at "
           "the rates with which fault_free keeps up (at all, if with none)"},
    Metric{"e2e_ms.p95", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "95th percentile of a request's time to its last token, at the rates with which "
           "fault_free keeps up (at all, if with none); from 60 requests on"},
    Metric{"e2e_ms.p99", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "99th percentile of a request's time to its last token, at the rates with which "
           "fault_free keeps up (at all, if with none); from 300 requests on"},
    Metric{"e2e_ms.max", Measure::kMilliseconds, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "longest of a request's time to its last token, at the rates with which fault_free "
           "keeps up (at all, if with none)"},
    Metric{"e2e_ms.n", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kFault,
           "requests whose e2e was measured"},
    Metric{"ttft_overhead_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what the median TTFT of each rate below the knee of fault_free costs against that of "
           "fault_free in the same block, median over the blocks",
           true},
    Metric{"ttft_overhead_pct.ci95.hi", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of ttft_overhead_pct, of each rate (from 6 blocks "
           "on)",
           true},
    Metric{"ttft_overhead_pct.at_most", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what ttft_overhead_pct is at most, of each rate: the upper end of its 95 % "
           "interval, or the noise of a median at that rate, if that is greater (needs a "
           "second row of fault_free)",
           true},
    Metric{"tpot_overhead_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what the median TPOT of each rate below the knee of fault_free costs against that of "
           "fault_free in the same block, median over the blocks",
           true},
    Metric{"tpot_overhead_pct.ci95.hi", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of tpot_overhead_pct, of each rate (from 6 blocks "
           "on)",
           true},
    Metric{"tpot_overhead_pct.at_most", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what tpot_overhead_pct is at most, of each rate: the upper end of its 95 % "
           "interval, or the noise of a median at that rate, if that is greater (needs a "
           "second row of fault_free)",
           true},
    Metric{"ttft_p95_overhead_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what the 95th percentile of TTFT of each rate below the knee of fault_free costs "
           "against that of fault_free, over the requests of all blocks (from 60 on)",
           true},
    Metric{"ttft_p95_overhead_pct.ci95.hi", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of ttft_p95_overhead_pct, of each rate (from 6 "
           "blocks on)",
           true},
    Metric{"ttft_p95_overhead_pct.at_most", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what ttft_p95_overhead_pct is at most, of each rate: the upper end of its 95 % "
           "interval, or that of equal runs, if that is greater (needs a second row of "
           "fault_free)",
           true},
    Metric{"tpot_p95_overhead_pct", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what the 95th percentile of TPOT of each rate below the knee of fault_free costs "
           "against that of fault_free, over the requests of all blocks (from 60 on)",
           true},
    Metric{"tpot_p95_overhead_pct.ci95.hi", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "upper end of the 95 % interval of tpot_p95_overhead_pct, of each rate (from 6 "
           "blocks on)",
           true},
    Metric{"tpot_p95_overhead_pct.at_most", Measure::kPercent, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kSpeed,
           "what tpot_p95_overhead_pct is at most, of each rate: the upper end of its 95 % "
           "interval, or that of equal runs, if that is greater (needs a second row of "
           "fault_free)",
           true},
    Metric{"requests.count", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kFault,
           "requests, per run"},
    Metric{"requests.finished", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kFault,
           "requests that were served within the objectives, per run"},
    Metric{"requests.late", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kFault,
           "requests that were served, but not within the objectives, per run"},
    Metric{"requests.lost", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kFault,
           "requests that were never served, per run"},
    Metric{"requests.redone", Measure::kCount, Scope::kEveryRun, Owner::kBoth, Trust::kFault,
           "requests that were begun again after a restart, per run; they are among the "
           "finished, late and lost ones"},
    Metric{"goodput", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy, Trust::kSpeed,
           "requests per second that were finished within the objectives, from the first arrival "
           "to the "
           "last token of each rate, over all runs"},
    Metric{"good_pct", Measure::kPercent, Scope::kEveryRun, Owner::kStrategy, Trust::kSpeed,
           "share of the requests that are served within the objectives, of all rates"},
    Metric{"knee_qps", Measure::kCount, Scope::kSummary, Owner::kStrategy, Trust::kSpeed,
           "the first rate at which less than 90 % of the requests are served within the "
           "objectives; none where there is none"},
    Metric{"cpu_s_per_gib", Measure::kCount, Scope::kEveryRun, Owner::kStrategy, Trust::kAlways,
           "processor seconds of all ranks per GiB of payload that they sent, in the measured "
           "iterations; compute that burns is in it"},
    Metric{"system_calls_per_mib", Measure::kCount, Scope::kEveryRun, Owner::kStrategy,
           Trust::kAlways,
           "system calls for communication per MiB of payload, in the measured iterations"},
    Metric{"memory_growth_bytes.end", Measure::kBytes, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kAlways,
           "resident memory of each rank after its last iteration, less that after warm-up"},
    Metric{"memory_growth_bytes.max", Measure::kBytes, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kAlways,
           "resident memory of each rank, the most after any iteration, less that after "
           "warm-up"},
    Metric{"open_files_growth.end", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kAlways,
           "open descriptors of each rank after its last iteration, less those after warm-up"},
    Metric{"open_files_growth.max", Measure::kCount, Scope::kEveryEvent, Owner::kStrategy,
           Trust::kAlways,
           "open descriptors of each rank, the most after any iteration, less those after "
           "warm-up"},
};

}  // namespace

std::span<const Metric> metricTable() { return kMetrics; }

WhenCutShort whenCutShort(const Metric& metric) {
  // Ranks that are killed at the end of such a run do not tell what they saw last.
  constexpr std::array<std::string_view, 13> kOnlySoFar{"iteration_ms.max",
                                                        "failovers.count",
                                                        "failovers.per_connection",
                                                        "failovers.after_return_ms",
                                                        "failover_pause_ms.max",
                                                        "failover_pause_ms.n",
                                                        "detection_ms.max",
                                                        "verdicts.unexplained",
                                                        "receive_stall_ms.max",
                                                        "failbacks.count",
                                                        "degradations.count",
                                                        "degradations.unexplained",
                                                        "plans.count"};
  // Of the iteration that never ended, or of requests that were never served, they know themselves.
  // Likewise what a job did after its faults: nothing, and for ever.
  constexpr std::array<std::string_view, 7> kCountWhatNeverEnded{
      "iteration_ms.p50",     "good_pct",      "knee_qps",
      "after_pct.median",     "after_pct.min", "back_to_95_pct_ms.median",
      "back_to_95_pct_ms.max"};
  constexpr std::array<std::string_view, 7> kOfAllThatHappened{
      "failover_pause_ms.p50", "failover_pause_ms.p95", "failover_pause_ms.p99", "detection_ms.p50",
      "verdicts.right_pct",    "degradations.missed",   "plans.changes"};
  if (std::ranges::count(kOnlySoFar, metric.path) > 0) return WhenCutShort::kAtLeast;
  if (std::ranges::count(kCountWhatNeverEnded, metric.path) > 0) return WhenCutShort::kAsSeen;
  const bool speed = metric.trust == Trust::kSpeed;
  return speed || std::ranges::count(kOfAllThatHappened, metric.path) > 0 ? WhenCutShort::kVoid
                                                                          : WhenCutShort::kAsSeen;
}

bool isOfRequests(std::string_view path) {
  constexpr std::array<std::string_view, 3> kPaths{"goodput", "good_pct", "knee_qps"};
  constexpr std::array<std::string_view, 8> kPrefixes{
      "ttft_ms.",          "tpot_ms.",          "e2e_ms.",           "requests.",
      "ttft_overhead_pct", "tpot_overhead_pct", "ttft_p95_overhead", "tpot_p95_overhead"};
  return std::ranges::count(kPaths, path) > 0 ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return path.starts_with(prefix); });
}

bool isKnownOfPrograms(const Metric& metric) {
  constexpr std::array<std::string_view, 9> kPaths{
      "status",   "exit_code",  kAnyProgramMetric,  "evidence.ok",      "message",
      "duration", "runs.count", "iterations.count", "throughput.median"};
  constexpr std::array<std::string_view, 7> kPrefixes{
      "iteration_ms.", "overhead_pct.",      "noise.",       "after_pct.",
      kShrinkMetrics,  "back_to_95_pct_ms.", kRebuildMetrics};
  return std::ranges::count(kPaths, metric.path) > 0 ||
         std::ranges::any_of(kPrefixes,
                             [&](auto prefix) { return metric.path.starts_with(prefix); });
}

const Metric* findMetric(std::string_view path, bool of_strategy) {
  if (path.size() > kProgramMetrics.size() && path.starts_with(kProgramMetrics)) {
    path = kAnyProgramMetric;
  }
  for (const Metric& metric : kMetrics) {
    if (metric.path != path) continue;
    if (metric.owner != (of_strategy ? Owner::kGlobal : Owner::kStrategy)) return &metric;
  }
  return nullptr;
}

}  // namespace faultline::scenario
