#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace faultline::injector::verbs {

/// What one queue pair has sent and not completed, so that a send completion, which does not tell
/// its bytes, can be paced: each work request, since only a signalled one gives a completion, which
/// stands for those before it. Nothing of a link is booked for what is only here: what fails, is
/// flushed or goes with its queue pair has not been carried. Allocates only when it is made. Not
/// thread-safe. Pure.
class SendLog {
 public:
  struct Entry {
    std::uint64_t workRequest = 0;  ///< wr_id
    std::uint64_t bytes = 0;
    TimePoint posted{};
    bool signalled = false;  ///< gives a completion when it succeeds
  };

  /// `capacity`: as many work requests as the send queue holds.
  explicit SendLog(std::size_t capacity) : entries_(capacity) {}

  /// When full, the oldest is forgotten: its completion has not been seen.
  void add(const Entry& entry) {
    if (count_ == entries_.size()) forgetOldest(1);
    at(count_++) = entry;
  }

  /// The latest `count` were not accepted after all.
  void takeBack(std::size_t count) { count_ -= count < count_ ? count : count_; }

  /// This completion is a success. Calls `carried(entry)` for the request that it ends and before
  /// that for each before it, and forgets them. False when it was posted before the log began.
  template <typename Carried>
  bool complete(std::uint64_t work_request, Carried carried) {
    std::size_t last = 0;
    while (last < count_ && !(at(last).signalled && at(last).workRequest == work_request)) ++last;
    if (last == count_) return false;
    for (std::size_t i = 0; i <= last; ++i) carried(at(i));
    forgetOldest(last + 1);
    return true;
  }

  /// This completion is an error, which a request without one of its own gives as well: what was
  /// sent before it waits for its own completion, or counts with the next success.
  void fail(std::uint64_t work_request) {
    std::size_t failed = 0;
    while (failed < count_ && at(failed).workRequest != work_request) ++failed;
    if (failed == count_) return;
    for (; failed > 0; --failed) at(failed) = at(failed - 1);
    forgetOldest(1);
  }

  void clear() { head_ = count_ = 0; }

  std::size_t size() const { return count_; }

 private:
  /// The index-th oldest.
  Entry& at(std::size_t index) { return entries_[(head_ + index) % entries_.size()]; }
  void forgetOldest(std::size_t count) {
    head_ = (head_ + count) % entries_.size();
    count_ -= count;
  }

  std::vector<Entry> entries_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace faultline::injector::verbs
