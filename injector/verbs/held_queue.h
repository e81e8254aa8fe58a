#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace faultline::injector::verbs {

/// Completions of one completion queue that are held back until they are due. Those of one queue
/// pair stay in their order; those of different ones may pass each other, as they may on the wire.
/// What a call costs does not depend on how many are held, only on how many it gives out, and, by
/// its logarithm, on how many queue pairs have some; releaseAll() and dropAll() go through all.
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
  // clear() works on what another thread was changing when the process was forked.
  static_assert(std::is_trivially_destructible_v<Held>);

  explicit HeldQueue(std::size_t capacity)
      : capacity_(std::clamp<std::size_t>(capacity, 1, kNone)),
        buckets_(std::bit_ceil(std::min(capacity_, kMostBuckets)), kNone) {
    // Reserved and not filled: memory is used by what is held, and not by what could be.
    nodes_.reserve(capacity_);
    lanes_.reserve(capacity_);
    heap_.reserve(capacity_);
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// How many more can be held.
  std::size_t room() const { return capacity_ - size_; }

  /// Whether something of this queue pair is held: what comes after it must queue up.
  bool holds(std::uint32_t queue_pair) const { return laneOf(queue_pair) != kNone; }

  /// Not without room(). Never due before what is held of the same queue pair.
  void push(const Item& item, std::uint32_t queue_pair, TimePoint now, TimePoint due) {
    const Index node = placeFor(nodes_, free_node_);
    Index lane = laneOf(queue_pair);
    if (lane != kNone) due = std::max(due, nodes_[lanes_[lane].last].held.due);
    nodes_[node] = {{item, queue_pair, now, due}, order_++, kNone};
    ++size_;
    if (lane != kNone) {
      nodes_[lanes_[lane].last].next = node;
      lanes_[lane].last = node;
      return;
    }
    lane = placeFor(lanes_, free_lane_);
    Index& bucket = bucketOf(queue_pair);
    lanes_[lane] = {queue_pair, node, node, kNone, bucket};
    bucket = lane;
    heap_.push_back(lane);
    rise(heap_.size() - 1);
  }

  /// Everything is due now.
  void releaseAll() {
    for (const Index lane : heap_) {
      for (Index node = lanes_[lane].first; node != kNone; node = nodes_[node].next) {
        nodes_[node].held.due = TimePoint::min();
      }
    }
    for (std::size_t at = heap_.size(); at-- > 0;) sink(at);
  }

  /// Calls `give(held)` for at most `most` that are due, by when they were due and then by age, and
  /// forgets them; returns how many.
  template <typename Give>
  std::size_t take(TimePoint now, std::size_t most, Give give) {
    std::size_t taken = 0;
    for (; taken < most && !empty() && nextDue() <= now; ++taken) {
      Lane& lane = lanes_[heap_.front()];
      const Index node = lane.first;
      give(std::as_const(nodes_[node].held));
      lane.first = nodes_[node].next;
      forget(node);
      if (lane.first == kNone) {
        removeLane(heap_.front());
      } else {
        sink(0);
      }
    }
    return taken;
  }

  /// Calls `give(held)` for all of one queue pair and forgets them.
  template <typename Give>
  void drop(std::uint32_t queue_pair, Give give) {
    const Index lane = laneOf(queue_pair);
    if (lane == kNone) return;
    for (Index node = lanes_[lane].first; node != kNone;) {
      give(std::as_const(nodes_[node].held));
      const Index next = nodes_[node].next;
      forget(node);
      node = next;
    }
    removeLane(lane);
  }

  /// Calls `give(held)` for all and forgets them.
  template <typename Give>
  void dropAll(Give give) {
    while (!heap_.empty()) drop(lanes_[heap_.back()].queuePair, give);
  }

  /// Forgets all, whatever state it is in.
  void clear() {
    nodes_.clear();
    lanes_.clear();
    heap_.clear();
    std::ranges::fill(buckets_, kNone);
    free_node_ = free_lane_ = kNone;
    size_ = 0;
  }

  /// When the next one is due; only when not empty().
  TimePoint nextDue() const { return nodes_[lanes_[heap_.front()].first].held.due; }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  /// Queue pairs that have something held at a time are fewer, or share buckets.
  static constexpr std::size_t kMostBuckets = 4096;

  struct Node {
    Held held;
    std::uint64_t order = 0;
    Index next = kNone;  ///< of its lane; or of the free ones
  };
  /// What is held of one queue pair, oldest first: never empty.
  struct Lane {
    std::uint32_t queuePair = 0;
    Index first = kNone;
    Index last = kNone;
    Index place = kNone;  ///< in heap_
    Index next = kNone;   ///< of its bucket; or of the free ones
  };

  /// A place of a former one, or a new one.
  template <typename Places>
  static Index placeFor(Places& places, Index& free) {
    if (free == kNone) {
      places.emplace_back();
      return static_cast<Index>(places.size() - 1);
    }
    const Index place = free;
    free = places[place].next;
    return place;
  }

  Index& bucketOf(std::uint32_t queue_pair) {
    return buckets_[queue_pair & (buckets_.size() - 1)];  // devices count them up
  }
  Index laneOf(std::uint32_t queue_pair) const {
    Index lane = buckets_[queue_pair & (buckets_.size() - 1)];
    while (lane != kNone && lanes_[lane].queuePair != queue_pair) lane = lanes_[lane].next;
    return lane;
  }

  void forget(Index node) {
    nodes_[node].next = std::exchange(free_node_, node);
    --size_;
  }

  void removeLane(Index lane) {
    Index* link = &bucketOf(lanes_[lane].queuePair);
    while (*link != lane) link = &lanes_[*link].next;
    *link = lanes_[lane].next;
    const Index place = lanes_[lane].place;
    const Index last = heap_.back();
    heap_.pop_back();
    if (last != lane) {
      put(last, place);
      rise(place);
      sink(lanes_[last].place);
    }
    lanes_[lane].next = std::exchange(free_lane_, lane);
  }

  // heap_: lanes, the one whose first is to be given out next in front.
  bool isBefore(Index lane, Index other) const {
    const Node& one = nodes_[lanes_[lane].first];
    const Node& two = nodes_[lanes_[other].first];
    return std::pair(one.held.due, one.order) < std::pair(two.held.due, two.order);
  }
  void put(Index lane, std::size_t place) {
    heap_[place] = lane;
    lanes_[lane].place = static_cast<Index>(place);
  }
  void rise(std::size_t place) {
    const Index lane = heap_[place];
    for (; place > 0 && isBefore(lane, heap_[(place - 1) / 2]); place = (place - 1) / 2) {
      put(heap_[(place - 1) / 2], place);
    }
    put(lane, place);
  }
  void sink(std::size_t place) {
    const Index lane = heap_[place];
    for (std::size_t child = 0; (child = 2 * place + 1) < heap_.size(); place = child) {
      if (child + 1 < heap_.size() && isBefore(heap_[child + 1], heap_[child])) ++child;
      if (!isBefore(heap_[child], lane)) break;
      put(heap_[child], place);
    }
    put(lane, place);
  }

  const std::size_t capacity_;
  std::vector<Node> nodes_;
  std::vector<Lane> lanes_;
  std::vector<Index> heap_;
  std::vector<Index> buckets_;  ///< the first lane of each
  Index free_node_ = kNone;
  Index free_lane_ = kNone;
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace faultline::injector::verbs
