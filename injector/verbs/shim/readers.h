#pragma once

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace faultline::injector::verbs::shim {

/// Lets the program's threads read what the control thread replaces, without a lock: a reader says
/// that it is inside; whoever has unlinked something waits until everybody who may have seen it has
/// left. What is unlinked, and looked up, must be so in the one order that all threads agree on
/// (memory_order_seq_cst): else a reader could be inside unseen and still find it. Counters are
/// spread over cache lines, since the readers are threads that post and poll.
class Readers {
 public:
  /// A thread that is inside. Short: unlinking waits for it.
  class Guard {
   public:
    explicit Guard(Readers& readers) : count_(readers.mine()) {
      count_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Guard() { count_.fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<std::int64_t>& count_;
  };

  /// Returns when everybody who was inside at the time of the call has left, however many enter
  /// meanwhile. Not from inside, and from one thread at a time.
  void wait() {
    // Both counts are seen empty, and whoever was inside is in one of them. The first is of the
    // side that nobody enters any more but those who chose it before the last turn; after this turn
    // that is so for the second.
    const unsigned now_entered = side_.load(std::memory_order_relaxed);
    drain(1 - now_entered);
    side_.store(1 - now_entered, std::memory_order_seq_cst);
    drain(now_entered);
  }

  /// After fork(): the threads that were inside do not exist here.
  void forget() {
    for (Line& line : lines_) {
      for (auto& inside : line.inside) inside.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t kCacheLine = 64;
  static constexpr std::size_t kLines = 16;
  struct alignas(kCacheLine) Line {
    std::array<std::atomic<std::int64_t>, 2> inside{};  ///< by the side that they entered on
  };

  void drain(unsigned side) const {
    for (const Line& line : lines_) {
      while (line.inside[side].load(std::memory_order_seq_cst) != 0) ::sched_yield();
    }
  }

  std::atomic<std::int64_t>& mine() {
    // Not thread_local: the first use of that in a loaded library may allocate.
    constexpr unsigned kStackShift = 12;
    const auto self = static_cast<std::uintptr_t>(::pthread_self()) >> kStackShift;
    return lines_[(self ^ (self >> 4)) % kLines].inside[side_.load(std::memory_order_relaxed)];
  }

  std::array<Line, kLines> lines_;
  alignas(kCacheLine) std::atomic<unsigned> side_{0};  ///< on which who comes enters
};

}  // namespace faultline::injector::verbs::shim
