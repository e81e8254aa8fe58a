#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "injector/verbs/shim/address_hash.h"

namespace faultline::injector::verbs::shim {

/// Which of the program's objects armed faults concern, for the calls on all others: these ask here
/// and go on, which takes neither a lock nor Readers, since a place in this table belongs to nobody
/// and is never freed. May say yes to one that is not concerned (it shares the place of another, or
/// was concerned before), and never no to one that is. Written by one thread at a time.
class Concerned {
 public:
  bool has(const void* object) const { return at(place(object)) != 0; }
  /// A completion tells no more of its queue pair.
  bool has(const void* context, std::uint32_t number) const {
    return at(place(context, number)) != 0;
  }
  /// Whether completions of this queue may be held back.
  bool mayHold(const void* completion_queue) const {
    return (at(place(completion_queue)) & kHolds) != 0;
  }

  void add(const void* object) { mark(place(object), kConcerned); }
  void add(const void* context, std::uint32_t number) { mark(place(context, number), kConcerned); }
  void addHolding(const void* completion_queue) {
    mark(place(completion_queue), kConcerned | kHolds);
  }
  /// Where it cannot be told which.
  void addAll() {
    for (std::size_t place = 0; place < kPlaces; ++place) mark(place, kConcerned);
  }
  /// Nothing is armed and nothing is held back any more.
  void clear() {
    for (auto& place : places_) place.store(0, std::memory_order_release);
  }

 private:
  using Bits = std::uint8_t;
  static constexpr Bits kConcerned = 1;
  static constexpr Bits kHolds = 2;
  static constexpr unsigned kIndexBits = 12;
  static constexpr std::size_t kPlaces = std::size_t{1} << kIndexBits;

  static std::size_t place(const void* object, std::uint32_t number = 0) {
    return placeOf(object, kIndexBits, number);
  }
  Bits at(std::size_t place) const { return places_[place].load(std::memory_order_acquire); }
  void mark(std::size_t place, int bits) {
    places_[place].store(static_cast<Bits>(at(place) | bits), std::memory_order_release);
  }

  std::array<std::atomic<Bits>, kPlaces> places_{};
};

}  // namespace faultline::injector::verbs::shim
