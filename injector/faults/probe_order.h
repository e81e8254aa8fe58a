#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace faultline::injector {

/// Which of numbered probes came late: behind one that was sent later, and under way for at least
/// a given time. One that came behind another one sooner was not held up but passed: the two were
/// sent on different processors, each of which hands on what it has when it gets to it. Pure.
class ProbeOrder {
 public:
  /// The first `judged` numbers count; those behind them are there to overtake. `least`: how long a
  /// late one is under way.
  ProbeOrder(int judged, Duration least) : judged_(judged), least_(least) {}

  /// Whoever delays probes looks for them now, before anything is sent.
  void look(TimePoint now) { looks_.push_back(now); }

  /// The next number, from 0 on, is sent.
  void send(TimePoint now) { sent_.push_back(now); }

  /// `number` has come; it was sent.
  void hear(int number, TimePoint now) {
    const bool overtaken = number < latest_;
    latest_ = std::max(latest_, number);
    if (number >= judged_) return;
    const Duration under_way = now - sent_[static_cast<std::size_t>(number)];
    const bool late = overtaken && under_way >= least_;
    (late ? late_ : others_).push_back(under_way);
    if (overtaken && !late) ++passed_;
  }

  /// All moments, by number, also of those that are not judged.
  const std::vector<TimePoint>& moments() const { return sent_; }

  /// Of those that are judged.
  int sent() const { return std::min(static_cast<int>(sent_.size()), judged_); }
  int arrived() const { return static_cast<int>(late_.size() + others_.size()); }
  int late() const { return static_cast<int>(late_.size()); }
  /// Of those that arrived and are not late. By as many the number of late ones may be wrong.
  int passed() const { return passed_; }
  /// How much longer a late one was under way than another one: the difference of their medians.
  Duration delayed() const {
    return late_.empty() || others_.empty() ? Duration{} : median(late_) - median(others_);
  }
  /// How long one is under way that is delayed by whoever looks at these moments and no other: it
  /// is taken at the first look behind its sending, and goes on at the first one behind its delay.
  /// The median of those that are judged, without those that would not have gone on yet.
  Duration delayedByLooks() const {
    std::vector<Duration> times;
    for (std::size_t number = 0; number < static_cast<std::size_t>(sent()); ++number) {
      const auto taken = std::ranges::upper_bound(looks_, sent_[number]);
      if (taken == looks_.end()) break;
      const auto gone = std::lower_bound(taken, looks_.end(), *taken + least_);
      if (gone == looks_.end()) break;
      times.push_back(*gone - sent_[number]);
    }
    return times.empty() ? Duration{} : median(std::move(times));
  }

 private:
  static Duration median(std::vector<Duration> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  int judged_;
  Duration least_;
  std::vector<TimePoint> looks_;  // in their order
  std::vector<TimePoint> sent_;   // by number
  std::vector<Duration> late_;    // under way
  std::vector<Duration> others_;  // of those that were not late
  int passed_ = 0;
  int latest_ = -1;  // the highest number that has come
};

}  // namespace faultline::injector
