#pragma once

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/units.h"
#include "resilient_ccl/transport/driven_rail.h"

namespace faultline::nccl {

/// Who moves the bytes between two processes where there are I/O threads. NCCL's own thread, while
/// few connections have messages, all of them short: nobody has to be woken for them. What is more
/// than that takes the thread longer than waking others does. Unless messages are long, these are
/// common to all neighbours: half as many have to be woken (docs/gpu.md).
class MoverChoice {
 public:
  /// `small`: the longest message that is short.
  explicit MoverChoice(Bytes small) : small_(small) {}

  /// A message of `connection` begins or is done; `size` 0: not known yet.
  void saw(const void* connection, Bytes size, TimePoint now) {
    note(connection, now);
    if (size > small_) threadsUntil_ = std::max(threadsUntil_, now + kCalm);
    if (busy(now) > kFew) threadsUntil_ = now + kCrowded;
    if (size > small_ && size >= kLong) ownThreadsUntil_ = now + kCrowded;
  }

  transport::Mover at(TimePoint now) const {
    if (now >= threadsUntil_) return transport::Mover::kOwner;
    return now < ownThreadsUntil_ ? transport::Mover::kThread : transport::Mover::kCommonThread;
  }

  /// So many connections the caller serves one after the other.
  static constexpr int kFew = 2;
  /// Connections that have messages so close to each other have them at the same time.
  static constexpr Duration kTogether = 200us;
  /// The shortest message that is worth a thread of its own.
  static constexpr Bytes kLong = 64 << 10;
  /// For how long there must be nothing that is not short; or no more than few connections, or
  /// nothing long. A slow operation of many connections takes some ms, and is not to begin without
  /// threads.
  static constexpr Duration kCalm = 1ms;
  static constexpr Duration kCrowded = 5ms;

 private:
  struct Seen {
    const void* connection = nullptr;
    TimePoint at{};
  };

  void note(const void* connection, TimePoint now) {
    auto mine = std::ranges::find(latest_, connection, &Seen::connection);
    if (mine == latest_.end()) mine = std::ranges::min_element(latest_, {}, &Seen::at);
    *mine = {connection, now};
  }
  std::ptrdiff_t busy(TimePoint now) const {
    return std::ranges::count_if(latest_, [&](const Seen& seen) {
      return seen.connection != nullptr && now - seen.at < kTogether;
    });
  }

  Bytes small_;
  std::array<Seen, kFew + 1> latest_{};  // of different connections
  TimePoint threadsUntil_{};
  TimePoint ownThreadsUntil_{};
};

}  // namespace faultline::nccl
