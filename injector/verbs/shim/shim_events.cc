// What the shim knows of the events that programs wait for (events.h).
#include <poll.h>

#include <algorithm>

#include "injector/verbs/shim/provider_ops.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

constexpr int kWhileUnacknowledged = 1;  // ms

}  // namespace

void Shim::asks(const ibv_cq* cq) {
  const Readers::Guard guard(readers_);
  if (CompletionQueue* const queue = find(cq)) queue->ask();
}

void Shim::asked(const ibv_cq* cq) {
  const Readers::Guard guard(readers_);
  if (CompletionQueue* const queue = find(cq)) queue->askedAnew.store(true);
}

void Shim::told(const ibv_cq* cq) {
  const Readers::Guard guard(readers_);
  if (CompletionQueue* const queue = find(cq)) queue->tell();
}

bool Shim::mayHold(const ibv_comp_channel& channel) {
  if (!g_armed.load(std::memory_order_acquire)) return false;
  const Lock lock(mutex_);
  return std::ranges::any_of(owned_completion_queues_, [&](const auto& entry) {
    return entry.second->channel == &channel && entry.second->held.load() != nullptr;
  });
}

std::optional<TimePoint> Shim::nextDue(const CompletionQueue& queue) {
  if (queue.asked.load() == 0 || queue.heldNow.load() == 0) return std::nullopt;
  return queue.release.load() ? TimePoint::min() : queue.firstDue.load();
}

std::optional<TimePoint> Shim::nextDue(const ibv_comp_channel& channel) {
  const Lock lock(mutex_);
  std::optional<TimePoint> first;
  for (const auto& [cq, queue] : owned_completion_queues_) {
    if (queue->channel != &channel) continue;
    if (const auto due = nextDue(*queue)) first = std::min(first.value_or(*due), *due);
  }
  return first;
}

ibv_cq* Shim::tellOfHeld(const ibv_comp_channel& channel, TimePoint at) {
  const Lock lock(mutex_);
  for (const auto& [cq, queue] : owned_completion_queues_) {
    if (queue->channel != &channel || nextDue(*queue).value_or(TimePoint::max()) > at) continue;
    if (!queue->tell()) continue;
    ++our_events_[cq];
    any_events_.store(true);
    return cq;
  }
  return nullptr;
}

void Shim::sleepsInCall(const ibv_comp_channel& channel) {
  const Lock lock(mutex_);
  for (const auto& [cq, queue] : owned_completion_queues_) {
    if (queue->channel == &channel) queue->sleepsInCall.store(true);
  }
}

unsigned int Shim::acknowledged(const ibv_cq* cq, unsigned int count) {
  if (!any_events_.load()) return 0;
  const Lock lock(mutex_);
  const auto found = our_events_.find(cq);
  if (found == our_events_.end()) return 0;
  const unsigned int ours = std::min(count, found->second);
  found->second -= ours;
  if (found->second == 0) our_events_.erase(found);
  any_events_.store(!our_events_.empty());
  return ours;
}

void Shim::awaitAcknowledgement(const ibv_cq& cq) {
  const auto waits = [&] {
    const Lock lock(mutex_);
    return our_events_.contains(&cq) &&
           std::ranges::none_of(owned_queue_pairs_, [&](const auto& entry) {
             return std::ranges::count(entry.second->completionQueues, &cq) != 0;
           });
  };
  while (any_events_.load() && waits()) ::poll(nullptr, 0, kWhileUnacknowledged);
}

}  // namespace faultline::injector::verbs::shim
