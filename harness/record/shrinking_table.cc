#include "harness/record/shrinking_table.h"

#include <algorithm>
#include <utility>

namespace faultline::run {

void ShrinkingTable::add(IterationTable& table, const Mark& mark) {
  if (mark.checkpoint) {
    table.ended(mark.iteration, mark.when, *mark.checkpoint);
  } else {
    table.began(mark.iteration, mark.when);
  }
}

void ShrinkingTable::add(int rank, const Mark& mark) {
  add(live_, mark);
  if (!whole_) return;
  const auto left = left_.find(rank);
  if (left == left_.end()) {
    add(*whole_, mark);
  } else {
    jobs_.at(left->second).marks.push_back(mark);
  }
}

void ShrinkingTable::began(int rank, int iteration, TimePoint when) {
  add(rank, {iteration, when, std::nullopt});
}

void ShrinkingTable::ended(int rank, int iteration, TimePoint when, Duration checkpoint) {
  add(rank, {iteration, when, checkpoint});
}

void ShrinkingTable::shrunk(int rank, const wire::Shrunk& message, std::optional<TimePoint> fault) {
  if (!whole_) whole_ = live_;
  const int left = static_cast<int>(message.ranks.size());
  left_[rank] = left;
  const auto [entry, first] = jobs_.try_emplace(left);
  Shrink& shrink = entry->second.shrink;
  if (first || message.noticed < shrink.noticed) {
    shrink.noticed = message.noticed;
    shrink.fault = fault;
  }
  shrink.resumed = first ? message.at : std::max(shrink.resumed, message.at);
  shrink.iteration = std::max(shrink.iteration, message.iteration);
  shrink.ranks = message.ranks;
  if (first) live_.shrunk(left, message.iteration, fault.value_or(message.noticed), message.at);
}

std::vector<ShrinkingTable::Shrink> ShrinkingTable::settle() {
  std::vector<Shrink> shrinks;
  if (!whole_) return shrinks;
  for (auto& [left, job] : jobs_) {
    Shrink& shrink = job.shrink;
    whole_->shrunk(left, shrink.iteration, shrink.fault.value_or(shrink.noticed), shrink.resumed);
    for (const Mark& mark : job.marks) add(*whole_, mark);
    shrinks.push_back(std::move(shrink));
  }
  live_ = *std::move(whole_);
  whole_.reset();
  left_.clear();
  jobs_.clear();
  return shrinks;
}

}  // namespace faultline::run
