#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/reader.h"
#include "tests/unit/scenario/expect_mistake.h"
#include "tests/unit/scenario/quickstart.h"

namespace faultline::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A text, and what the one mistake in it must say, beginning with its place.
struct Case {
  std::string yaml;
  std::string place;
  std::string message;
};

/// The mistake is told once, and at its place.
void expectEach(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    expectMistake(one.yaml, one.place, one.message);
  }
}

/// `minimal` ends at line 4, so that what is added begins in line 5.
std::string withWorkload(const std::string& keys) {
  return "version: 1\nname: n\nworkload: {kind: training, " + keys + "}\nstrategies: [armed]\n";
}
std::string withStrategies(const std::string& list, const std::string& more = "") {
  return "version: 1\nname: n\nworkload: {kind: training}\nstrategies: " + list + "\n" + more;
}
std::string withRandomData(const std::string& strategies) {
  return "version: 1\nname: n\nworkload: {kind: training, gradient: {data: random}}\nstrategies: " +
         strategies + "\n";
}
std::string withFault(const std::string& keys) { return minimal("faults:\n- {" + keys + "}\n"); }

TEST(OneMistakeTest, Keys) {
  expectEach(
      {Case{minimal("iterations: 5\n"), "5:1", "unknown key 'iterations'; known are version"},
       Case{minimal("descripton: x\n"), "5:1", "(did you mean 'description'?)"},
       Case{minimal("cluster: {nods: 4}\n"), "5:11",
            "unknown key 'nods' in 'cluster' (did you mean 'nodes'?)"},
       Case{minimal("name: again\n"), "5:1", "duplicate key 'name': it is already in line 2"},
       Case{minimal("cluster: {rails: 1, nodes: 2, rails: 2}\n"), "5:31", "duplicate key 'rails'"},
       Case{minimal("seed: 1\n\"seed\": 2\n"), "6:1", "duplicate key 'seed'"},
       Case{"version: 1\nworkload: {kind: training}\nstrategies: [armed]\n", "1:1",
            "the scenario needs the key 'name'"},
       Case{"version: 1\nname: n\nworkload: {iterations: 5}\nstrategies: [armed]\n", "3:11",
            "'workload' needs the key 'kind'"},
       Case{minimal("[1, 2]: x\n"), "5:1", "a key must be a word"}});
}

TEST(OneMistakeTest, Values) {
  expectEach(
      {Case{minimal("seed: seven\n"), "5:7", "'seven' is not a whole number"},
       Case{minimal("seed: \"7\"\n"), "5:7", "is text because of its quotes"},
       Case{minimal("seed: 7.5\n"), "5:7", "is not a whole number"},
       Case{minimal("seed: -7\n"), "5:7", "out of range"},
       Case{minimal("seed: 99999999999999999999\n"), "5:7", "out of range"},
       Case{minimal("seed:\n"), "5:1", "has no value; a whole number is expected"},
       Case{minimal("seed: [7]\n"), "5:7", "a whole number is expected, not a list"},
       Case{minimal("description: 5\n"), "5:14", "write it in quotes"},
       Case{minimal("description: {a: b}\n"), "5:14", "text is expected, not a mapping"},
       Case{minimal("cluster: here\n"), "5:10", "a mapping is expected, not 'here'"},
       Case{minimal("telemetry: full\n"), "5:12", "'full' is not one of off, null, on"},
       Case{minimal("repeat: 0\n"), "5:9", "1 to 1000 is possible"},
       Case{minimal("limits: {deadline: 60}\n"), "5:20", "'60' has no unit"},
       Case{minimal("limits: {deadline: 60 s}\n"), "5:20", "unknown unit ' s'"},
       Case{minimal("limits: {deadline: 2days}\n"), "5:20", "unknown unit 'days'"},
       Case{minimal("cluster: {rail_rate: 400}\n"), "5:22", "'400' has no unit"},
       Case{minimal("cluster: {rail_rate: 400MiB}\n"), "5:22", "unknown unit 'MiB'"},
       Case{minimal("cluster: {rail_rate: 20kbit}\n"), "5:22", "1Mbit to 100Gbit is possible"},
       Case{withWorkload("gradient: {size: 4194304}"), "3:45", "'4194304' has no unit"},
       Case{withWorkload("gradient: {dtype: f8}"), "3:46", "'f8' is not one of f16, bf16"},
       Case{withWorkload("gradient: {dtype: f23}"), "3:46", "did you mean 'f32'?"},
       Case{withWorkload("compute: 20"), "3:37", "'20' has no unit"},
       Case{withWorkload("compute: {burn: 20}"), "3:44", "burn: '20' has no unit"},
       Case{withWorkload("compute: {bern: 20ms}"), "3:38", "did you mean 'burn'?"},
       Case{"version: 2\nname: n\nworkload: {kind: training}\nstrategies: [armed]\n", "1:10",
            "only 1 is possible"},
       Case{"version: 1\nname: ../../etc\nworkload: {kind: training}\nstrategies: [armed]\n", "2:7",
            "is not a name"},
       Case{minimal("cluster: {kind: host}\n"), "5:17", "is not available in this version"}});
}

