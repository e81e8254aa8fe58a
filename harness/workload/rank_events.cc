#include "harness/workload/rank_events.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/clock.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::workload {
namespace {

using comm::CommunicatorEvents;

/// The link says "not yet" by the epoch of the clock.
std::optional<TimePoint> momentOrNone(TimePoint moment) {
  return moment == TimePoint{} ? std::nullopt : std::optional(moment);
}

constexpr double kMicrosecondsPerSecond = 1e6;

/// Seconds of a model; infinite: it has none.
std::optional<double> msIfKnown(double seconds) {
  return std::isfinite(seconds) ? std::optional(seconds * kMillisecondsPerSecond) : std::nullopt;
}

wire::Plan planOf(const comm::PlanEvent& event) {
  const plan::Plan& plan = event.plan;
  wire::Plan told{.at = event.when,
                  .communicator = event.communicator,
                  .epoch = event.epoch,
                  .operation = event.operation,
                  .elements = event.elements,
                  .bytes = event.elements * event.elementSize,
                  .collective = std::string(schedule::collectiveName(event.collective)),
                  .algorithm = plan.algorithm,
                  .segments = plan.segments,
                  .tried = event.tried,
                  .predictedMs = msIfKnown(plan.predicted),
                  .ringMs = msIfKnown(plan.ring),
                  .boundMs = msIfKnown(plan.bound),
                  .hash = fmt::format("{:016x}", plan.hash),
                  .latencyUs = event.link.latency * kMicrosecondsPerSecond,
                  .perMessageUs = event.link.perMessage * kMicrosecondsPerSecond,
                  .bandwidth = event.link.bandwidth};
  for (const plan::Health& port : event.health) {
    told.health.push_back({plan::fraction(port.send), plan::fraction(port.receive)});
  }
  return told;
}

wire::PortTest testOf(const comm::PortTestEvent& event) {
  const comm::TestReport& report = event.report;
  wire::PortTest told{.at = report.begun,
                      .communicator = event.communicator,
                      .operation = report.operation,
                      .took = report.took,
                      .rounds = report.rounds,
                      .lateness = report.lateness,
                      .complete = report.complete,
                      .changed = report.changed};
  for (const plan::PortTest::Path& path : report.slowPaths) {
    told.slowPaths.push_back(
        {.from = static_cast<int>(path.from), .to = static_cast<int>(path.to), .share = path.rate});
  }
  return told;
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

wire::Network EventReport::takeNew(const CommunicatorEvents& events, bool last) {
  const auto rankOf = [this](int peer) { return ranks_.empty() ? peer : ranks_[peer]; };
  wire::Network network;
  forgotten_ += events.first.failovers - cursor_.failovers;
  forgotten_ += events.first.failbacks - cursor_.failbacks;
  forgotten_ += events.first.plans - cursor_.plans;
  forgotten_ += events.first.portTests - cursor_.portTests;
  forgotten_ += events.first.degradations - cursor_.degradations;
  cursor_ = events.first;
  for (const auto& [peer, failover] : events.failovers) {
    if (!last && beingExplained(failover)) break;
    ++cursor_.failovers;
    network.failovers.push_back(
        {.peer = rankOf(peer),
         .rail = failover.rail,
         .cause = std::string(channel::causeName(failover.cause)),
         .where = std::string(channel::whereName(failover.where)),
         .deadDirection = std::string(channel::directionName(failover.deadDirection)),
         .stalled = failover.stalled,
         .told = failover.told,
         .sending = failover.sending,
         .receiving = failover.receiving,
         .detected = momentOrNone(failover.detected),
         .fenced = momentOrNone(failover.fenced),
         .redelivered = momentOrNone(failover.redelivered),
         .resentBytes = static_cast<Bytes>(failover.resentBytes),
         .duplicateBytes = static_cast<Bytes>(failover.duplicateBytes),
         .receiveStall = failover.receiveStall});
  }
  for (const auto& event : events.failbacks) {
    ++cursor_.failbacks;
    network.failbacks.push_back({rankOf(event.peer), event.rail, event.when});
  }
  for (const auto& [peer, change] : events.degradations) {
    ++cursor_.degradations;
    network.degradations.push_back({.peer = rankOf(peer),
                                    .rail = change.rail,
                                    .degraded = change.degraded,
                                    .share = change.share,
                                    .at = change.when});
  }
  for (const comm::PlanEvent& event : events.plans) {
    ++cursor_.plans;
    network.plans.push_back(planOf(event));
  }
  for (const comm::PortTestEvent& event : events.portTests) {
    ++cursor_.portTests;
    network.portTests.push_back(testOf(event));
  }
  fabric::FabricCounters counters = before_;
  add(counters, events.counters);
  const auto count = [&network](const char* name, std::uint64_t value) {
    network.counters[name] = static_cast<std::int64_t>(value);
  };
  count("chunks_sent", counters.chunksSent);
  count("chunks_arrived", counters.chunksArrived);
  count("chunks_resent", counters.chunksResent);
  count("chunks_duplicate", counters.chunksDuplicate);
  count("bytes_sent", counters.bytesSent);
  count("bytes_arrived", counters.bytesArrived);
  count("bytes_resent", counters.bytesResent);
  count("bytes_duplicate", counters.bytesDuplicate);
  count("chunks_copied", counters.chunksCopied);
  count("bytes_copied", counters.bytesCopied);
  count("failovers", counters.failovers);
  count("failbacks", counters.failbacks);
  count("suspicions", counters.suspicions);
  count("stalls", counters.stalls);
  count("degradations", counters.degradations);
  count("probes_sent", counters.probesSent);
  count("datagrams_sent", counters.datagramsSent);
  count("longest_receive_stall_us",
        duration_cast<std::chrono::microseconds>(counters.longestReceiveStall).count());
  count("datagrams_rejected", counters.datagramsRejected);
  count("connections_rejected", counters.connectionsRejected);
  count("events_forgotten", forgotten_);
  count("ranks_knowing_nic_distances", counters.nicDistancesKnown ? 1 : 0);
  return network;
}

void addTrace(wire::Network& network, const telemetry::Trace& trace) {
  network.counters["telemetry_events"] = static_cast<std::int64_t>(trace.made);
  network.counters["telemetry_dropped"] = static_cast<std::int64_t>(trace.dropped);
  if (trace.events.empty()) return;
  wire::Trace& told = network.trace.emplace();
  for (const telemetry::Event& event : trace.events) {
    told.kind.emplace_back(telemetry::nameOf(event.kind));
    told.peer.push_back(event.peer);
    told.rail.push_back(event.rail);
    told.at.push_back(event.at);
    told.length.push_back(event.length);
    told.bytes.push_back(static_cast<std::int64_t>(event.bytes));
    told.number.push_back(event.number);
  }
}

}  // namespace faultline::workload
