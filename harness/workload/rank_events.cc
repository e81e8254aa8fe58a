#include "harness/workload/rank_events.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::workload {
namespace {

using comm::CommunicatorEvents;
using nlohmann::json;

/// Null for the epoch of the clock, by which the link says "not yet".
json momentOrNull(TimePoint moment) { return moment == TimePoint{} ? json() : toJson(moment); }

constexpr double kMicrosecondsPerSecond = 1e6;

json planJson(const comm::PlanEvent& event) {
  json health = json::array();
  for (const plan::Health& port : event.health) {
    health.push_back({plan::fraction(port.send), plan::fraction(port.receive)});
  }
  const plan::Plan& plan = event.plan;
  return {{"at", toJson(event.when)},
          {"communicator", event.communicator},
          {"epoch", event.epoch},
          {"operation", event.operation},
          {"elements", event.elements},
          {"bytes", event.elements * event.elementSize},
          {"collective", schedule::collectiveName(event.collective)},
          {"algorithm", plan.algorithm},
          {"segments", plan.segments},
          {"tried", event.tried},
          {"health", std::move(health)},
          {"predicted_ms", plan.predicted * kMillisecondsPerSecond},
          {"ring_ms", plan.ring * kMillisecondsPerSecond},
          {"bound_ms", plan.bound * kMillisecondsPerSecond},
          {"hash", fmt::format("{:016x}", plan.hash)},
          {"latency_us", event.link.latency * kMicrosecondsPerSecond},
          {"per_message_us", event.link.perMessage * kMicrosecondsPerSecond},
          {"bandwidth", event.link.bandwidth}};
}

json testJson(const comm::PortTestEvent& event) {
  const comm::TestReport& report = event.report;
  json paths = json::array();
  for (const plan::PortTest::Path& path : report.slowPaths) {
    paths.push_back({{"from", path.from}, {"to", path.to}, {"share", path.rate}});
  }
  return {{"at", toJson(report.begun)},
          {"communicator", event.communicator},
          {"operation", report.operation},
          {"ms", toMilliseconds(report.took)},
          {"rounds", report.rounds},
          {"lateness", report.lateness ? json(*report.lateness) : json()},
          {"complete", report.complete},
          {"changed", report.changed},
          {"slow_paths", std::move(paths)}};
}

/// Longer than third processes are asked where a path is dead, and than the event of a port that
/// is down can take.
constexpr Duration kExplanation = 1100ms;

void add(fabric::FabricCounters& sum, const fabric::FabricCounters& counters) {
  sum += counters;
  sum.datagramsRejected += counters.datagramsRejected;
  sum.connectionsRejected += counters.connectionsRejected;
  sum.nicDistancesKnown = counters.nicDistancesKnown;
}

bool beingExplained(const channel::Failover& failover) {
  return failover.cause == channel::Cause::kPath && now() - failover.detected < kExplanation;
}

}  // namespace

void EventReport::changeCommunicator(const CommunicatorEvents& old, std::vector<int> ranks) {
  add(before_, old.counters);
  ranks_ = std::move(ranks);
  cursor_ = {};
}

