#include "support/sample_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/random.h"

namespace faultline::testing {
namespace {

using namespace reports;  // NOLINT: a file of the result model's words

constexpr int kNodes = 4;
constexpr int kRails = 2;
constexpr int kIterations = 60;
constexpr int kHitIteration = 20;
constexpr int kFaultyNode = 1;
constexpr int kCheckpointEvery = 8;
constexpr double kIterationMs = 66;
constexpr double kFaultMs = 1500;
constexpr double kWatchdogMs = 600;
constexpr double kLoadMs = 45;
constexpr double kUsualWatchdogMs = 600'000;
constexpr double kBinMs = 20;
constexpr double kBytesPerMs = 46'000;  // of one rail while it is used
constexpr std::int64_t kElementsPerIteration = 4 * 1024 * 1024 / 4 * kNodes;

class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_(seed) {}

  ScenarioResult build() {
    result_.seed = 7;
    result_.started_at = "2026-05-04T09:30:00Z";
    result_.scenario_file = "scenarios/quickstart.yaml";
    result_.duration_ms = 61'400;
    result_.verdict = Verdict::kPass;
    describe();
    for (int block = 0; block < 3; ++block) {
      for (const char* strategy : {"fault_free", "fail_stop", "hot_repair"})
        addRun(strategy, block);
    }
    summarise();
    expect();
    return std::move(result_);
  }

 private:
  double jitter(double value, double share) {
    return value * (1 + share * (2 * random_.unit() - 1));
  }

