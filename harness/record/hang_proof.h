#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faultline::run {

/// Says which fault a job hangs from, and proves that it hangs: from that fault on, once what was
/// in flight had drained, not one byte of payload was delivered. Of several faults it is the
/// earliest of which that is true: a throttle before it only made the job slow.
class HangProof {
 public:
  /// What was in flight when a fault came has drained after this.
  static constexpr Duration kDrainTime = 100ms;

  struct Hang {
    TimePoint fault;  ///< that the job hangs from
    /// Payload bytes delivered since `watchedFrom`; nullopt: no fault is old enough to tell.
    std::optional<std::uint64_t> payload;
    TimePoint watchedFrom;
  };

  /// A fault began. Moments that are not later than the last one are known already.
  void damaged(TimePoint when);
  /// Whether `payload` wants to be told how much has been delivered.
  bool wantsPayload(TimePoint now) const;
  void payload(TimePoint now, std::uint64_t delivered);
  /// A new attempt, on a whole network: the faults so far have had their effect.
  void restarted() { watches_.clear(); }

  /// The last fault of this attempt; nullopt: there was none.
  std::optional<TimePoint> latest() const;
  /// What the job hangs from, given what has been delivered until now. Needs `latest()`.
  Hang judge(std::uint64_t delivered) const;

 private:
  struct Watch {
    TimePoint damaged;
    TimePoint sampled{};
    std::optional<std::uint64_t> payload;  // delivered until `sampled`
  };
  std::vector<Watch> watches_;  // of this attempt
  TimePoint known_{};           // the last damage of all attempts
};

}  // namespace faultline::run
