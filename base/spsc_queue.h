#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace faultline {

/// A bounded queue from one thread to one other, without locks: neither ever waits for the other.
template <typename T>
class SpscQueue {
 public:
  /// Takes at least `capacity` elements; rounded up to a power of two.
  explicit SpscQueue(std::size_t capacity) : slots_(std::bit_ceil(capacity)) {}

  /// Producer. False when the queue is full; the value is then untouched.
  bool push(T&& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - knownHead_ == slots_.size()) {
      knownHead_ = head_.load(std::memory_order_acquire);
      if (tail - knownHead_ == slots_.size()) return false;
    }
    slots_[tail & (slots_.size() - 1)] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// Consumer. Nothing when the queue is empty.
  std::optional<T> pop() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> value = std::exchange(slots_[head & (slots_.size() - 1)], T());
    head_.store(head + 1, std::memory_order_release);
    return value;
  }

 private:
  std::vector<T> slots_;
  // Counted on without end; each end writes a cache line of its own.
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t knownHead_ = 0;  // producer's: as far as the consumer had come when last looked at
};

}  // namespace faultline
