#include "resilient_ccl/comm/event_log.h"

#include <algorithm>
#include <utility>

namespace faultline::comm {
namespace {

template <typename T>
void append(std::deque<T>& list, std::uint64_t& first, T&& one) {
  list.push_back(std::move(one));
  if (list.size() <= EventLog::kMostKept) return;
  list.pop_front();
  ++first;
}

/// What `list`, which begins with number `first`, has from number `cursor` on; `begin`: where that
/// begins.
template <typename T>
std::vector<T> tail(const std::deque<T>& list, std::uint64_t first, std::uint64_t cursor,
                    std::uint64_t& begin) {
  begin = std::clamp<std::uint64_t>(cursor, first, first + list.size());
  return {list.begin() + static_cast<std::ptrdiff_t>(begin - first), list.end()};
}

}  // namespace

void EventLog::failedOver(int peer, const channel::Failover& failover) {
  append(failovers_, first_.failovers, {peer, failover});
}

void EventLog::failedBack(int peer, int rail, TimePoint when) {
  append(failbacks_, first_.failbacks, {peer, rail, when});
}

void EventLog::planned(PlanEvent plan) { append(plans_, first_.plans, std::move(plan)); }
void EventLog::tested(const PortTestEvent& test) {
  append(portTests_, first_.portTests, PortTestEvent(test));
}
void EventLog::degraded(int peer, const channel::RailDegradation& change) {
  append(degradations_, first_.degradations, {peer, change});
}

void EventLog::explained(int peer, int rail, channel::Cause cause, channel::Where where) {
  // By its own time: one whose chunks went down with a later connection, too, is reported after it.
  auto latest = failovers_.end();
  for (auto it = failovers_.begin(); it != failovers_.end(); ++it) {
    if (it->peer != peer || it->failover.rail != rail) continue;
    const bool later =
        latest == failovers_.end() || it->failover.detected >= latest->failover.detected;
    if (later) latest = it;
  }
  if (latest == failovers_.end() || latest->failover.cause != channel::Cause::kPath) return;
  latest->failover.cause = cause;
  latest->failover.where = where;
  if (cause != channel::Cause::kPath) {
    latest->failover.deadDirection = channel::DeadDirection::kUnknown;
  }
  if (cause == channel::Cause::kRemoteNic) latest->failover.told = true;
}

CommunicatorEvents EventLog::since(const EventCursor& cursor) const {
  CommunicatorEvents events;
  events.failovers = tail(failovers_, first_.failovers, cursor.failovers, events.first.failovers);
  events.failbacks = tail(failbacks_, first_.failbacks, cursor.failbacks, events.first.failbacks);
  events.plans = tail(plans_, first_.plans, cursor.plans, events.first.plans);
  events.portTests = tail(portTests_, first_.portTests, cursor.portTests, events.first.portTests);
  events.degradations =
      tail(degradations_, first_.degradations, cursor.degradations, events.first.degradations);
  events.counters = counters_;
  return events;
}

}  // namespace faultline::comm