TEST(OneMistakeTest, Strategies) {
  expectEach(
      {Case{withStrategies("[hotrepair]"), "4:14", "did you mean 'hot_repair'?"},
       Case{withStrategies("[{shrink: {patience: 0s}}]"), "4:34", "1ms to 10min is possible"},
       Case{withStrategies("[armed, armed]"), "4:21", "listed twice"},
       Case{withStrategies("[armed, {armed: {as: b}}, {fault_free: {as: b}}]"), "4:40",
            "'b' is listed twice"},
       Case{withStrategies("[{armed: {as: hot_repair}}]"), "4:27", "is the name of a strategy"},
       Case{withStrategies("[{armed: {as: optcc}}]"), "4:27", "is the name of a strategy"},
       Case{withStrategies("[{armed: {as: failovers}}]"), "4:27", "is the name of a metric"},
       Case{withStrategies("[{armed: {as: a.b}}]"), "4:27", "has a dot"},
       Case{withStrategies("[{armed: {telemetry: maybe}}]"), "4:34", "is not one of"},
       Case{withStrategies("[{fail_stop: {as: slow, watchdog: 60s}}]"), "4:47", "never fires"},
       Case{withStrategies("[{exclude_rank: {wait: 60s}}]"), "4:36", "never fires"},
       Case{withStrategies(
                "[exclude_rank]",
                "fault_processes: [{kinds: [port_down], mtbf: 2s, mttr: 1s, for: 20s}]\n"),
            "4:14", "the one fault"},
       Case{withStrategies("[exclude_rank]",
                           "sequences: [{repeat: 2, pause: 1s, faults: [{kind: port_down, target: "
                           "{node: 1, rail: 0}, at: 1s, duration: 12s}]}]\n"),
            "4:14", "the one fault"},
       Case{withStrategies("[exclude_rank]",
                           "faults: [{kind: blackhole, target: {node: 1, rail: 0}, at: 1s, "
                           "until: end}]\n"),
            "4:14", "blackhole leaves all ports up"},
       Case{withStrategies("[exclude_rank]",
                           "faults: [{kind: throttle, rate: 25%, target: {node: 1, rail: 0}, at: "
                           "1s, until: end}]\n"),
            "4:14", "throttle leaves all ports up"},
       Case{withStrategies("[exclude_rank]",
                           "faults: [{kind: port_flap, target: {node: 1, rail: 0}, at: 1s, until: "
                           "end}]\n"),
            "4:14", "again and again"},
       Case{withStrategies("[exclude_rank]",
                           "faults: [{kind: address_change, target: {node: 1, rail: 0}, at: 1s, "
                           "until: end}]\n"),
            "4:14", "takes the port down for a moment only"},
       Case{withStrategies("[exclude_rank]",
                           "faults: [{kind: port_down, target: {rail_group: 0}, at: 1s, until: "
                           "end}]\n"),
            "4:14", "no rank would be left"},
       Case{withStrategies("[{exclude_rank: {wait: 1s}}]",
                           "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, "
                           "duration: 1s}]\n"),
            "4:36", "would be back before"},
       Case{withStrategies("[armed, restart_server]"), "4:21", "only for 'workload: {kind: inf"},
       Case{withStrategies("[restart_at_scale]"), "4:13", "nothing would be run"},
       Case{withStrategies("[restart_at_scale, armed]",
                           "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, "
                           "duration: 1s}]\n"),
            "4:13", "none of these strategies meets the faults"},
       Case{withStrategies("[fault_free, {restart_at_scale: {as: a}}]",
                           "expect: [a.overhead_pct.median < 5]\n"),
            "5:10", "a is modelled"},
       Case{withStrategies("[]"), "4:13", "at least one is needed"},
       Case{withStrategies("armed"), "4:13", "a list of strategies is expected, not 'armed'"},
       Case{withStrategies("[{fail_stop: {watchdog: 5}}]"), "4:37", "'5' has no unit"},
       Case{withStrategies("[{fail_stop: {checkpoint_every: 0}}]"), "4:45", "1 to 1000000"},
       Case{withStrategies("[{hot_repair: {watchdog: 5s}}]"), "4:28",
            "unknown key 'watchdog' in 'strategies.0.hot_repair'"},
       Case{withStrategies("[{hot_repair: {corrupt_one_element: yes}}]"), "4:49",
            "'yes' is neither true nor false"},
       Case{withStrategies("[{hot_repair: 5}]"), "4:27", "a mapping of options is expected"},
       Case{withStrategies("[{armed: , hot_repair: }]"), "4:14", "a strategy is a name or"},
       Case{withStrategies("[{fail_stop: {watchdog: 60s}}]"), "4:37", "never fires"}});
}

