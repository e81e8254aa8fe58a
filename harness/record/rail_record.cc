#include "harness/record/rail_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "harness/record/goodput.h"
#include "harness/record/message.h"
#include "harness/scenario/verdict_words.h"

namespace faultline::run {
namespace {

using nlohmann::json;

double since(TimePoint t0, TimePoint when) { return toMilliseconds(when - t0); }

std::optional<TimePoint> optionalTime(const json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end() || found->is_null()) return std::nullopt;
  return TimePoint(Duration(found->get<std::int64_t>()));
}

std::string_view evidenceOf(const std::string& cause, bool told, bool stalled) {
  namespace verdict = scenario::verdict;
  if (told || cause == "remote_nic") return verdict::kToldByPeer;
  if (stalled) return verdict::kBackOff;
  if (cause == "local_nic") return verdict::kPortEvent;
  if (cause == "path") return verdict::kProbes;
  return cause == "protocol" ? verdict::kProtocol : verdict::kReset;
}

/// A failover is over with the first failback of its rail after it, which may be told later.
void matchFailbacks(reports::Run& run) {
  for (reports::Failover& failover : run.failovers) {
    for (const reports::Failback& failback : run.failbacks) {
      const bool its = failback.rank == failover.rank && failback.peer == failover.peer &&
                       failback.rail == failover.rail;
      if (!its || !failover.detected_ms || failback.at_ms < *failover.detected_ms) continue;
      failover.restored_ms =
          std::min(failover.restored_ms.value_or(failback.at_ms), failback.at_ms);
    }
  }
}

}  // namespace

void RailRecord::addFailover(int rank, const json& message) {
  const bool sending = field(message, "sending", false);
  const bool receiving = field(message, "receiving", false);
  Failover& told = failovers_.emplace_back();
  told.idle = !sending && !receiving;
  told.stallMs = field(message, "receive_stall_ms", 0.0);
  told.detected = optionalTime(message, "detected");
  told.fenced = optionalTime(message, "fenced");
  told.redelivered = optionalTime(message, "redelivered");
  reports::Failover& entry = told.entry;
  entry.rank = rank;
  entry.peer = field(message, "peer", 0);
  entry.rail = field(message, "rail", 0);
  entry.cause = field(message, "cause", std::string());
  entry.where = field(message, "where", std::string("unknown"));
  entry.dead_direction = field(message, "dead_direction", std::string("unknown"));
  entry.verdict =
      evidenceOf(entry.cause, field(message, "told", false), field(message, "stalled", false));
  entry.resent_bytes = field(message, "resent_bytes", std::int64_t{0});
  entry.duplicate_bytes = field(message, "duplicate_bytes", std::int64_t{0});
  entry.direction = sending && receiving ? "both" : sending ? "send" : "recv";
}

reports::Failover RailRecord::explained(const Failover& told, TimePoint t0,
                                        const FaultChanges& changes) const {
  reports::Failover failover = told.entry;
  const auto& [entry, idle, stallMs, detected, fenced, redelivered] = told;
  if (detected) failover.detected_ms = since(t0, *detected);
  if (fenced) failover.fenced_ms = since(t0, *fenced);
  if (redelivered) failover.resumed_ms = since(t0, *redelivered);

  const int node = failover.rank / cluster_.ranksPerNode;
  const int peer = failover.peer / cluster_.ranksPerNode;
  std::optional<Damage> fault;
  if (detected) fault = changes.behind(*detected, failover.rail, node, peer);
  if (fault) {
    failover.fault_ms = since(t0, fault->before);
    failover.fault_within_ms = toMilliseconds(fault->after - fault->before);
  }
  // The larger of: fault until the last outstanding chunk was delivered elsewhere, less the time
  // that those bytes need on the rails that are left; longest stall of a receive that had begun.
  double pause = stallMs;
  // Where it is not known when the fault struck, from when it surely had.
  const std::optional<TimePoint> struck =
      fault ? std::optional(failover.timed() ? fault->before : fault->after) : std::nullopt;
  const std::optional<TimePoint> from = struck ? struck : detected;
  if (from && redelivered) {
    int left = 0;
    for (int rail = 0; rail < cluster_.rails; ++rail) {
      const bool dead =
          rail == failover.rail || changes.behind(*redelivered, rail, node, peer).has_value();
      left += dead ? 0 : 1;
    }
    left = std::max(1, left);
    const double moving =
        static_cast<double>(failover.resent_bytes) / payloadPerMs(cluster_.railRate, left);
    pause = std::max(pause, toMilliseconds(*redelivered - *from) - moving);
  }
  failover.pause_ms = pause;
  return failover;
}

