#include "harness/control/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/stats/quantile.h"
#include "reports/result.h"

namespace faultline::run {

FaultTrigger::FaultTrigger(const scenario::Fault& fault, Likeness iterations)
    : fault_(fault), iterations_(iterations) {
  if (const auto* during = std::get_if<scenario::During>(&fault.trigger)) {
    iteration_ = during->iteration;
  }
}

std::optional<FaultTrigger::Awaited> FaultTrigger::awaited() const {
  if (fired_ == fault_.times || awaitedAt_) return std::nullopt;
  const auto strike = static_cast<std::size_t>(fired_);
  if (const auto* after = std::get_if<scenario::After>(&fault_.trigger)) {
    return Awaited{*after, strike};
  }
  if (fired_ == 0 || !fault_.again) return std::nullopt;
  return Awaited{*fault_.again, strike - 1};
}

bool FaultTrigger::isTimeFor(TimePoint now) const {
  const auto* after = std::get_if<scenario::After>(&fault_.trigger);
  if (after == nullptr && fired_ > 0 && fault_.again) after = &*fault_.again;
  if (after != nullptr) return awaitedAt_ && now >= *awaitedAt_ + after->delay;
  return fired_ == 0 || now >= first_ + fired_ * fault_.every;
}

void FaultTrigger::iterationBegan(int iteration, TimePoint when, TimePoint seen,
                                  std::uint64_t bytes) {
  if (!std::holds_alternative<scenario::During>(fault_.trigger) || fired_ == fault_.times) return;
  const bool promptly = isTimeFor(when) && seen - when <= kPromptMark;
  const bool wanted = fired_ == 0 && tooShort_.empty() ? iteration == iteration_ : promptly;
  if (watching_ || !wanted) return;
  watching_ = true;
  mark_ = bytes;
  iteration_ = iteration;
}

void FaultTrigger::iterationEnded(int iteration, std::uint64_t bytes) {
  if (!watching_ || iteration != iteration_) return;
  if (fired_ == 0) {
    if (iterations_ == Likeness::kEqual) return;
    tooShort_.push_back({iteration, progress(bytes).value_or(0)});
  }
  watching_ = false;
}

std::uint64_t FaultTrigger::bytesPerIteration() const {
  const std::vector<double> bytes(warmup_.begin(), warmup_.end());
  return static_cast<std::uint64_t>(stats::median(bytes).value_or(0));
}

std::optional<double> FaultTrigger::progress(std::uint64_t bytes) const {
  const std::uint64_t whole = bytesPerIteration();
  if (!mark_ || whole == 0 || bytes < *mark_) return std::nullopt;
  return static_cast<double>(bytes - *mark_) / static_cast<double>(whole);
}

std::optional<TimePoint> FaultTrigger::lastsFrom(TimePoint applied, Duration within) const {
  if (std::holds_alternative<scenario::BeforeStart>(fault_.trigger)) return start_;
  const bool known = toMilliseconds(within) <= reports::Failover::kMomentKnownMs;
  return known ? applied : applied + within;
}

bool FaultTrigger::due(TimePoint now, std::uint64_t bytes) {
  const bool beforehand = std::holds_alternative<scenario::BeforeStart>(fault_.trigger);
  if (fired_ == fault_.times || (!start_ && !beforehand)) return false;
  bool is_due = false;
  if (beforehand) {
    is_due = true;
  } else if (std::holds_alternative<scenario::After>(fault_.trigger) ||
             (fault_.again && fired_ > 0 && std::holds_alternative<scenario::At>(fault_.trigger))) {
    is_due = isTimeFor(now);
  } else if (const auto* at = std::get_if<scenario::At>(&fault_.trigger)) {
    is_due = now >= *start_ + at->time + fired_ * fault_.every;
  } else if (const auto* moments = std::get_if<scenario::Moments>(&fault_.trigger)) {
    is_due = now >= *start_ + moments->list[fired_].time;
  } else {
    const std::optional<double> reached = progress(bytes);
    is_due =
        watching_ && reached && *reached >= std::get<scenario::During>(fault_.trigger).progress;
  }
  if (!is_due) return false;
  if (fired_++ == 0) first_ = now;
  awaitedAt_.reset();
  watching_ = false;
  return true;
}

void HitProof::iterationEnded(int rank, int iteration, TimePoint when) {
  if (iteration != iteration_ || when <= applied_) return;
  endedLater_.insert(rank);
  lastEnd_ = std::max(lastEnd_, when - applied_);
}

bool HitProof::ok() const {
  return progress_ > 0 && progress_ < 1 && othersMoved_ &&
         std::ssize(endedLater_) >= ranksNeeded(ranks_);
}

std::string HitProof::detail() const {
  return fmt::format(
      "iteration {} was {:.0f} % through; it went on for {:.0f} ms, after the fault on {} of {} "
      "ranks; "
      "the other nodes' counters {} afterwards",
      iteration_, progress_ * 100, toMilliseconds(lastEnd_), endedLater_.size(), ranks_,
      othersMoved_ ? "moved on" : "stood still");
}

}  // namespace faultline::run