TEST(OneMistakeTest, Faults) {
  expectEach(
      {Case{withFault("at: 1s, until: end"), "6:3", "'faults.0' needs the key 'kind'"},
       Case{withFault("kind: meteor, at: 1s, until: end"), "6:10", "'meteor' is not one of"},
       Case{withFault("kind: blackhole, at: 1s, until: end"), "6:3", "needs the key 'target'"},
       Case{withFault("kind: blackhole, target: {node: 1}, at: 1s, until: end"), "6:29",
            "'faults.0.target' needs the key 'rail'"},
       Case{withFault("kind: path_cut, target: {node: 1, rail: 0}, at: 1s, until: end"), "6:28",
            "'faults.0.target' needs the key 'peer'"},
       Case{withFault("kind: blackhole, target: {node: 1, rail: 0, peer: 2}, at: 1s, until: end"),
            "6:54", "peer: blackhole does not act on the path between two nodes"},
       Case{withFault("kind: path_cut, target: {node: 1, rail: 0, peer: 1}, at: 1s, until: end"),
            "6:53", "no path from a node to itself"},
       Case{withFault("kind: path_cut, target: {node: 1, rail: 0, peer: 9}, at: 1s, until: end"),
            "6:53", "there is no node 9"},
       Case{withFault("kind: path_cut, target: {node: 1, network: management, peer: 2}, at: 1s, "
                      "until: end"),
            "6:47", "network: path_cut acts on rails"},
       Case{withFault("kind: path_cut, target: {rail_group: 0}, at: 1s, until: end"), "6:41",
            "path_cut cannot strike a whole rail"},
       Case{minimal("cluster: {nodes: 2}\nfaults: [{kind: path_cut, target: {node: 0, rail: 0, "
                    "peer: 1}, at: 1s, until: end}]\n"),
            "6:10", "needs at least 3"},
       Case{withFault("kind: loss, percent: 30%, at: 1s, until: end, target: {node: 1, rail: 0, "
                      "network: management}"),
            "6:74", "exclude each other"},
       Case{withFault("kind: process_stop, target: {node: 1, rail: 0}, at: 1s, until: end"), "6:48",
            "acts on the processes of a node"},
       Case{withFault("kind: process_kill, at: 1s, until: end"), "6:3", "like {node: 1}"},
       Case{withFault("kind: none, at: 1s, before: start, until: end"), "6:32", "excludes at and"},
       Case{withFault("kind: none, before: noon, until: end"), "6:24", "'noon' is not one of"},
       Case{withFault("kind: none, at: 1s, duration: 1s, times: 3"), "6:45", "like 'every: 500ms'"},
       Case{withFault("kind: none, at: 1s, duration: 1s, every: 3s"), "6:45", "only with 'times'"},
       Case{withFault("kind: none, at: 1s, until: end, every: 3s, times: 2"), "6:54",
            "strikes only once"},
       Case{withFault("kind: none, at: 1s, duration: 1s, every: 1s, times: 2"), "6:45",
            "not longer than the fault"},
       Case{withFault("kind: none, at: 1s, duration: 1s, every: 2s, times: 31"), "6:56",
            "the last of 31 comes after 61s"},
       Case{withFault("kind: blackhole, target: {node: 4, rail: 0}, at: 1s, until: end"), "6:36",
            "there is no node 4: the cluster has 4, counted from 0"},
       Case{withFault("kind: blackhole, target: {node: 0, rail: 5}, at: 1s, until: end"), "6:45",
            "there is no rail 5: the cluster has 2"},
       Case{withFault("kind: none, until: end"), "6:3", "never strikes"},
       Case{withFault("kind: none, at: 1s, during: {iteration: 5}, until: end"), "6:32",
            "exclude each other"},
       Case{withFault("kind: none, at: 1s"), "6:3", "never ends: write 'duration: 2s'"},
       Case{withFault("kind: none, at: 1s, duration: 1s, until: end"), "6:45",
            "exclude each other"},
       Case{withFault("kind: none, at: 1s, until: later"), "6:31", "'later' is not one of end"},
       Case{withFault("kind: none, at: 60s, until: end"), "6:20", "is never reached"},
       Case{withFault("kind: none, at: 1s, duration: 60s"), "6:34", "longer than a run"},
       Case{withFault("kind: none, during: {iteration: 5}, until: end"), "6:24",
            "measured on the rails of a target node"},
       Case{withFault("kind: none, how: admin, at: 1s, until: end"), "6:16",
            "unknown key 'how' in 'faults.0'"},
       Case{withFault("kind: blackhole, target: {node: 1, rail: 0}, during: {iteration: 60}, "
                      "until: end"),
            "6:69", "there is no iteration 60: the workload has 60, counted from 0"},
       Case{withFault("kind: blackhole, target: {node: 1, rail: 0}, during: {iteration: 6, "
                      "progress: 100%}, until: end"),
            "6:82", "1% to 99% is possible"},
       Case{withFault("kind: throttle, target: {node: 1, rail: 0}, at: 1s, until: end"), "6:3",
            "throttle needs the key 'rate'"},
       Case{minimal("faults: {kind: none}\n"), "5:9", "a list of faults is expected"}});
}