void EventReport::addNew(json& message, const CommunicatorEvents& events, bool last) {
  const auto rankOf = [this](int peer) { return ranks_.empty() ? peer : ranks_[peer]; };
  forgotten_ += events.first.failovers - cursor_.failovers;
  forgotten_ += events.first.failbacks - cursor_.failbacks;
  forgotten_ += events.first.plans - cursor_.plans;
  forgotten_ += events.first.portTests - cursor_.portTests;
  forgotten_ += events.first.degradations - cursor_.degradations;
  cursor_ = events.first;
  json& failovers = message["failovers"] = json::array();
  for (const auto& [peer, failover] : events.failovers) {
    if (!last && beingExplained(failover)) break;
    ++cursor_.failovers;
    failovers.push_back({{"peer", rankOf(peer)},
                         {"rail", failover.rail},
                         {"cause", channel::causeName(failover.cause)},
                         {"where", channel::whereName(failover.where)},
                         {"dead_direction", channel::directionName(failover.deadDirection)},
                         {"stalled", failover.stalled},
                         {"told", failover.told},
                         {"sending", failover.sending},
                         {"receiving", failover.receiving},
                         {"detected", momentOrNull(failover.detected)},
                         {"fenced", momentOrNull(failover.fenced)},
                         {"redelivered", momentOrNull(failover.redelivered)},
                         {"resent_bytes", failover.resentBytes},
                         {"duplicate_bytes", failover.duplicateBytes},
                         {"receive_stall_ms", toMilliseconds(failover.receiveStall)}});
  }
  json& failbacks = message["failbacks"] = json::array();
  for (const auto& event : events.failbacks) {
    ++cursor_.failbacks;
    failbacks.push_back(
        {{"peer", rankOf(event.peer)}, {"rail", event.rail}, {"at", toJson(event.when)}});
  }
  json& degradations = message["degradations"] = json::array();
  for (const auto& [peer, change] : events.degradations) {
    ++cursor_.degradations;
    degradations.push_back({{"peer", rankOf(peer)},
                            {"rail", change.rail},
                            {"degraded", change.degraded},
                            {"share", change.share},
                            {"at", toJson(change.when)}});
  }
  json& plans = message["plans"] = json::array();
  for (const comm::PlanEvent& event : events.plans) {
    ++cursor_.plans;
    plans.push_back(planJson(event));
  }
  json& tests = message["port_tests"] = json::array();
  for (const comm::PortTestEvent& event : events.portTests) {
    ++cursor_.portTests;
    tests.push_back(testJson(event));
  }
  fabric::FabricCounters counters = before_;
  add(counters, events.counters);
  message["counters"] = {
      {"chunks_sent", counters.chunksSent},
      {"chunks_arrived", counters.chunksArrived},
      {"chunks_resent", counters.chunksResent},
      {"chunks_duplicate", counters.chunksDuplicate},
      {"bytes_sent", counters.bytesSent},
      {"bytes_arrived", counters.bytesArrived},
      {"bytes_resent", counters.bytesResent},
      {"bytes_duplicate", counters.bytesDuplicate},
      {"chunks_copied", counters.chunksCopied},
      {"bytes_copied", counters.bytesCopied},
      {"failovers", counters.failovers},
      {"failbacks", counters.failbacks},
      {"suspicions", counters.suspicions},
      {"stalls", counters.stalls},
      {"degradations", counters.degradations},
      {"probes_sent", counters.probesSent},
      {"datagrams_sent", counters.datagramsSent},
      {"longest_receive_stall_us",
       duration_cast<std::chrono::microseconds>(counters.longestReceiveStall).count()},
      {"datagrams_rejected", counters.datagramsRejected},
      {"connections_rejected", counters.connectionsRejected},
      {"events_forgotten", forgotten_},
      {"ranks_knowing_nic_distances", counters.nicDistancesKnown ? 1 : 0}};
}

void addTrace(json& message, const telemetry::Trace& trace) {
  message["counters"]["telemetry_events"] = trace.made;
  message["counters"]["telemetry_dropped"] = trace.dropped;
  if (trace.events.empty()) return;
  json kind = json::array(), peer = json::array(), rail = json::array(), at = json::array();
  json length = json::array(), bytes = json::array(), number = json::array();
  for (const telemetry::Event& event : trace.events) {
    kind.push_back(telemetry::nameOf(event.kind));
    peer.push_back(event.peer);
    rail.push_back(event.rail);
    at.push_back(toJson(event.at));
    length.push_back(event.length.count());
    bytes.push_back(event.bytes);
    number.push_back(event.number);
  }
  message["trace"] = {{"kind", std::move(kind)},     {"peer", std::move(peer)},
                      {"rail", std::move(rail)},     {"at", std::move(at)},
                      {"length", std::move(length)}, {"bytes", std::move(bytes)},
                      {"number", std::move(number)}};
}

}  // namespace faultline::workload
