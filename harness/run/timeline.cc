#include "harness/run/timeline.h"

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

void HangProof::damaged(TimePoint when) {
  if (when <= known_) return;
  known_ = when;
  watches_.push_back({.damaged = when, .sampled = {}, .payload = {}});
}

bool HangProof::wantsPayload(TimePoint now) const {
  return std::ranges::any_of(watches_, [&](const Watch& watch) {
    return !watch.payload && now >= watch.damaged + kDrainTime;
  });
}

void HangProof::payload(TimePoint now, std::uint64_t delivered) {
  for (Watch& watch : watches_) {
    if (watch.payload || now < watch.damaged + kDrainTime) continue;
    watch.payload = delivered;
    watch.sampled = now;
  }
}

std::optional<TimePoint> HangProof::latest() const {
  if (watches_.empty()) return std::nullopt;
  return watches_.back().damaged;
}

HangProof::Hang HangProof::judge(std::uint64_t delivered) const {
  Hang hang{
      .fault = watches_.back().damaged, .payload = {}, .watchedFrom = watches_.back().damaged};
  for (const Watch& watch : watches_) {
    if (!watch.payload) continue;
    hang = {watch.damaged, delivered - *watch.payload, watch.sampled};
    if (*hang.payload == 0) break;
  }
  return hang;
}

void IterationTable::began(int iteration, TimePoint when) {
  const auto [entry, first] = open_.try_emplace(iteration);
  Row& row = entry->second;
  row.index = iteration;
  const auto before = interrupted_.find(iteration);
  if (before != interrupted_.end()) {
    row.begin = before->second.begin;
    row.attempts = before->second.attempts + 1;
    row.resumed = before->second.resumed.value_or(when);
    interrupted_.erase(before);
  } else if (first || when < row.resumed) {  // a rank that was heard of later may have been earlier
    row.resumed = when;
    if (first || when < row.begin) row.begin = when;
  }
}

void IterationTable::ended(int iteration, TimePoint when, Duration checkpoint) {
  const auto row = open_.find(iteration);
  if (row == open_.end()) return;
  row->second.end = std::max(row->second.end, when);
  row->second.checkpoint = std::max(row->second.checkpoint, checkpoint);
  if (++row->second.endedRanks < ranks_) return;
  complete(row->second);
  open_.erase(row);
}

void IterationTable::complete(const Row& row) {
  complete_.push_back(row);
  next_ = std::max(next_, row.index + 1);
  doneBy_[row.index] = ranks_;
}

void IterationTable::shrunk(int ranks, int next, TimePoint waiting, TimePoint when) {
  ranks_ = ranks;
  if (open_.empty()) {
    Interrupted& lost = interruptNext(waiting);
    lost.resumed = lost.begin;
  }
  for (auto it = open_.begin(); it != open_.end();) {
    Row& row = it->second;
    row.endedRanks = 0;
    if (row.index >= next) {
      ++row.attempts;
      ++it;
      continue;
    }
    row.end = when;
    complete(row);
    it = open_.erase(it);
  }
}

double IterationTable::work() const {
  double work = 0;
  for (const auto& [iteration, ranks] : doneBy_) work += static_cast<double>(ranks) / all_;
  return work;
}

std::optional<IterationTable::Row> IterationTable::open() const {
  if (open_.empty()) return std::nullopt;
  return open_.begin()->second;
}

std::optional<IterationTable::Row> IterationTable::cutOff(std::optional<TimePoint> waiting) {
  const std::optional<Row> lost = open();
  if (!lost && waiting) interruptNext(*waiting);
  for (const auto& [iteration, row] : open_) {
    interrupted_[iteration] = {.begin = row.begin, .attempts = row.attempts, .resumed = {}};
  }
  open_.clear();
  return lost;
}

IterationTable::Interrupted& IterationTable::interruptNext(TimePoint waiting) {
  const int next = complete_.empty() ? 0 : complete_.back().index + 1;
  if (!complete_.empty()) waiting = std::max(waiting, complete_.back().end);
  const auto [entry, first] = interrupted_.try_emplace(next, Interrupted{.begin = waiting});
  if (!first) ++entry->second.attempts;
  return entry->second;
}

void IterationTable::finished() {
  if (complete_.empty() || interrupted_.empty()) return;
  Row& last = complete_.back();
  for (const auto& [iteration, interrupted] : interrupted_) {
    last.begin = std::min(last.begin, interrupted.begin);
    last.attempts += interrupted.attempts;
  }
  interrupted_.clear();
}

std::optional<IterationTable::Row> IterationTable::unfinished() const {
  std::optional<Row> longest = open();
  for (const auto& [iteration, row] : open_) {
    if (row.begin < longest->begin) longest = row;
  }
  for (const auto& [iteration, interrupted] : interrupted_) {
    if (longest && longest->begin <= interrupted.begin) continue;
    longest = Row{.index = iteration,
                  .begin = interrupted.begin,
                  .attempts = interrupted.attempts,
                  .resumed = interrupted.begin};
  }
  return longest;
}

}  // namespace faultline::run