TEST(OneMistakeTest, Combinations) {
  expectEach(
      {Case{withWorkload("gradient: {size: 6B}"), "3:45", "not a whole number of elements"},
       Case{withWorkload("gradient: {size: 8B, buckets: 3}"), "3:58", "too many for 8B"},
       Case{minimal("limits: {deadline: 5s}\n"), "5:9",
            "give_up: 10s is never reached: a run ends at its deadline of 5s"},
       Case{minimal("limits: {hold_off: 20s}\n"), "5:9",
            "longest_hold_off: 10s is shorter than the first one, hold_off: 20s"},
       Case{minimal("limits: {return_probe_interval: 2s}\n"), "5:9",
            "longest_return_probe_interval: 1s is shorter than the first one, "
            "return_probe_interval: 2s"},
       Case{minimal("limits: {idle_probe_interval: 6s}\n"), "5:31",
            "idle_probe_interval: 6s lets no rank be heard twice within give_up: 10s"},
       Case{minimal("limits: {chunk: 1KiB}\n"), "5:17", "4KiB to 4MiB is possible"},
       Case{minimal("limits: {suspect_after: 20s}\n"), "5:25",
            "suspect_after: 20s is never reached: the job is given up after give_up: 10s"},
       Case{"version: 1\nname: n\nworkload: {kind: training}\n"
            "strategies: [{fail_stop: {watchdog: 2s}}]\n"
            "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, duration: 2s}]\n",
            "4:37", "watchdog: 2s is not shorter than the 2s of port_down (faults.0)"},
       Case{"version: 1\nname: n\nworkload: {kind: training}\nstrategies: [fail_stop]\n"
            "faults: [{kind: blackhole, target: {node: 1, rail: 0}, at: 1s, duration: 500ms}]\n",
            "4:14", "watchdog: 600ms is not shorter"},
       Case{"version: 1\nname: n\ncluster: {nodes: 3}\nworkload: {kind: training}\n"
            "strategies: [{fail_stop: {watchdog: 2s}}]\nfaults: [{kind: path_cut, "
            "target: {node: 1, rail: 0, peer: 2}, at: 1s, duration: 1s}]\n",
            "5:37", "watchdog: 2s is not shorter than the 1s of path_cut (faults.0)"},
       Case{"version: 1\nname: n\nworkload: {kind: training, warmup_iterations: 0}\n"
            "strategies: [hot_repair]\nfaults: [{kind: blackhole, target: {node: 1, rail: 0}, "
            "during: {iteration: 1}, until: end}]\n",
            "5:64", "measured against the warm-up"},
       Case{withStrategies("[fault_free, armed]") + "faults: [{kind: none, at: 1s, until: end}]\n",
            "4:13", "none of these strategies meets the faults"},
       Case{withRandomData("[hot_repair]"), "3:45", "equal those of fault_free: add it"},
       Case{
           minimal("cluster: {nodes: 1}\n"
                   "faults: [{kind: blackhole, target: {node: 0, rail: 0}, at: 1s, until: end}]\n"),
           "6:10", "a cluster of one node"}});
}

