#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "injector/verbs/rule.h"

namespace faultline::injector::verbs {

/// One armed fault: decides for every operation whether it strikes, and counts what came of it. The
/// threads of the program call it at once: no lock, no allocation, no system call, no clock. The
/// decision about the n-th operation depends on the rule and n alone, so that a seed repeats it
/// whichever thread made the operation.
class ArmedFault {
 public:
  explicit ArmedFault(Rule rule) : rule_(std::move(rule)) {}
  ArmedFault(const ArmedFault&) = delete;
  ArmedFault& operator=(const ArmedFault&) = delete;

  const Rule& rule() const { return rule_; }

  /// One more operation with so many bytes: whether the fault strikes it. True takes one of the
  /// budget.
  bool strikes(std::uint64_t bytes);

  /// Bytes that moved without being an operation of this fault: posts, when completions are
  /// counted.
  void moved(std::uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Only a link of rule().bitsPerSecond: when it has carried these bytes as well, if it begins
  /// with them at `from` or as soon as it is free. To be asked once they are known to have been
  /// sent, by when they were posted: what fails must not keep the link busy for others.
  TimePoint carried(TimePoint from, std::uint64_t bytes);
  /// It does not have to carry these after all, with which it would have been done at `due`: it is
  /// free earlier by what of that is still to come at `now`.
  void notCarried(TimePoint now, TimePoint due, std::uint64_t bytes);

  /// What `strikes` was true for could not be struck: that one of the budget is there again.
  void struckNothing() { struck_.fetch_sub(1, std::memory_order_relaxed); }

  // What came of it.
  void happened() { happened_.fetch_add(1, std::memory_order_relaxed); }
  void failed() { failures_.fetch_add(1, std::memory_order_relaxed); }
  /// There was nothing left to be done to a queue pair.
  void wasInErrorBefore() { in_error_before_.fetch_add(1, std::memory_order_relaxed); }
  void sawError(bool flush) { (flush ? flush_ : genuine_).fetch_add(1, std::memory_order_relaxed); }
  /// The device has refused a post, or a batch. ENOMEM is counted apart from all others: it is how
  /// a send queue says that it is full, and many programs post until they get it and then poll.
  /// That of a device which is out of memory cannot be told from it.
  void postFailed(int error);
  void passedUnseen() { uncovered_.fetch_add(1, std::memory_order_relaxed); }
  void held() { held_.fetch_add(1, std::memory_order_relaxed); }
  /// A held completion has been delivered after so long.
  void released(std::uint64_t bytes, Duration after);
  /// A held completion has gone with its queue pair or completion queue.
  void dropped() {
    held_.fetch_sub(1, std::memory_order_relaxed);
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }

  /// `queuePairs` is not known here.
  Counters counters() const;

 private:
  using Counter = std::atomic<std::uint64_t>;

  bool takeBudget();
  /// Nanoseconds that the link takes for so many bytes.
  std::int64_t carryingTime(std::uint64_t bytes) const;

  const Rule rule_;
  Counter operations_{0}, bytes_{0}, struck_{0}, happened_{0}, held_{0}, released_{0};
  Counter released_bytes_{0}, held_nanoseconds_{0}, shortest_{0}, genuine_{0}, flush_{0};
  Counter genuine_posts_{0}, full_queues_{0};
  Counter failures_{0}, in_error_before_{0}, uncovered_{0}, dropped_{0};
  std::atomic<std::int64_t> link_free_{0};  ///< nanoseconds of the clock of `carried`
};

}  // namespace faultline::injector::verbs
