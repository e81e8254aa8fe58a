#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace faultline::injector::verbs {

/// Completions of one completion queue that are held back until they are due. Those of one queue
/// pair stay in their order; those of different ones may pass each other, as they may on the wire.
/// Allocates only when it is made. Not thread-safe. Pure.
template <typename Item>
class HeldQueue {
 public:
  struct Held {
    Item item;
    std::uint32_t queuePair = 0;
    TimePoint since{};
    TimePoint due{};
  };

  explicit HeldQueue(std::size_t capacity) { entries_.reserve(std::max<std::size_t>(capacity, 1)); }

  bool empty() const { return entries_.empty(); }
  bool full() const { return entries_.size() == entries_.capacity(); }
  std::size_t size() const { return entries_.size(); }
  /// How many more can be held.
  std::size_t room() const { return entries_.capacity() - entries_.size(); }

  /// Whether something of this queue pair is held: what comes after it must queue up.
  bool holds(std::uint32_t queue_pair) const {
    return std::ranges::any_of(entries_,
                               [&](const Held& held) { return held.queuePair == queue_pair; });
  }

  /// Not when full(). Never due before what is held of the same queue pair.
  void push(const Item& item, std::uint32_t queue_pair, TimePoint now, TimePoint due) {
    for (auto held = entries_.rbegin(); held != entries_.rend(); ++held) {
      if (held->queuePair != queue_pair) continue;
      due = std::max(due, held->due);
      break;
    }
    entries_.push_back({item, queue_pair, now, due});
  }

  /// Everything is due now.
  void releaseAll() {
    for (Held& held : entries_) held.due = TimePoint::min();
  }

  /// Calls `sink(held)` for at most `most` that are due, oldest first, and forgets them; returns
  /// how many.
  template <typename Sink>
  std::size_t take(TimePoint now, std::size_t most, Sink sink) {
    std::size_t taken = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (taken < most && entries_[i].due <= now) {
        sink(entries_[i]);
        ++taken;
      } else {
        if (kept != i) entries_[kept] = entries_[i];
        ++kept;
      }
    }
    entries_.resize(kept);
    return taken;
  }

  /// Calls `sink(held)` for all of one queue pair and forgets them.
  template <typename Sink>
  void drop(std::uint32_t queue_pair, Sink sink) {
    std::erase_if(entries_, [&](const Held& held) {
      if (held.queuePair != queue_pair) return false;
      sink(held);
      return true;
    });
  }

  void clear() { entries_.clear(); }

  /// When the next one is due; only when not empty().
  TimePoint nextDue() const { return std::ranges::min_element(entries_, {}, &Held::due)->due; }

 private:
  std::vector<Held> entries_;
};

}  // namespace faultline::injector::verbs