TEST(OneMistakeTest, Expectations) {
  expectEach({Case{minimal("expect: [wrong == 0]\n"), "5:10", "there is no metric 'wrong'"},
              Case{minimal("expect:\n  - wrong_element == 0\n"), "6:5",
                   "(did you mean 'wrong_elements'?)"},
              Case{minimal("expect: [armed.status == ok]\n"), "5:10", "does not run armed: add it"},
              Case{minimal("expect: [fault_free.overhead_pct.median < 5]\n"), "5:10",
                   "it has none of its own"},
              Case{minimal("expect: [hot_repair.failovers.cause == gremlin]\n"), "5:10",
                   "one of local_nic, remote_nic, rail, path"},
              Case{minimal("expect: [hot_repair.failovers.verdict == guess]\n"), "5:10",
                   "one of port_event, reset, probes, back_off, told_by_peer"},
              Case{minimal("expect: [hot_repair.exposed_overhead_pct.median < 5]\n"), "5:10",
                   "only jobs that follow from a 'model'"},
              Case{minimal("repeat: 5\nexpect: [hot_repair.overhead_pct.ci95.hi < 5]\n"), "6:10",
                   "needs 'repeat' to be at least 6, not 5"},
              Case{withRandomData("[fault_free, armed]") + "expect: [wrong_elements == 0]\n",
                   "5:10", "write 'digest_matches == true'"},
              Case{minimal("expect: [hot_repair.digest_matches == true]\n"), "5:10",
                   "write 'wrong_elements == 0'"},
              Case{minimal("expect: [{a: b}]\n"), "5:10", "an expectation is text"},
              Case{minimal("expect: wrong_elements == 0\n"), "5:9", "a list of expectations"}});
}

