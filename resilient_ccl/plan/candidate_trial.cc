#include "resilient_ccl/plan/candidate_trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace faultline::plan {
namespace {

/// Standard deviation of normal values over the median of their distances from their median.
constexpr double kDeviation = 1.4826;
/// Standard error of a median over that of a mean.
constexpr double kMedianError = 1.2533;

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

void CandidateTrial::Option::add(double seconds) {
  if (calls.size() < kMostCalls) {
    calls.push_back(seconds);
  } else {
    calls[next] = seconds;
  }
  next = (next + 1) % kMostCalls;
  quickest = counted == 0 ? seconds : std::min(quickest, seconds);
  ++counted;
}

void CandidateTrial::Option::judge() {
  median = medianOf(calls);
  std::vector<double> distances;
  for (const double seconds : calls) distances.push_back(std::abs(seconds - median));
  const double deviation =
      std::max(kDeviation * medianOf(std::move(distances)), kLeastError * median);
  error = kConfidence * kMedianError * deviation / std::sqrt(static_cast<double>(calls.size()));
}

CandidateTrial::CandidateTrial(const std::vector<double>& predicted, double bound)
    : bound_(bound), last_(predicted.size()) {
  for (const double seconds : predicted) options_.emplace_back().predicted = seconds;
  settled_ = done_ = options_.size() < 2;
}

void CandidateTrial::ended(std::size_t candidate, double seconds, TimePoint now) {
  if (options_.size() < 2 || candidate >= options_.size()) return;
  all_ += seconds;
  const std::size_t best = this->best();
  if (candidate != best && options_[best].measured()) {
    spent_ += std::max(0.0, seconds - options_[best].median);
  }
  Option& option = options_[candidate];
  const double fastest = candidate == best ? 0 : options_[best].median;
  if (last_ != candidate) {
    last_ = candidate;
    const bool absurd = fastest > 0 && seconds > kAbsurd * fastest;
    if (!absurd || settled_ || candidate != wanted_) return;
    option.out = true;
    return decide(now);
  }
  option.add(seconds);
  if (candidate != wanted_) return;
  if (settled_) {
    const bool again = done_ ? now - settledAt_ >= kPause && spent_ <= kAllowedShare * all_
                             : spent_ <= kAllowedShare * all_;
    if (again) tryAgain();
    return;
  }
  fastestOfTurn_ = callsOfTurn_ == 0 ? seconds : std::min(fastestOfTurn_, seconds);
  ++callsOfTurn_;
  const bool known = callsOfTurn_ >= 2 && fastest > 0;
  if (known && fastestOfTurn_ > kHopeless * fastest) option.out = true;
  const bool slower = known && fastestOfTurn_ > (1 + kAlike) * fastest + options_[best].error;
  if (option.out || slower || callsOfTurn_ >= kTurn) decide(now);
}

/// The fastest that is not out, as far as is known; the one in use where nothing is.
std::size_t CandidateTrial::best() const {
  std::size_t best = kept_;
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const Option& option = options_[i];
    if (option.out || option.median <= 0 || option.median >= fastest) continue;
    best = i;
    fastest = option.median;
  }
  return best;
}

/// What is faster than the bound is so because shapers let something pass at once: then others may
/// be faster still.
bool CandidateTrial::goodEnough(const Option& best) const {
  return bound_ >= kLong && best.median >= kBurst * bound_ &&
         (1 - kLeastError) * best.median <= kGoodEnough * bound_;
}

bool CandidateTrial::latencyDecides() const {
  return bound_ < kSmallShare * options_.front().predicted;
}

std::optional<double> CandidateTrial::overModel() const {
  if (options_.empty() || latencyDecides() || bound_ < kLong) return std::nullopt;
  const Option& best = options_[this->best()];
  if (best.counted < kTelling) return std::nullopt;
  return best.quickest / best.predicted;
}

bool CandidateTrial::mayWin(const Option& option, double best) const {
  if (latencyDecides()) return option.predicted <= kSmallModelError * best;
  if (bound_ < kLong) return option.predicted <= kModelError * std::max(best, bound_) + kSavedUp;
  const bool burst = bound_ < kNoBurst && best < kBurst * bound_;
  return option.predicted <= (burst ? kSmallModelError : kModelError) * best;
}

void CandidateTrial::decide(TimePoint now) {
  for (Option& option : options_) {
    if (option.measured()) option.judge();
  }
  const std::size_t fastest = best();
  const Option& best = options_[fastest];
  dropLosers(best);
  if (goodEnough(best)) return settle(fastest, /*done=*/true, now);
  if (spent_ > kAllowedCalls * best.median + kAllowedShare * all_) {
    return settle(fastest, /*done=*/false, now);
  }
  const std::size_t next = nextTurn(best);
  if (next == options_.size()) return settle(fastest, /*done=*/true, now);
  begin(next);
}

/// Those that are slower than the best, whatever their medians may be off by.
void CandidateTrial::dropLosers(const Option& best) {
  for (Option& option : options_) {
    if (&option == &best || !option.measured() || option.out) continue;
    option.out = option.median - option.error > best.median + best.error;
  }
}

/// Whether it does not matter which of those that are left is the best.
bool CandidateTrial::alike(const Option& best) const {
  return std::ranges::all_of(options_, [&](const Option& option) {
    return option.out || !option.measured() || &option == &best ||
           best.median + best.error <= (1 + kAlike) * (option.median - option.error);
  });
}

/// One that has not been measured, the cheapest by the model; else, while they cannot be told
/// apart, the least measured of those that are left. Their number: none needs another turn.
std::size_t CandidateTrial::nextTurn(const Option& best) const {
  std::size_t next = options_.size();
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const Option& option = options_[i];
    if (option.measured() || option.out || !mayWin(option, best.median)) continue;
    if (next == options_.size() || option.predicted < options_[next].predicted) next = i;
  }
  if (next != options_.size() || alike(best)) return next;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const Option& option = options_[i];
    if (!option.measured() || option.out || option.enough()) continue;
    const bool less = next == options_.size() || option.calls.size() < options_[next].calls.size();
    if (less) next = i;
  }
  return next;
}

void CandidateTrial::settle(std::size_t best, bool done, TimePoint now) {
  const Option& kept = options_[kept_];
  const bool asGood =
      kept.measured() && !kept.out && kept.median <= (1 + kLeastError) * options_[best].median;
  begin(asGood ? kept_ : best);
  kept_ = wanted_;
  settled_ = true;
  done_ = done;
  settledAt_ = now;
}

void CandidateTrial::begin(std::size_t candidate) {
  wanted_ = candidate;
  callsOfTurn_ = 0;
}

/// What was found is forgotten, but for what was far off; or, where there was no allowance for
/// more, gone on with.
void CandidateTrial::tryAgain() {
  settled_ = false;
  callsOfTurn_ = 0;
  if (!done_) return;
  const double best = options_[kept_].median;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    Option& option = options_[i];
    option.out = option.measured() && option.median > kHopeless * best;
    option.calls.clear();
    option.next = 0;
    if (i != kept_) option.median = 0;
  }
}

}  // namespace faultline::plan