void RailRecord::told(int rank, const json& message, TimePoint t0) {
  for (const json& failover : field(message, "failovers", json::array())) {
    addFailover(rank, failover);
  }
  for (const json& failback : field(message, "failbacks", json::array())) {
    failbacks_.push_back({.entry = {.rank = rank,
                                    .rail = field(failback, "rail", 0),
                                    .peer = field(failback, "peer", 0),
                                    .at_ms = 0},
                          .at = momentOf(failback, "at")});
  }
  for (const json& change : field(message, "degradations", json::array())) {
    addDegradation(rank, change);
  }
  if (const auto trace = message.find("trace"); trace != message.end()) addTrace(rank, *trace, t0);
}

/// Each is told twice: when it begins, and when it is over.
void RailRecord::addDegradation(int rank, const json& change) {
  const int peer = field(change, "peer", 0);
  const int rail = field(change, "rail", 0);
  const TimePoint at = momentOf(change, "at");
  if (field(change, "degraded", false)) {
    degradations_.push_back({.entry = {.rank = rank,
                                       .rail = rail,
                                       .peer = peer,
                                       .at_ms = 0,
                                       .until_ms = {},
                                       .share = field(change, "share", 0.0)},
                             .at = at,
                             .until = {}});
    return;
  }
  const auto latest =
      std::find_if(degradations_.rbegin(), degradations_.rend(), [&](const Degradation& known) {
        return known.entry.rank == rank && known.entry.peer == peer && known.entry.rail == rail;
      });
  if (latest != degradations_.rend()) latest->until = at;
}

void RailRecord::addTrace(int rank, const json& trace, TimePoint t0) {
  reports::Telemetry& all = telemetry_;
  const auto append = [&trace]<typename T>(const char* name, std::vector<T>& to) {
    const auto values = field(trace, name, std::vector<T>());
    to.insert(to.end(), values.begin(), values.end());
  };
  append("kind", all.kind);
  append("peer", all.peer);
  append("rail", all.rail);
  append("bytes", all.bytes);
  append("number", all.number);
  // To the microsecond: what is finer only makes files longer. Begin and end are rounded alike, so
  // that what follows another one does not overlap it.
  const auto rounded = [](double ms) { return std::round(ms * 1000) / 1000; };
  const auto at = field(trace, "at", std::vector<std::int64_t>());
  const auto length = field(trace, "length", std::vector<std::int64_t>());
  for (std::size_t i = 0; i < std::min(at.size(), length.size()); ++i) {
    const double begin = rounded(since(t0, TimePoint(Duration(at[i]))));
    const double end = rounded(since(t0, TimePoint(Duration(at[i] + length[i]))));
    all.at_ms.push_back(begin);
    all.ms.push_back(rounded(end - begin));
  }
  all.rank.resize(all.kind.size(), rank);
}

void RailRecord::finish(TimePoint t0, const FaultChanges& changes, reports::Run& run) {
  for (const Failover& told : failovers_) {
    // A connection that carried nothing has not paused; it would only flatter the percentiles.
    (told.idle ? run.idle_failovers : run.failovers).push_back(explained(told, t0, changes));
  }
  for (Failback& failback : failbacks_) {
    failback.entry.at_ms = since(t0, failback.at);
    run.failbacks.push_back(failback.entry);
  }
  for (Degradation& degradation : degradations_) {
    degradation.entry.at_ms = since(t0, degradation.at);
    if (degradation.until) degradation.entry.until_ms = since(t0, *degradation.until);
    run.degradations.push_back(degradation.entry);
  }
  matchFailbacks(run);
  if (!run.idle_failovers.empty()) {
    run.counters["failovers_idle"] += static_cast<std::int64_t>(run.idle_failovers.size());
  }
  run.telemetry = std::move(telemetry_);
}

}  // namespace faultline::run
