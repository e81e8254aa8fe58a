#include "harness/record/iteration_table.h"

#include <algorithm>

namespace faultline::run {

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
  const auto early = early_.extract(iteration);
  if (early.empty()) return;
  for (const Ended& one : early.mapped()) ended(iteration, one.when, one.checkpoint);
}

void IterationTable::ended(int iteration, TimePoint when, Duration checkpoint) {
  const auto row = open_.find(iteration);
  if (row == open_.end()) {
    early_[iteration].push_back({when, checkpoint});
    return;
  }
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
  early_.clear();
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
  early_.clear();
  return lost;
}

std::optional<TimePoint> IterationTable::lastEnd() const {
  if (complete_.empty()) return std::nullopt;
  return std::ranges::max(complete_, {}, &Row::end).end;
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