  void describe() {
    result_.training = {.model = "gpt3-2.7b",
                        .device = "a100",
                        .scale = 1000,
                        .parameters = 2'651'553'280,
                        .parameters_per_rank = 2'651'553'280,
                        .flops_per_token = 1.7e10,
                        .tokens_per_iteration = 8192,
                        .compute_ms = 0.23,
                        .real_compute_ms = 230,
                        .states_bytes = 42.4e9,
                        .activations_bytes = 5.7e9,
                        .device_bytes = 80e9,
                        .phases = {{"gradients", "all_reduce", 4, 4, 5'303'108, 5'303'106'560}}};
    result_.scenario = Json::parse(R"({
      "version": 1, "name": "quickstart",
      "description": "One of two NICs of node 1 goes down in the middle of a gradient AllReduce, and comes back.",
      "cluster": {"kind": "netns", "nodes": 4, "ranks_per_node": 1, "rails": 2, "rail_rate": "400Mbit"},
      "workload": {"kind": "training", "iterations": 60, "compute": "20ms",
                   "gradient": {"size": "4MiB", "buckets": 4, "dtype": "f32", "data": "integers"}},
      "strategies": ["fault_free", {"fail_stop": {"watchdog": "600ms", "checkpoint_every": 8}}, "hot_repair"],
      "faults": [{"kind": "port_down", "how": "carrier", "target": {"node": 1, "rail": 0},
                  "during": {"iteration": 20, "progress": "50%"}, "duration": "1500ms"}],
      "limits": {"deadline": "60s", "give_up": "10s"}, "repeat": 3, "seed": 7})");
    Environment& environment = result_.environment;
    environment.kernel = "Linux 6.1.0-18-amd64 x86_64";
    environment.cpu = "Example CPU at 2.60 GHz";
    environment.cores = 8;
    environment.versions = {{"faultline", "0.1.0"}, {"libnl", "3.7.0"}, {"yaml-cpp", "0.7.0"}};
    environment.git = "0123456789ab";
    environment.qdisc = {
        {"kind", "htb"}, {"rate", "400Mbit"}, {"burst", "64KiB"}, {"limit", "1MiB"}};
    environment.tcp = {{"TCP_NODELAY", "1"},
                       {"SO_LINGER", "1, 0 s"},
                       {"tcp_congestion_control", "cubic"},
                       {"tcp_retries2", "15"},
                       {"tcp_rmem", "4096 131072 33554432"}};
    environment.congestion_control = "cubic";
    environment.libraries = {"/lib/x86_64-linux-gnu/libnl-3.so.200",
                             "/lib/x86_64-linux-gnu/libc.so.6"};
  }

  void expect() {
    const Summary& row = result_.summary[2];
    result_.expectations = {
        {"wrong_elements == 0", 0, true, ""},
        {"hot_repair.failovers.count >= 1", row.failover_pause_ms->n, true, ""},
        {"hot_repair.failover_pause_ms.max <= 100", *row.failover_pause_ms->max, true, ""},
        {"hot_repair.overhead_pct.median <= 30", row.overhead_pct->median, true, ""}};
  }

  void addRun(const std::string& strategy, int block) {
    Run run;
    run.strategy = strategy;
    run.block = block;
    run.faulted = strategy != "fault_free";
    run.arm = run.faulted ? Arm::kFaulted : Arm::kPlain;
    if (strategy == "fail_stop") run.options = {{"watchdog", "600ms"}, {"checkpoint_every", 8}};
    run.digest = "9f2c6b7d10e44c55a8";
    double at = 0;
    for (int index = 0; index < kIterations; ++index) {
      const double normal = jitter(kIterationMs, 0.04);
      if (run.faulted && index == kHitIteration && run.faults.empty()) {
        addFault(run, at + normal / 2);
        if (strategy == "fail_stop") {
          at = restart(run);
          index = *run.restarts.back().checkpoint_iteration;  // the loop goes on behind it
          continue;
        }
        addFailovers(run);
        addPlans(run, at + normal);
      }
      const double stretched = strategy == "hot_repair" ? stretch(run, at, normal) : normal;
      run.iterations.push_back({index, at, stretched});
      at += stretched;
    }
    run.duration_ms = at;
    run.throughput = Quantity{kIterations / (at / 1000), "iterations/s"};
    run.checked_elements = kElementsPerIteration * kIterations;
    if (strategy == "fail_stop") run.checkpoint_ms = jitter(64, 0.2);
    addSeries(run);
    run.counters = {
        {"chunks_sent", 14400}, {"probes_sent", 312}, {"longest_receive_stall_us", 21400}};
    run.resources = {{.rank = 0,
                      .memory_start_bytes = 40 << 20,
                      .memory_end_bytes = 41 << 20,
                      .memory_max_bytes = 42 << 20,
                      .open_files_start = 31,
                      .open_files_end = 31,
                      .open_files_max = 33}};
    run.exposed = {{"gradients", 12.5, 10.0}};
    addTelemetry(run);
    const double busy = 30 + 2 * block;
    run.load = MachineLoad{.samples = 8,
                           .others_pct = 1.5 + block,
                           .busy_pct = LoadRange{busy - 10, busy, busy + 20},
                           .stolen_pct = LoadRange{0, 0, 0.4},
                           .load_average = LoadRange{1.1, 1.4, 1.9},
                           .waiting_pct = 6.0 + block};
    result_.runs.push_back(std::move(run));
  }

  /// A chunk of the warm-up and one of the run from rank 0 to rank 1, and the end of their rail.
  static void addTelemetry(Run& run) {
    Telemetry& telemetry = run.telemetry;
    telemetry.kind = {"chunk_arrived", "chunk_sent", "chunk_arrived", "rail_fence", "link_failed"};
    telemetry.rank = {1, 0, 1, 0, 0};
    telemetry.peer = {0, 1, 0, 1, 1};
    telemetry.rail = {0, 0, 0, 0, -1};
    telemetry.at_ms = {-7, 10, 11, 12.5, 13};
    telemetry.ms = {1, 0, 1.25, 0, 0};
    telemetry.bytes = {65536, 65536, 65536, 0, 0};
    telemetry.number = {3, 4, 4, 0, 0};
  }

  static void addFault(Run& run, double at_ms) {
    AppliedFault fault;
    fault.kind = "port_down";
    fault.mechanism = "carrier of the switch's end of the cable";
    fault.parameters = {{"how", "carrier"}};
    fault.target = {kFaultyNode, 0, std::nullopt, "node 1, rail 0"};
    fault.trigger = "iteration 20, 50 %";
    fault.start_ms = at_ms;
    fault.end_ms = at_ms + kFaultMs;
    fault.hit =
        FaultHit{true, kHitIteration, 51.3, "the iteration ended 31 ms later on 4 of 4 ranks"};
    run.faults.push_back(fault);
    run.evidence = {
        {0, "peer_carrier", "carrier of n1r0 lost 0.4 ms later, back 1500.9 ms later", true},
        {0, "peer_counters", "0 bytes received in 1480 ms on the switch's end", true}};
  }

  /// Returns the time at which work goes on.
  static double restart(Run& run) {
    const double fault = run.faults[0].start_ms;
    Restart restart;
    restart.fault_ms = fault;
    restart.hang_ms = kWatchdogMs + 2.1;
    restart.isolate_ms = kFaultMs - restart.hang_ms + 8.3;
    restart.load_ms = kLoadMs;
    restart.checkpoint_iteration = kHitIteration / kCheckpointEvery * kCheckpointEvery - 1;
    restart.lost_iterations = kHitIteration - *restart.checkpoint_iteration - 1;
    restart.lost_ms = restart.lost_iterations * kIterationMs;
    restart.unscaled_total_ms = kUsualWatchdogMs + kLoadMs + restart.lost_ms;
    run.restarts.push_back(restart);
    return fault + restart.hang_ms + restart.isolate_ms + restart.load_ms;
  }

  void addFailovers(Run& run) {
    const double fault = run.faults[0].start_ms;
    struct Channel {
      int rank, peer;
      const char* direction;
    };
    for (const Channel& channel : {Channel{1, 2, "send"}, Channel{1, 0, "recv"},
                                   Channel{2, 1, "recv"}, Channel{0, 1, "send"}}) {
      const bool local = channel.rank == kFaultyNode;
      Failover failover;
      failover.rank = channel.rank;
      failover.rail = 0;
      failover.peer = channel.peer;
      failover.direction = channel.direction;
      failover.cause = local ? "local_nic" : "remote_nic";
      failover.verdict = local ? "port_event" : "told_by_peer";
      failover.fault_ms = fault;
      failover.detected_ms = fault + jitter(local ? 1.1 : 2.4, 0.3);
      failover.fenced_ms = *failover.detected_ms + jitter(3.5, 0.4);
      failover.resumed_ms = *failover.fenced_ms + jitter(21, 0.4);
      failover.restored_ms = fault + kFaultMs + jitter(120, 0.2);
      failover.pause_ms = *failover.resumed_ms - fault;
      failover.resent_bytes = static_cast<std::int64_t>(jitter(700'000, 0.3));
      failover.duplicate_bytes = local ? 0 : 65'536;
      run.failovers.push_back(failover);
      run.failbacks.push_back({channel.rank, 0, channel.peer, *failover.restored_ms});
    }
  }

  /// Before the fault and with the first iteration after it.
  static void addPlans(Run& run, double next_ms) {
    AppliedPlan plan;
    plan.at_ms = -300;
    plan.communicator = 1;
    plan.operation = 2;
    plan.bytes = 1 << 20;
    plan.elements = plan.bytes / 4;
    plan.algorithm = "ring";
    plan.health.resize(kNodes);
    plan.predicted_ms = plan.ring_ms = 17.1;
    plan.bound_ms = 16.4;
    plan.hash = "00f1d2c3b4a59687";
    plan.link = {.latency_us = 61, .per_message_us = 4.5, .bandwidth = 95e6};
    run.plans.push_back(plan);
    run.port_tests.push_back({.at_ms = next_ms - 130,
                              .communicator = 1,
                              .operation = 129,
                              .ms = 114,
                              .rounds = 3,
                              .lateness = 1.31,
                              .complete = true,
                              .changed = true,
                              .slow_paths = {{.from = 1, .to = 2, .share = 0.49}}});
    plan.at_ms = next_ms;
    plan.epoch = 1;
    plan.operation = 131;
    plan.algorithm = "optcc";
    plan.segments = 32;
    plan.health[kFaultyNode] = {.send = 0.5, .receive = 0.5};
    plan.predicted_ms = 23.3;
    plan.ring_ms = 33.4;
    plan.bound_ms = 21.8;
    plan.hash = "8a9bacbdcedfe0f1";
    run.plans.push_back(plan);
  }

  /// With one rail of two an iteration takes about twice the time.
  double stretch(const Run& run, double at, double normal) {
    if (run.failovers.empty()) return normal;
    const double begin = run.faults[0].start_ms;
    const double end = *run.failovers[0].restored_ms;
    if (at + normal < begin || at > end) return normal;
    return at < begin ? normal * 1.9 + 20 : jitter(normal * 1.95, 0.03);
  }

  void addSeries(Run& run) {
    const auto bins = static_cast<std::size_t>(std::ceil(run.duration_ms / kBinMs));
    for (int node = 0; node < kNodes; ++node) {
      for (int rail = 0; rail < kRails; ++rail) {
        RailSeries series{node, rail, 0, kBinMs, {}};
        RailTotals totals{node, rail, 0, 0};
        for (std::size_t bin = 0; bin < bins; ++bin) {
          const double load = loadAt(run, node, rail, static_cast<double>(bin) * kBinMs);
          series.tx_bytes.push_back(
              static_cast<std::int64_t>(jitter(load * kBytesPerMs * kBinMs, 0.15)));
          totals.tx_bytes += series.tx_bytes.back();
        }
        totals.rx_bytes = totals.tx_bytes;
        run.rail_series.push_back(std::move(series));
        run.rails.push_back(totals);
      }
    }
  }

  static double loadAt(const Run& run, int node, int rail, double at) {
    constexpr double kShareOfTimeInUse = 0.95;
    if (run.faults.empty() || at < run.faults[0].start_ms) return kShareOfTimeInUse;
    if (!run.restarts.empty()) {
      const Restart& restart = run.restarts[0];
      const double again =
          restart.fault_ms + restart.hang_ms + restart.isolate_ms + restart.load_ms;
      return at < again ? 0 : kShareOfTimeInUse;
    }
    if (at > *run.failovers[0].restored_ms) return kShareOfTimeInUse;
    const bool uses_the_dead_rail = node == kFaultyNode || node == 0;
    if (uses_the_dead_rail) return rail == 0 ? 0 : 1.02;
    return 0.5;
  }

  void summarise() {
    for (const char* strategy : {"fault_free", "fail_stop", "hot_repair"}) {
      Summary& row = result_.summary.emplace_back();
      row.strategy = strategy;
      row.meaning = row.strategy + " does what it does, in a sentence.";
      row.n = 3;
    }
    std::vector<double> pauses;
    for (Summary& row : result_.summary) {
      std::vector<double> overheads;
      for (const Run& run : result_.runs) {
        if (run.strategy != row.strategy) continue;
        const Run& reference = result_.runs[static_cast<std::size_t>(run.block) * 3];
        overheads.push_back((run.duration_ms / reference.duration_ms - 1) * 100);
        row.throughput = run.throughput;
        for (const Failover& failover : run.failovers) pauses.push_back(failover.pause_ms);
      }
      std::sort(overheads.begin(), overheads.end());
      if (row.strategy == "fault_free") continue;
      row.overhead_pct = Overhead{overheads[overheads.size() / 2], std::nullopt};
      row.bound_pct = 18.7;
    }
    std::sort(pauses.begin(), pauses.end());
    result_.summary[2].failover_pause_ms =
        Percentiles{pauses[pauses.size() / 2], std::nullopt, std::nullopt, pauses.back(),
                    static_cast<int>(pauses.size())};
  }

  Random random_;
  ScenarioResult result_;
};

constexpr std::array<std::string_view, 5> kSweepStrategies{"fault_free", "hot_repair", "balance",
                                                           "optcc", "auto"};
constexpr std::array<std::string_view, 7> kSweepOperations{
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "send_recv"};
constexpr int kSweepSizes = 25;  // from 1 KiB on, each twice the one before
constexpr int kSweepCalls = 5;   // of each

/// Of one run, with all that rows have.
std::vector<CollectiveRow> sweptRows(double slower, bool faulted) {
  constexpr double kLatencyMs = 0.1;
  constexpr double kBytesInBursts = 1 << 20;
  constexpr double kBound = 8. / 7;
  std::vector<CollectiveRow> rows;
  for (const std::string_view operation : kSweepOperations) {
    for (int i = 0; i < kSweepSizes; ++i) {
      CollectiveRow& row = rows.emplace_back();
      row.operation = operation;
      row.size_bytes = std::int64_t{1024} << i;
      const auto bytes = static_cast<double>(row.size_bytes);
      row.count = row.size_bytes / 4;
      row.dtype = "f32";
      if (operation.find("reduce") != std::string_view::npos) row.op = "sum";
      row.n = kSweepCalls;
      row.struck = faulted ? row.n : 0;
      row.p50_ms = slower * (kLatencyMs + bytes / kBytesPerMs);
      row.min_ms = 0.97 * row.p50_ms;
      row.max_ms = 1.03 * row.p50_ms;
      row.algbw = bytes / row.p50_ms / 1e6;
      row.busbw = 1.5 * row.algbw;
      row.checked_elements = row.count * kNodes * kSweepCalls;
      row.send = row.receive = {1, faulted ? 0.5 : 1, 1, 1};
      row.ideal_ms = bytes / kBytesPerMs;
      row.time_over_ideal = row.p50_ms / *row.ideal_ms;
      row.latency_only = bytes < kBytesInBursts;
      if (!faulted || row.latency_only) continue;
      row.bound = row.model = kBound;
      row.time_over_bound = row.time_over_model = slower / kBound;
    }
  }
  return rows;
}

}  // namespace

ScenarioResult sampleResult(std::uint64_t seed) { return Builder(seed).build(); }

ScenarioResult hostileResult() {
  const std::string script =
      "</script><script>window.hacked=1</script><!-- {{script}} <img src=x "
      "onerror=\"window.hacked=1\">";
  const std::string bytes =
      std::string("nul\0tab\tline\nbell\a quote\" comma, ", 33) + "\xff\xc3\x28 \xed\xa0\x80";
  const std::string word(300, 'W');
  ScenarioResult result = sampleResult();
  result.scenario["name"] = script;
  result.scenario["description"] = script + word;
  result.verdict = Verdict::kFail;
  result.reason = script + bytes + word;
  result.expectations = {{script + " == 0", script, false, bytes},
                         {word, Json(nullptr), false, ""}};
  result.environment.cpu = script;
  result.environment.versions[script] = bytes;
  result.environment.libraries.push_back(script);
  result.scenario_file = script;
  for (Summary& row : result.summary) row.strategy += script, row.meaning += script;
  result.training->model = result.training->phases[0].phase = script;
  for (Run& run : result.runs) {
    run.strategy += script;
    run.message = bytes + word;
    run.digest = script;
    for (AppliedFault& fault : run.faults) fault.kind = fault.target.text = fault.trigger = script;
    for (Evidence& evidence : run.evidence) evidence.observed = bytes + script;
    for (ExposedPhase& phase : run.exposed) phase.phase = script;
    for (AppliedPlan& plan : run.plans) plan.algorithm = plan.hash = script;
    for (Failover& failover : run.failovers) failover.cause = failover.direction = script;
  }
  return result;
}

ScenarioResult hugeResult(int blocks, int factor) {
  const ScenarioResult sample = sampleResult();
  ScenarioResult result = sample;
  result.runs.clear();
  for (int block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < 3; ++i) {
      Run run = sample.runs[i];
      run.block = block;
      const Run once = run;
      for (int copy = 1; copy < factor; ++copy) {
        for (Iteration iteration : once.iterations) {
          iteration.index += copy * kIterations;
          iteration.start_ms += copy * once.duration_ms;
          run.iterations.push_back(iteration);
        }
        run.failovers.insert(run.failovers.end(), once.failovers.begin(), once.failovers.end());
        for (std::size_t k = 0; k < run.rail_series.size(); ++k) {
          const auto& bins = once.rail_series[k].tx_bytes;
          run.rail_series[k].tx_bytes.insert(run.rail_series[k].tx_bytes.end(), bins.begin(),
                                             bins.end());
        }
      }
      run.duration_ms *= factor;
      result.runs.push_back(std::move(run));
    }
  }
  return result;
}

ScenarioResult hugeSweepResult(int blocks) {
  const ScenarioResult sample = sampleResult();
  ScenarioResult result = sample;
  result.scenario["name"] = "sweep";
  result.scenario["workload"] = {{"kind", "collective"}};
  result.training.reset();
  result.summary.clear();
  result.runs.clear();
  const auto of_sample = [](std::string_view strategy) {
    return std::size_t{strategy == "fault_free" ? 0u : 2u};  // like fault_free or hot_repair
  };
  for (const std::string_view strategy : kSweepStrategies) {
    Summary& row = result.summary.emplace_back(sample.summary[of_sample(strategy)]);
    row.strategy = strategy;
    row.n = blocks;
  }
  for (int block = 0; block < blocks; ++block) {
    for (const std::string_view strategy : kSweepStrategies) {
      Run& run = result.runs.emplace_back(sample.runs[of_sample(strategy)]);
      run.strategy = strategy;
      run.block = block;
      run.exposed.clear();
      run.collectives = sweptRows(run.faulted ? 2 : 1, run.faulted);
      const int calls = kSweepCalls * static_cast<int>(run.collectives.size());
      const double ms = run.duration_ms / calls;
      run.iterations.clear();
      for (int call = 0; call < calls; ++call) run.iterations.push_back({call, call * ms, ms});
    }
  }
  return result;
}

}  // namespace faultline::testing
