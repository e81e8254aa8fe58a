#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/renderer.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

// The trace puts the runs one after the other on one time line, with a gap between them.
constexpr double kGapMs = 500;
constexpr double kMicrosPerMs = 1000;
constexpr double kBitsPerByte = 8;

// Process ids of the trace. "Process" is the format's word for a group of tracks.
constexpr int kJobPid = 1;
constexpr int kFaultPid = 2;
constexpr int kRequestPid = 3;
constexpr int kFirstNodePid = 10;

enum JobTrack : int { kRunTrack = 1, kIterationTrack = 2, kRestartTrack = 3, kPlanTrack = 4 };

double endOf(const Run& run) {
  double end = run.duration_ms;
  for (const Iteration& iteration : run.iterations) {
    end = std::fmax(end, iteration.start_ms + iteration.ms);
  }
  for (const AppliedFault& fault : run.faults) end = std::fmax(end, fault.end_ms.value_or(0));
  return end;
}

/// Chrome's trace event format: slices ("X"), moments ("i"), counters ("C") and names ("M"), in
/// microseconds.
class Trace {
 public:
  void process(int pid, const std::string& name) {
    if (!processes_.emplace(pid, name).second) return;
    meta(pid, 0, "process_name", {{"name", cleanText(name)}});
    meta(pid, 0, "process_sort_index", {{"sort_index", pid}});
  }
  void track(int pid, int tid, const std::string& name) {
    meta(pid, tid, "thread_name", {{"name", cleanText(name)}});
  }
  /// Slices without both ends, or that end before they begin, are left out; of no microsecond they
  /// are moments: a reader may close a slice of no length before it opens it, and with it the one
  /// that begins at the same moment.
  void slice(int pid, int tid, const char* category, const std::string& name,
             std::optional<double> from_ms, std::optional<double> to_ms,
             Json args = Json::object()) {
    if (!from_ms || !to_ms || !(*to_ms >= *from_ms)) return;
    const double from = micros(offset_ms_ + *from_ms);
    // Both ends rounded alike: the next slice may begin where this one ends, and Perfetto drops one
    // of two that overlap by a microsecond.
    const double length = micros(offset_ms_ + *to_ms) - from;
    if (length <= 0) return moment(pid, tid, category, name, *from_ms, std::move(args));
    events_.push_back({{"name", cleanText(name)},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", from},
                       {"dur", length},
                       {"pid", pid},
                       {"tid", tid},
                       {"args", std::move(args)}});
  }
  void moment(int pid, int tid, const char* category, const std::string& name, double at_ms,
              Json args) {
    events_.push_back({{"name", cleanText(name)},
                       {"cat", category},
                       {"ph", "i"},
                       {"s", "t"},  // of its track alone
                       {"ts", micros(offset_ms_ + at_ms)},
                       {"pid", pid},
                       {"tid", tid},
                       {"args", std::move(args)}});
  }
  void counter(int pid, const std::string& name, double at_ms, const char* series, double value) {
    events_.push_back({{"name", cleanText(name)},
                       {"ph", "C"},
                       {"ts", micros(offset_ms_ + at_ms)},
                       {"pid", pid},
                       {"args", {{series, value}}}});
  }
  void moveTo(double offset_ms) { offset_ms_ = offset_ms; }

  Json finish(Json other_data) && {
    return {{"displayTimeUnit", "ms"},
            {"otherData", std::move(other_data)},
            {"traceEvents", std::move(events_)}};
  }

 private:
  static double micros(double ms) { return std::round(ms * kMicrosPerMs); }
  void meta(int pid, int tid, const char* what, Json args) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", std::move(args)}});
  }

  double offset_ms_ = 0;
  Json events_ = Json::array();
  std::map<int, std::string> processes_;
};

class TraceBuilder {
 public:
  explicit TraceBuilder(const ScenarioResult& result) : result_(result) {
    trace_.process(kJobPid, "job");
    trace_.track(kJobPid, kRunTrack, "runs");
    trace_.track(kJobPid, kIterationTrack, "iterations");
    trace_.track(kJobPid, kRestartTrack, "restarts");
    trace_.track(kJobPid, kPlanTrack, "plans");
    trace_.process(kFaultPid, "faults");
  }

  Json build() && {
    double offset_ms = 0;
    for (const Run& run : result_.runs) {
      trace_.moveTo(offset_ms);
      addRun(run);
      offset_ms += endOf(run) + kGapMs;
    }
    return std::move(trace_).finish({{"scenario", scenarioName(result_)},
                                     {"verdict", nameOf(result_.verdict)},
                                     {"seed", result_.seed}});
  }

