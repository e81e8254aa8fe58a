#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/units.h"
#include "wire/message.h"

/// What ranks tell of the network: a part of several of their messages (rank.h). Moments are those
/// of the monotonic clock, ranks those of the whole job.
namespace faultline::wire {

/// One rail to one peer was given up.
struct Failover {
  int peer = 0;
  int rail = 0;
  std::string cause{};          ///< channel::causeName
  std::string where{};          ///< channel::whereName
  std::string deadDirection{};  ///< channel::directionName
  bool stalled = false;         ///< found by data that stood still
  bool told = false;            ///< the peer said so first
  bool sending = false;         ///< it carried something to the peer
  bool receiving = false;       ///< or from it
  std::optional<TimePoint> detected{}, fenced{}, redelivered{};  ///< none: it never came to that
  Bytes resentBytes = 0;
  Bytes duplicateBytes = 0;
  Duration receiveStall{};  ///< of a receive that had begun
};

struct Failback {
  int peer = 0;
  int rail = 0;
  TimePoint at{};
};

/// A rail became slow, or is no longer.
struct Degradation {
  int peer = 0;
  int rail = 0;
  bool degraded = false;
  double share = 0;  ///< of its former rate
  TimePoint at{};
};

/// What a plan takes for granted of a rank's ports: shares of the full rate.
struct Health {
  double send = 0;
  double receive = 0;
};

/// A collective is done in another way from an operation on.
struct Plan {
  TimePoint at{};
  std::uint32_t communicator = 0;
  std::uint64_t epoch = 0;      ///< of the health that it is made for
  std::uint64_t operation = 0;  ///< the first
  std::int64_t elements = 0;
  Bytes bytes = 0;
  std::string collective{};
  std::string algorithm{};
  int segments = 1;
  bool tried = false;  ///< to see how fast it is
  std::vector<Health> health{};
  // None: it is not known.
  std::optional<double> predictedMs{};
  std::optional<double> ringMs{};   ///< what a ring would take
  std::optional<double> boundMs{};  ///< what nothing can be below
  std::string hash{};               ///< the same on all ranks
  double latencyUs = 0;
  double perMessageUs = 0;
  double bandwidth = 0;  ///< bytes per second
};

struct SlowPath {
  int from = 0;
  int to = 0;
  double share = 0;
};

/// A test of all ports, by all ranks together.
struct PortTest {
  TimePoint at{};
  std::uint32_t communicator = 0;
  std::uint64_t operation = 0;
  Duration took{};
  int rounds = 0;
  std::optional<double> lateness{};
  bool complete = false;
  bool changed = false;  ///< what is known of the ports
  std::vector<SlowPath> slowPaths{};
};

/// Recorded events, one list for each field (reports::Telemetry).
struct Trace {
  std::vector<std::string> kind{};
  std::vector<int> peer{};
  std::vector<int> rail{};  ///< -1: of no rail
  std::vector<TimePoint> at{};
  std::vector<Duration> length{};
  std::vector<std::int64_t> bytes{};
  std::vector<std::uint64_t> number{};
};

/// What has happened on the network since the last message that told of it.
struct Network {
  std::vector<Failover> failovers{};
  std::vector<Failback> failbacks{};
  std::vector<Degradation> degradations{};
  std::vector<Plan> plans{};
  std::vector<PortTest> portTests{};
  std::map<std::string, std::int64_t> counters{};  ///< from the beginning on
  std::optional<Trace> trace{};
};

// --- fields ---

// What there are indexes of: the receiver knows how many (checkIndexes).
inline constexpr NumberRange kOfRanks{.least = 0, .indexOf = "ranks"};
inline constexpr NumberRange kOfRails{.least = 0, .indexOf = "rails"};
inline constexpr NumberRange kOfRanksOrNone{.least = -1, .indexOf = "ranks"};
inline constexpr NumberRange kOfRailsOrNone{.least = -1, .indexOf = "rails"};

template <typename V>
void visitFields(V& v, Of<Failover> auto& failover) {
  v.required("peer", failover.peer, kOfRanks);
  v.required("rail", failover.rail, kOfRails);
  v.required("cause", failover.cause);
  v.required("where", failover.where);
  v.required("dead_direction", failover.deadDirection);
  v.required("stalled", failover.stalled);
  v.required("told", failover.told);
  v.required("sending", failover.sending);
  v.required("receiving", failover.receiving);
  v.required("detected", failover.detected, kNotNegative);
  v.required("fenced", failover.fenced, kNotNegative);
  v.required("redelivered", failover.redelivered, kNotNegative);
  v.required("resent_bytes", failover.resentBytes, kNotNegative);
  v.required("duplicate_bytes", failover.duplicateBytes, kNotNegative);
  v.required("receive_stall", failover.receiveStall, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Failback> auto& failback) {
  v.required("peer", failback.peer, kOfRanks);
  v.required("rail", failback.rail, kOfRails);
  v.required("at", failback.at, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Degradation> auto& change) {
  v.required("peer", change.peer, kOfRanks);
  v.required("rail", change.rail, kOfRails);
  v.required("degraded", change.degraded);
  v.required("share", change.share, kNotNegative);
  v.required("at", change.at, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Health> auto& health) {
  v.required("send", health.send, kShare);
  v.required("receive", health.receive, kShare);
}

template <typename V>
void visitFields(V& v, Of<Plan> auto& plan) {
  v.required("at", plan.at, kNotNegative);
  v.required("communicator", plan.communicator);
  v.required("epoch", plan.epoch);
  v.required("operation", plan.operation);
  v.required("elements", plan.elements, kNotNegative);
  v.required("bytes", plan.bytes, kNotNegative);
  v.required("collective", plan.collective);
  v.required("algorithm", plan.algorithm);
  v.required("segments", plan.segments, kPositive);
  v.required("tried", plan.tried);
  v.required("health", plan.health);
  v.required("predicted_ms", plan.predictedMs, kNotNegative);
  v.required("ring_ms", plan.ringMs, kNotNegative);
  v.required("bound_ms", plan.boundMs, kNotNegative);
  v.required("hash", plan.hash);
  v.required("latency_us", plan.latencyUs, kNotNegative);
  v.required("per_message_us", plan.perMessageUs, kNotNegative);
  v.required("bandwidth", plan.bandwidth, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<SlowPath> auto& path) {
  v.required("from", path.from, kOfRanks);
  v.required("to", path.to, kOfRanks);
  v.required("share", path.share, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<PortTest> auto& test) {
  v.required("at", test.at, kNotNegative);
  v.required("communicator", test.communicator);
  v.required("operation", test.operation);
  v.required("took", test.took, kNotNegative);
  v.required("rounds", test.rounds, kNotNegative);
  v.required("lateness", test.lateness, kNotNegative);
  v.required("complete", test.complete);
  v.required("changed", test.changed);
  v.required("slow_paths", test.slowPaths);
}

template <typename V>
void visitFields(V& v, Of<Trace> auto& trace) {
  v.required("kind", trace.kind);
  v.required("peer", trace.peer, kOfRanksOrNone);
  v.required("rail", trace.rail, kOfRailsOrNone);
  v.required("at", trace.at, kNotNegative);
  v.required("length", trace.length, kNotNegative);
  v.required("bytes", trace.bytes, kNotNegative);
  v.required("number", trace.number);
}

/// All lists are of the same events.
Status checkFields(const Trace& trace);

template <typename V>
void visitFields(V& v, Of<Network> auto& network) {
  v.required("failovers", network.failovers);
  v.required("failbacks", network.failbacks);
  v.required("degradations", network.degradations);
  v.required("plans", network.plans);
  v.required("port_tests", network.portTests);
  v.required("counters", network.counters, kNotNegative);
  v.required("trace", network.trace);
}

}  // namespace faultline::wire