// Each can be known without a run to have no value: it would be void.
TEST(OneMistakeTest, ExpectationsThatCanNeverHaveAValue) {
  const auto with = [](const std::string& strategies, const std::string& rest,
                       const std::string& expectation) {
    return "version: 1\nname: n\nworkload: {kind: training}\nstrategies: " + strategies + "\n" +
           rest + "expect: [" + expectation + "]\n";
  };
  const std::string fault =
      "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, duration: 1s}]\n";
  const std::string untilEnd =
      "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, until: end}]\n";
  const auto faulted = [&](const std::string& strategies, const std::string& expectation) {
    return with(strategies, fault, expectation);
  };
  const std::string all =
      "[fault_free, armed, {fail_stop: {watchdog: 200ms}}, hot_repair, shrink, "
      "{exclude_rank: {wait: 200ms}}]";
  expectEach(
      {Case{faulted(all, "hot_repair.failover_pause_ms.p95 <= 20"), "6:10", "needs 60 failovers"},
       Case{faulted(all, "hot_repair.failover_pause_ms.p99 <= 20"), "6:10", "needs 300 failovers"},
       Case{faulted(all, "fail_stop.failover_pause_ms.max <= 9"), "6:10", "has no failovers"},
       Case{faulted(all, "fail_stop.detection_ms.max <= 9"), "6:10", "has no failovers"},
       Case{faulted(all, "exclude_rank.failovers.cause == path"), "6:10", "has no failovers"},
       Case{faulted(all, "armed.failover_pause_ms.max <= 9"), "6:10", "meets no fault"},
       Case{faulted(all, "hot_repair.restarts.hang_ms <= 9"), "6:10", "only fail_stop"},
       Case{faulted(all, "hot_repair.shrinks.ranks == 2"), "6:10", "only shrink and exclude_rank"},
       Case{faulted(all, "shrink.exclusions.rank == 2"), "6:10", "only exclude_rank"},
       Case{faulted(all, "armed.errors.after_ms <= 9"), "6:10", "armed meets no fault"},
       Case{faulted(all,
                    "hot_repair.iteration_ms.max < fail_stop.restarts.hang_ms < "
                    "hot_repair.restarts.load_ms"),
            "6:10", "only fail_stop"},
       Case{with("[fault_free, hot_repair]", "", "hot_repair.detection_ms.max <= 9"), "5:10",
            "the scenario has no faults"},
       Case{faulted(all, "fault_free.after_pct.median >= 80"), "6:10", "fault_free meets no fault"},
       Case{faulted(all, "armed.back_to_95_pct_ms.max <= 9"), "6:10", "armed meets no fault"},
       Case{with("[fault_free, hot_repair]", "", "hot_repair.after_pct.min >= 80"), "5:10",
            "the scenario has no faults"},
       Case{with(all, untilEnd, "hot_repair.after_pct.median >= 80"), "6:10",
            "port_down lasts until the end of the run, so that nothing comes after it"},
       Case{with(all, untilEnd, "hot_repair.back_to_95_pct_ms.median <= 9"), "6:10",
            "give it a 'duration'"}});
  EXPECT_THAT(mistakesOf(with(all, untilEnd, "fail_stop.after_pct.median >= 80")), IsEmpty())
      << "its nodes are repaired";
  for (const char* const expectation :
       {"hot_repair.failovers.count == 0", "fail_stop.failovers.count == 0",
        "hot_repair.restarts.count == 0", "hot_repair.failover_pause_ms.max <= 20",
        "hot_repair.failover_pause_ms.n == 0", "fail_stop.restarts.hang_ms <= 1000",
        "exclude_rank.exclusions.rank == 1", "shrink.shrinks.ranks == 3",
        "hot_repair.after_pct.median >= 80", "fail_stop.back_to_95_pct_ms.max <= 5s"}) {
    EXPECT_THAT(mistakesOf(faulted(all, expectation)), IsEmpty()) << expectation;
  }
  const std::string often =
      "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 1s, duration: 100ms, times: 90, "
      "every: 300ms}]\n";
  EXPECT_THAT(mistakesOf(with("[hot_repair]", often, "hot_repair.failover_pause_ms.p99 <= 20")),
              IsEmpty());
  const std::string flaps =
      "faults: [{kind: port_flap, target: {node: 1, rail: 0}, at: 1s, duration: 20s, period: "
      "300ms}]\n";
  EXPECT_THAT(mistakesOf(with("[hot_repair]", flaps, "hot_repair.failover_pause_ms.p95 <= 20")),
              IsEmpty());
}