 private:
  void addRun(const Run& run) {
    trace_.slice(kJobPid, kRunTrack, "run", fmt::format("{} block {}", run.strategy, run.block + 1),
                 0, endOf(run),
                 {{"arm", nameOf(run.arm)}, {"status", nameOf(run.status)}, {"why", run.message}});
    if (run.requests.empty()) {
      for (const Iteration& iteration : run.iterations) {
        trace_.slice(kJobPid, kIterationTrack, "iteration", fmt::format("{}", iteration.index),
                     iteration.start_ms, iteration.start_ms + iteration.ms,
                     {{"attempts", iteration.attempts}});
      }
      if (run.unfinished) {
        trace_.slice(kJobPid, kIterationTrack, "iteration",
                     fmt::format("{}, not finished", run.unfinished->index),
                     run.unfinished->start_ms, run.unfinished->start_ms + run.unfinished->ms,
                     {{"attempts", run.unfinished->attempts}});
      }
    }
    addRequests(run.requests);
    for (const Restart& restart : run.restarts) addRestart(restart);
    for (const AppliedPlan& plan : run.plans) addPlan(plan);
    for (std::size_t i = 0; i < run.faults.size(); ++i) addFault(run, i);
    for (const Failover& failover : run.failovers) addFailover(failover);
    for (const RailSeries& series : run.rail_series) addSeries(series);
    addTelemetry(run.telemetry);
  }

  /// Requests overlap: each goes on the first lane that is free when it arrives. Those that were
  /// never served are moments, on the lane where they would have waited.
  void addRequests(const std::vector<ServedRequest>& requests) {
    std::vector<const ServedRequest*> arrived;
    for (const ServedRequest& request : requests) {
      if (request.arrival_ms) arrived.push_back(&request);
    }
    std::ranges::stable_sort(arrived, {}, [](const auto* request) { return *request->arrival_ms; });
    std::vector<double> busy_until_ms;
    for (const ServedRequest* request : arrived) {
      const double from = *request->arrival_ms;
      const auto lane =
          std::ranges::find_if(busy_until_ms, [&](double until_ms) { return until_ms <= from; });
      const auto number = static_cast<std::size_t>(lane - busy_until_ms.begin());
      if (lane == busy_until_ms.end()) busy_until_ms.push_back(from);
      const int tid = requestLane(static_cast<int>(number));
      const std::string name = fmt::format("request {}", request->id);
      Json args{{"rate", request->rate},
                {"prompt", request->prompt},
                {"output", request->output},
                {"fate", request->fate},
                {"begun", request->begun}};
      if (!request->e2e_ms) {
        trace_.moment(kRequestPid, tid, "request", name, from, std::move(args));
        continue;
      }
      const double to = from + *request->e2e_ms;
      busy_until_ms[number] = to;
      trace_.slice(kRequestPid, tid, "request", name, from, to, std::move(args));
      if (!request->ttft_ms) continue;
      trace_.slice(kRequestPid, tid, "request", "first token", from,
                   std::fmin(from + *request->ttft_ms, to));
    }
  }

  int requestLane(int number) {
    trace_.process(kRequestPid, "requests");
    const int tid = number + 1;
    if (tid > request_lanes_) {
      request_lanes_ = tid;
      trace_.track(kRequestPid, tid, fmt::format("lane {}", tid));
    }
    return tid;
  }

  void addRestart(const Restart& restart) {
    double at = restart.fault_ms;
    const auto phase = [&](const char* name, double ms) {
      trace_.slice(kJobPid, kRestartTrack, "restart", name, at, at + ms,
                   {{"lost_iterations", restart.lost_iterations}});
      at += ms;
    };
    phase("hang until the watchdog", restart.hang_ms);
    phase("isolate", restart.isolate_ms);
    phase("load checkpoint", restart.load_ms);
  }

  void addPlan(const AppliedPlan& plan) {
    if (plan.at_ms < 0) return;  // warm-up, which would lie upon the run before
    trace_.moment(kJobPid, kPlanTrack, "plan",
                  fmt::format("{}, {} segments", plan.algorithm, plan.segments), plan.at_ms,
                  {{"bytes", plan.bytes},
                   {"epoch", plan.epoch},
                   {"operation", plan.operation},
                   {"predicted_ms", plan.predicted_ms},
                   {"bound_ms", plan.bound_ms}});
  }

  void addFault(const Run& run, std::size_t index) {
    const AppliedFault& fault = run.faults[index];
    const int tid = static_cast<int>(index) + 1;
    if (fault_tracks_.emplace(tid, true).second) {
      trace_.track(kFaultPid, tid, fmt::format("fault {}", tid));
    }
    Json evidence = Json::array();
    for (const Evidence& one : run.evidence) {
      if (one.fault == static_cast<int>(index)) evidence.push_back(cleanText(one.observed));
    }
    trace_.slice(kFaultPid, tid, "fault", fmt::format("{} {}", fault.kind, fault.target.text),
                 fault.start_ms, fault.end_ms.value_or(endOf(run)),
                 {{"trigger", fault.trigger},
                  {"mechanism", fault.mechanism},
                  {"evidence", std::move(evidence)}});
  }

