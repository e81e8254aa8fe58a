#include "injector/verbs/armed_fault.h"

#include <algorithm>
#include <cerrno>

#include "base/random.h"

namespace faultline::injector::verbs {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // counters: nothing is published through them

/// Uniform in [0, 1), the index-th of this seed.
double draw(std::uint64_t seed, std::uint64_t index) {
  return Random(Random::mix(seed) ^ Random::mix(index + 1)).unit();
}

}  // namespace

bool ArmedFault::strikes(std::uint64_t bytes) {
  const std::uint64_t index = operations_.fetch_add(1, kRelaxed);
  const std::uint64_t before = bytes_.fetch_add(bytes, kRelaxed);
  const Trigger& trigger = rule_.trigger;
  if (index < trigger.afterOperations || before < trigger.afterBytes) return false;
  if (trigger.probability < 1 && draw(trigger.seed, index) >= trigger.probability) return false;
  return takeBudget();
}

bool ArmedFault::takeBudget() {
  std::uint64_t used = struck_.load(kRelaxed);
  do {
    if (rule_.trigger.budget != 0 && used >= rule_.trigger.budget) return false;
  } while (!struck_.compare_exchange_weak(used, used + 1, kRelaxed));
  return true;
}

std::int64_t ArmedFault::carryingTime(std::uint64_t bytes) const {
  constexpr double kBits = 8;
  constexpr double kNanoseconds = 1e9;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * kBits * kNanoseconds /
                                   static_cast<double>(rule_.bitsPerSecond));
}

TimePoint ArmedFault::carried(TimePoint from, std::uint64_t bytes) {
  const std::int64_t takes = carryingTime(bytes);
  std::int64_t free = link_free_.load(kRelaxed);
  std::int64_t until = 0;
  do {
    until = std::max<std::int64_t>(free, from.time_since_epoch().count()) + takes;
  } while (!link_free_.compare_exchange_weak(free, until, kRelaxed));
  return TimePoint(Duration(until));
}

void ArmedFault::notCarried(TimePoint now, TimePoint due, std::uint64_t bytes) {
  const std::int64_t at = now.time_since_epoch().count();
  const std::int64_t to_come = std::min<std::int64_t>((due - now).count(), carryingTime(bytes));
  std::int64_t free = link_free_.load(kRelaxed);
  // What has gone by is not given back, neither of these bytes nor of others.
  while (to_come > 0 && free > at &&
         !link_free_.compare_exchange_weak(free, std::max(free - to_come, at), kRelaxed)) {
  }
}

void ArmedFault::postFailed(int error) {
  (error == ENOMEM ? full_queues_ : genuine_posts_).fetch_add(1, kRelaxed);
}

void ArmedFault::released(std::uint64_t bytes, Duration after) {
  const auto waited = static_cast<std::uint64_t>(std::max<Duration::rep>(after.count(), 1));
  held_.fetch_sub(1, kRelaxed);
  released_.fetch_add(1, kRelaxed);
  released_bytes_.fetch_add(bytes, kRelaxed);
  held_nanoseconds_.fetch_add(waited, kRelaxed);
  std::uint64_t shortest = shortest_.load(kRelaxed);
  while ((shortest == 0 || waited < shortest) &&
         !shortest_.compare_exchange_weak(shortest, waited, kRelaxed)) {
  }
}

Counters ArmedFault::counters() const {
  Counters counters;
  counters.operations = operations_.load(kRelaxed);
  counters.bytes = bytes_.load(kRelaxed);
  counters.struck = struck_.load(kRelaxed);
  counters.happened = happened_.load(kRelaxed);
  counters.held = held_.load(kRelaxed);
  counters.released = released_.load(kRelaxed);
  counters.dropped = dropped_.load(kRelaxed);
  counters.releasedBytes = released_bytes_.load(kRelaxed);
  counters.heldNanoseconds = held_nanoseconds_.load(kRelaxed);
  counters.shortestNanoseconds = shortest_.load(kRelaxed);
  counters.genuineErrors = genuine_.load(kRelaxed);
  counters.flushErrors = flush_.load(kRelaxed);
  counters.genuinePostErrors = genuine_posts_.load(kRelaxed);
  counters.fullQueues = full_queues_.load(kRelaxed);
  counters.failures = failures_.load(kRelaxed);
  counters.inErrorBefore = in_error_before_.load(kRelaxed);
  counters.uncovered = uncovered_.load(kRelaxed);
  return counters;
}

}  // namespace faultline::injector::verbs
