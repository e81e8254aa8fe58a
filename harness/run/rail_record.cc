#include "harness/run/rail_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "harness/run/goodput.h"
#include "harness/run/message.h"
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

}  // namespace

reports::Failover RailRecord::failoverOf(int rank, const json& message, TimePoint t0,
                                         const DamageLookup& damage) const {
  reports::Failover failover;
  failover.rank = rank;
  failover.peer = field(message, "peer", 0);
  failover.rail = field(message, "rail", 0);
  failover.cause = field(message, "cause", std::string());
  failover.where = field(message, "where", std::string("unknown"));
  failover.dead_direction = field(message, "dead_direction", std::string("unknown"));
  failover.verdict =
      evidenceOf(failover.cause, field(message, "told", false), field(message, "stalled", false));
  failover.resent_bytes = field(message, "resent_bytes", std::int64_t{0});
  failover.duplicate_bytes = field(message, "duplicate_bytes", std::int64_t{0});
  const bool sending = field(message, "sending", false);
  const bool receiving = field(message, "receiving", false);
  failover.direction = sending && receiving ? "both" : sending ? "send" : "recv";
  const std::optional<TimePoint> detected = optionalTime(message, "detected");
  const std::optional<TimePoint> fenced = optionalTime(message, "fenced");
  const std::optional<TimePoint> redelivered = optionalTime(message, "redelivered");
  if (detected) failover.detected_ms = since(t0, *detected);
  if (fenced) failover.fenced_ms = since(t0, *fenced);
  if (redelivered) failover.resumed_ms = since(t0, *redelivered);

  std::optional<Damage> fault;
  const int perNode = cluster_.ranksPerNode;
  if (damage && detected) {
    fault = damage(*detected, failover.rail, rank / perNode, failover.peer / perNode);
  }
  if (fault) {
    failover.fault_ms = since(t0, fault->before);
    failover.fault_within_ms = toMilliseconds(fault->after - fault->before);
  }
  // The larger of: fault until the last outstanding chunk was delivered elsewhere, less the time
  // that those bytes need on the rails that are left; longest stall of a receive that had begun.
  double pause = field(message, "receive_stall_ms", 0.0);
  // Where it is not known when the fault struck, from when it surely had.
  const std::optional<TimePoint> struck =
      fault ? std::optional(failover.timed() ? fault->before : fault->after) : std::nullopt;
  const std::optional<TimePoint> from = struck ? struck : detected;
  if (from && redelivered) {
    int left = 0;
    for (int rail = 0; rail < cluster_.rails; ++rail) {
      const bool dead =
          rail == failover.rail ||
          (damage && damage(*redelivered, rail, rank / perNode, failover.peer / perNode));
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

void RailRecord::told(int rank, const json& message, TimePoint t0, const DamageLookup& damage) {
  for (const json& failover : field(message, "failovers", json::array())) {
    // A connection that carried nothing has not paused; it would only flatter the percentiles.
    const bool idle = !field(failover, "sending", false) && !field(failover, "receiving", false);
    (idle ? idle_ : failovers_).push_back(failoverOf(rank, failover, t0, damage));
  }
  for (const json& failback : field(message, "failbacks", json::array())) {
    reports::Failback& entry = failbacks_.emplace_back();
    entry.rank = rank;
    entry.peer = field(failback, "peer", 0);
    entry.rail = field(failback, "rail", 0);
    entry.at_ms = since(t0, momentOf(failback, "at"));
  }
  for (const json& change : field(message, "degradations", json::array())) {
    addDegradation(rank, change, t0);
  }
  if (const auto trace = message.find("trace"); trace != message.end()) addTrace(rank, *trace, t0);
}

/// Each is told twice: when it begins, and when it is over.
void RailRecord::addDegradation(int rank, const json& change, TimePoint t0) {
  const int peer = field(change, "peer", 0);
  const int rail = field(change, "rail", 0);
  const double at = since(t0, momentOf(change, "at"));
  if (field(change, "degraded", false)) {
    degradations_.push_back({.rank = rank,
                             .rail = rail,
                             .peer = peer,
                             .at_ms = at,
                             .until_ms = {},
                             .share = field(change, "share", 0.0)});
    return;
  }
  const auto latest =
      std::find_if(degradations_.rbegin(), degradations_.rend(), [&](const auto& known) {
        return known.rank == rank && known.peer == peer && known.rail == rail;
      });
  if (latest != degradations_.rend()) latest->until_ms = at;
}

/// A failover is over with the first failback of its rail after it, which may be told later.
void RailRecord::matchFailbacks() {
  for (reports::Failover& failover : failovers_) {
    for (const reports::Failback& failback : failbacks_) {
      const bool its = failback.rank == failover.rank && failback.peer == failover.peer &&
                       failback.rail == failover.rail;
      if (!its || !failover.detected_ms || failback.at_ms < *failover.detected_ms) continue;
      failover.restored_ms =
          std::min(failover.restored_ms.value_or(failback.at_ms), failback.at_ms);
    }
  }
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

void RailRecord::finish(reports::Run& run) {
  matchFailbacks();
  if (!idle_.empty()) {
    run.counters["failovers_idle"] += static_cast<std::int64_t>(idle_.size());
  }
  run.failovers = std::move(failovers_);
  run.idle_failovers = std::move(idle_);
  run.failbacks = std::move(failbacks_);
  run.degradations = std::move(degradations_);
  run.telemetry = std::move(telemetry_);
}

}  // namespace faultline::run