  void addFailover(const Failover& failover) {
    const int pid = nodePid(failover.rank / ranksPerNode());
    // One track per channel and rail, so that slices never overlap within a track.
    const auto key =
        std::make_tuple(failover.rank, failover.peer, failover.rail, failover.direction);
    const auto [track, added] =
        failover_tracks_.emplace(key, static_cast<int>(failover_tracks_.size()) + 1);
    const int tid = track->second;
    if (added) {
      trace_.track(pid, tid,
                   fmt::format("rank {} {} peer {} rail {}", failover.rank, failover.direction,
                               failover.peer, failover.rail));
    }
    const Json args = {{"cause", failover.cause},
                       {"verdict", failover.verdict},
                       {"pause_ms", failover.pause_ms},
                       {"resent_bytes", failover.resent_bytes},
                       {"duplicate_bytes", failover.duplicate_bytes}};
    const auto phase = [&](const char* name, std::optional<double> from, std::optional<double> to) {
      trace_.slice(pid, tid, "failover", name, from, to, args);
    };
    phase("detect", failover.fault_ms, failover.detected_ms);
    phase("fence", failover.detected_ms, failover.fenced_ms);
    phase("resend elsewhere", failover.fenced_ms, failover.resumed_ms);
    phase("on the other rails", failover.resumed_ms, failover.restored_ms);
  }

  void addSeries(const RailSeries& series) {
    if (!(series.bin_ms > 0)) return;
    const int pid = nodePid(series.node);
    const std::string name = fmt::format("rail {} sent", series.rail);
    double at = series.start_ms;
    std::optional<std::int64_t> before;  // a counter keeps its value until the next event
    for (const std::int64_t bytes : series.tx_bytes) {
      const double mbit = static_cast<double>(bytes) * kBitsPerByte / (series.bin_ms * 1000);
      if (bytes != before) trace_.counter(pid, name, at, "Mbit/s", std::round(mbit * 100) / 100);
      before = bytes;
      at += series.bin_ms;
    }
    trace_.counter(pid, name, at, "Mbit/s", 0);
  }

  /// What the ranks recorded since the start: per rank, peer and rail one track for what was sent
  /// and one for what arrived; what happens to the rail is on the first.
  void addTelemetry(const Telemetry& telemetry) {
    for (std::size_t i = 0; i < telemetry.size(); ++i) {
      if (telemetry.at_ms[i] < 0) continue;  // warm-up, which would lie upon the run before
      const std::string& kind = telemetry.kind[i];
      const bool arrived = kind.ends_with("_arrived");
      const int pid = nodePid(telemetry.rank[i] / ranksPerNode());
      const int tid = telemetryTrack(pid, telemetry.rank[i], telemetry.peer[i], telemetry.rail[i],
                                     arrived ? "from" : "to");
      Json args = {{"number", telemetry.number[i]}, {"bytes", telemetry.bytes[i]}};
      if (telemetry.ms[i] > 0) {
        trace_.slice(pid, tid, "telemetry", kind, telemetry.at_ms[i],
                     telemetry.at_ms[i] + telemetry.ms[i], std::move(args));
      } else {
        trace_.moment(pid, tid, "telemetry", kind, telemetry.at_ms[i], std::move(args));
      }
    }
  }

  int telemetryTrack(int pid, int rank, int peer, int rail, const char* direction) {
    // Behind the tracks of failovers, whose numbers begin at 1.
    constexpr int kFirstTelemetryTrack = 10'000;
    const auto [track, added] = telemetry_tracks_.emplace(
        std::make_tuple(rank, peer, rail, std::string(direction)),
        kFirstTelemetryTrack + static_cast<int>(telemetry_tracks_.size()));
    if (added) {
      trace_.track(pid, track->second,
                   fmt::format("rank {} {} rank {}{}", rank, direction, peer,
                               rail < 0 ? "" : fmt::format(" rail {}", rail)));
    }
    return track->second;
  }

  int nodePid(int node) {
    trace_.process(kFirstNodePid + node, fmt::format("node {}", node));
    return kFirstNodePid + node;
  }

  int ranksPerNode() const {
    const auto pointer = Json::json_pointer("/cluster/ranks_per_node");
    if (!result_.scenario.contains(pointer)) return 1;
    const Json& ranks = result_.scenario.at(pointer);
    return ranks.is_number_integer() && ranks.get<int>() > 0 ? ranks.get<int>() : 1;
  }

  const ScenarioResult& result_;
  Trace trace_;
  std::map<int, bool> fault_tracks_;
  int request_lanes_ = 0;
  std::map<std::tuple<int, int, int, std::string>, int> failover_tracks_;
  std::map<std::tuple<int, int, int, std::string>, int> telemetry_tracks_;
};

class TraceRenderer final : public Renderer {
 public:
  const char* name() const override { return "trace"; }
  const char* fileName() const override { return "trace.json"; }
  std::string text(const ScenarioResult& result) const override {
    const Json trace = TraceBuilder(result).build();
    return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
};

}  // namespace

std::unique_ptr<Renderer> makeTraceRenderer() { return std::make_unique<TraceRenderer>(); }

}  // namespace faultline::reports