TEST(OneMistakeTest, CellsThatTheSweepDoesNotHave) {
  const auto with = [](const std::string& sizes, const std::string& expectation) {
    return "version: 1\nname: n\nworkload: {kind: collective, collective: {sizes: " + sizes +
           "}}\nstrategies: [fault_free, balance, optcc]\nexpect: [" + expectation + "]\n";
  };
  expectEach({Case{with("[1MiB, 4MiB]", "balance.cells.large.time_over_bound <= 2"), "5:10",
                   "at least 8 MiB"},
              Case{with("[16MiB]", "balance.cells.large.time_over_formula <= 2"), "5:10",
                   "balance runs another algorithm"}});
  EXPECT_THAT(mistakesOf(with("[16MiB]", "balance.cells.large.time_over_bound <= 2")), IsEmpty());
}

TEST(MistakesTest, AllOfAFileAreToldInOrder) {
  const auto mistakes = mistakesOf(
      "version: 1\n"
      "name: n\n"
      "cluster: {nodes: four, rails: 2}\n"
      "workload: {kind: training, iterations: 10, compute: 20}\n"
      "strategies: [fault_free, hot_repare]\n"
      "faults:\n"
      "  - {kind: port_down, target: {node: 9, rail: 5}, during: {iteration: 90}, duration: 2}\n"
      "colour: red\n"
      "expect: [fault_free.statos == ok]\n");
  EXPECT_THAT(mistakes,
              ElementsAre(HasSubstr("f:3:18: nodes: 'four'"), HasSubstr("f:4:53: compute: '20'"),
                          HasSubstr("f:5:26: unknown strategy 'hot_repare'"),
                          HasSubstr("f:7:47: rail: there is no rail 5"),
                          HasSubstr("f:7:71: iteration: there is no iteration 90"),
                          HasSubstr("f:7:86: duration: '2' has no unit"),
                          HasSubstr("f:8:1: unknown key 'colour'"),
                          HasSubstr("f:9:10: fault_free has no metric 'statos'")))
      << "node 9 must not be judged: nobody knows how many there are";
}

