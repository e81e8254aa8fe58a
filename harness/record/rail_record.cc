#include "harness/record/rail_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/record/goodput.h"
#include "harness/scenario/verdict_words.h"

namespace faultline::run {
namespace {

double since(TimePoint t0, TimePoint when) { return toMilliseconds(when - t0); }

std::string_view evidenceOf(const std::string& cause, bool told, bool stalled) {
  namespace verdict = scenario::verdict;
  if (told || cause == "remote_nic") return verdict::kToldByPeer;
  if (stalled) return verdict::kBackOff;
  if (cause == "local_nic") return verdict::kPortEvent;
  if (cause == "path") return verdict::kProbes;
  return cause == "protocol" ? verdict::kProtocol : verdict::kReset;
}

/// Where an entry stands among those of its kind.
template <typename Entry>
std::tuple<TimePoint, int, int, int> placeOf(TimePoint when, const Entry& entry) {
  return {when, entry.rank, entry.peer, entry.rail};
}

template <typename Values>
void append(const Values& values, Values& to) {
  to.insert(to.end(), values.begin(), values.end());
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

void RailRecord::addFailover(int rank, const wire::Failover& told) {
  Failover& kept = failovers_.emplace_back();
  kept.idle = !told.sending && !told.receiving;
  kept.stallMs = toMilliseconds(told.receiveStall);
  kept.detected = told.detected;
  kept.fenced = told.fenced;
  kept.redelivered = told.redelivered;
  reports::Failover& entry = kept.entry;
  entry.rank = rank;
  entry.peer = told.peer;
  entry.rail = told.rail;
  entry.cause = told.cause;
  entry.where = told.where;
  entry.dead_direction = told.deadDirection;
  entry.verdict = evidenceOf(told.cause, told.told, told.stalled);
  entry.resent_bytes = told.resentBytes;
  entry.duplicate_bytes = told.duplicateBytes;
  entry.direction = told.sending && told.receiving ? "both" : told.sending ? "send" : "recv";
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

void RailRecord::told(int rank, const wire::Network& network, TimePoint t0) {
  for (const wire::Failover& failover : network.failovers) addFailover(rank, failover);
  for (const wire::Failback& failback : network.failbacks) {
    failbacks_.push_back(
        {.entry = {.rank = rank, .rail = failback.rail, .peer = failback.peer, .at_ms = 0},
         .at = failback.at});
  }
  for (const wire::Degradation& change : network.degradations) addDegradation(rank, change);
  if (network.trace) addTrace(rank, *network.trace, t0);
}

/// Each is told twice: when it begins, and when it is over.
void RailRecord::addDegradation(int rank, const wire::Degradation& change) {
  if (change.degraded) {
    degradations_.push_back({.entry = {.rank = rank,
                                       .rail = change.rail,
                                       .peer = change.peer,
                                       .at_ms = 0,
                                       .until_ms = {},
                                       .share = change.share},
                             .at = change.at,
                             .until = {}});
    return;
  }
  const auto latest =
      std::find_if(degradations_.rbegin(), degradations_.rend(), [&](const Degradation& known) {
        return known.entry.rank == rank && known.entry.peer == change.peer &&
               known.entry.rail == change.rail;
      });
  if (latest != degradations_.rend()) latest->until = change.at;
}

void RailRecord::addTrace(int rank, const wire::Trace& trace, TimePoint t0) {
  reports::Telemetry& all = telemetry_[rank];
  append(trace.kind, all.kind);
  append(trace.peer, all.peer);
  append(trace.rail, all.rail);
  append(trace.bytes, all.bytes);
  append(trace.number, all.number);
  // To the microsecond: what is finer only makes files longer. Begin and end are rounded alike, so
  // that what follows another one does not overlap it.
  const auto rounded = [](double ms) { return std::round(ms * 1000) / 1000; };
  for (std::size_t i = 0; i < trace.at.size(); ++i) {
    const double begin = rounded(since(t0, trace.at[i]));
    const double end = rounded(since(t0, trace.at[i] + trace.length[i]));
    all.at_ms.push_back(begin);
    all.ms.push_back(rounded(end - begin));
  }
  all.rank.resize(all.kind.size(), rank);
}

void RailRecord::finish(TimePoint t0, const FaultChanges& changes, reports::Run& run) {
  // By when it was, and not by when it was told.
  std::ranges::stable_sort(failovers_, {}, [](const Failover& told) {
    return placeOf(told.detected.value_or(TimePoint::max()), told.entry);
  });
  const auto byTime = [](const auto& told) { return placeOf(told.at, told.entry); };
  std::ranges::stable_sort(failbacks_, {}, byTime);
  std::ranges::stable_sort(degradations_, {}, byTime);
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
  for (const auto& [rank, trace] : telemetry_) {
    append(trace.rank, run.telemetry.rank);
    append(trace.kind, run.telemetry.kind);
    append(trace.peer, run.telemetry.peer);
    append(trace.rail, run.telemetry.rail);
    append(trace.bytes, run.telemetry.bytes);
    append(trace.number, run.telemetry.number);
    append(trace.at_ms, run.telemetry.at_ms);
    append(trace.ms, run.telemetry.ms);
  }
}

}  // namespace faultline::run