TEST(MistakesTest, MessagesStayOnOneLineAndBounded) {
  const std::string noise = "\"" + std::string(50'000, 'x') + "\\n\\t\\u0007\"";
  for (const std::string& line : {"seed: " + noise, "cluster: {kind: " + noise + "}", noise + ": 1",
                                  "expect: [" + noise + "]", "limits: {deadline: " + noise + "}",
                                  "faults: [{kind: " + noise + "}]"}) {
    for (const std::string& mistake : mistakesOf(minimal(line + "\n"))) {
      EXPECT_EQ(mistake.find_first_of("\n\t\a"), std::string::npos);
      EXPECT_LT(mistake.size(), 500u);
    }
  }
}

std::string withSweep(const std::string& keys, const std::string& more = "") {
  return "version: 1\nname: n\nworkload: {kind: collective, collective: {" + keys + "}}\n" +
         "strategies: [armed]\n" + more;
}

TEST(OneMistakeTest, Sweeps) {
  expectEach(
      {Case{withSweep("operations: [all_reduce, all_gahter]"), "3:68",
            "operations: 'all_gahter' is not one of all_reduce"},
       Case{withSweep("sizes: [1MiB, 1MiB]"), "3:57", "sizes: '1MiB' is listed twice"},
       Case{withSweep("sizes: []"), "3:50", "a list of 1 to 100 is expected"},
       Case{withSweep("sizes: 0B"), "3:50", "out of range"},
       Case{withSweep("from: 1MiB"), "3:49", "a range of sizes needs both 'from' and 'to'"},
       Case{withSweep("sizes: 1MiB, factor: 4"), "3:64", "either a list of them, or a range"},
       Case{withSweep("from: 2MiB, to: 1MiB"), "3:59", "to: 1MiB is less than from: 2MiB"},
       Case{withWorkload("collective: {}"), "3:40", "a workload of kind training has none"},
       Case{"version: 1\nname: n\nworkload: {kind: collective, compute: 1ms}\n"
            "strategies: [armed]\n",
            "3:39", "compute: a workload of kind collective has none"},
       Case{
           withSweep("sizes: [1MiB, 2MiB]",
                     "faults:\n- {kind: port_down, target: {node: 1, rail: 0}, during: {iteration: "
                     "1}, duration: 1s}\n")
               .replace(sizeof("version: 1\nname: n\nworkload: {kind: collective, collective: "
                               "{sizes: [1MiB, 2MiB]}}\n") -
                            1,
                        sizeof("strategies: [armed]") - 1, "strategies: [hot_repair]"),
           "6:57", "the calls of this workload differ"}});
}

TEST(OneMistakeTest, AcrossBlocks) {
  const auto noise = [](const std::string& more, const std::string& strategies = "[fault_free]") {
    return withStrategies(strategies) + "noise: {across_blocks: on" + more + "}\n";
  };
  EXPECT_TRUE(mistakesOf(noise("") + "repeat: 4\n").empty());
  expectEach({Case{noise("") + "repeat: 3\n", "5:24", "needs 'repeat' to be at least 4, not 3"},
              Case{noise(", drift_check: 1") + "repeat: 4\n", "5:24", "drift_check asks the same"},
              Case{noise("", "[armed]") + "repeat: 4\n", "5:24", "there is no fault_free"}});
}

TEST(OneMistakeTest, ProcessorsOfGuestsAreNotKeptAwake) {
  const auto awake = [](const std::string& kind) {
    return "version: 1\nname: n\ncluster: {kind: " + kind +
           "}\nworkload: {kind: command, command: {run: [a]}}\nstrategies: [fault_free]\n"
           "noise: {keep_awake: on}\n";
  };
  EXPECT_THAT(mistakesOf(awake("netns")), IsEmpty());
  expectEach(
      {Case{awake("rdma_vm"), "6:21", "the processors of nodes of a cluster of kind rdma_vm"}});
}

TEST(OneMistakeTest, ALimitOfNoiseThatNothingIsHeldAgainst) {
  const auto noise = [](const std::string& keys, const std::string& strategies = "[fault_free]") {
    return withStrategies(strategies) + "noise: {" + keys + "}\n";
  };
  const std::string pairs = "[fault_free, {fault_free: {as: again}}]";
  for (const std::string& yaml :
       {noise("void_above: 5%, drift_check: 2"), noise("void_above: 2%, drift_check: 1"),
        noise("void_above: 5%, across_blocks: on") + "repeat: 4\n",
        noise("void_above: 5%", pairs) + "repeat: 10\n"}) {
    EXPECT_THAT(mistakesOf(yaml), IsEmpty()) << yaml;
  }
  expectEach(
      {Case{noise("void_above: 5%"), "5:21", "it has no effect: write 'drift_check: 2'"},
       Case{noise("void_above: 5%, drift_check: 1"), "5:21", "or 'across_blocks: on'"},
       Case{noise("void_above: 5%", pairs) + "repeat: 9\n", "5:21", "give 'repeat' at least 10"}});
}

TEST(OneMistakeTest, CellsAndPlansWhereThereAreNone) {
  const std::string sweep =
      "version: 1\nname: n\nworkload: {kind: collective}\nstrategies: [balance, optcc]\nexpect: ";
  expectEach({Case{sweep + "[balance.plans.count > 0]\n", "5:10", "balance makes no plans"},
              Case{withStrategies("[optcc]") + "expect: [optcc.cells.time_over_best <= 1]\n",
                   "5:10", "only a workload of kind collective has cells"},
              Case{sweep + "[optcc.plans.algorithm == optc]\n", "5:10", "write one of ring"}});
  EXPECT_TRUE(
      mistakesOf(sweep + "[optcc.plans.count > 0, balance.cells.time_over_best < 2]\n").empty());
}

TEST(MistakesTest, AFileOfMistakesIsCutShort) {
  std::string yaml = minimal();
  for (int i = 0; i < 3000; ++i) yaml += "k" + std::to_string(i) + ": 1\n";
  const auto mistakes = mistakesOf(yaml);
  ASSERT_EQ(mistakes.size(), 101u);
  EXPECT_EQ(mistakes.back(), "f: and 2900 more mistakes");
}

}  // namespace
}  // namespace faultline::scenario
