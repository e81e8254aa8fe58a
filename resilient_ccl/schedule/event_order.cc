#include "resilient_ccl/schedule/event_order.h"

#include <algorithm>

#include "resilient_ccl/schedule/index.h"

namespace faultline::schedule {

EventOrder::EventOrder(const OpTable& table)
    : table_(table),
      issueEvent_(at(table.size()), -1),
      firstMark_(at(table.size()), -1),
      marks_(at(table.size())) {
  events_.reserve(2 * at(table.size()));
  for (int op = 0; op < table.size(); ++op) {
    const OpTable::Entry& entry = table[op];
    for (int i = 0; i < entry.waitCount; ++i) {
      const int target = entry.waitOp[i];
      const std::int64_t count = entry.waitElements[i];
      if (count == 0 || count == table[target].piece.count) continue;
      // Both ends of a message get the watermark: progress of a receive is progress of its send.
      marks_[at(target)].push_back(count);
      if (table[target].partner >= 0) marks_[at(table[target].partner)].push_back(count);
    }
  }
  for (auto& marks : marks_) {
    std::sort(marks.begin(), marks.end());
    marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  }
}

void EventOrder::addIssue(int op) {
  issueEvent_[at(op)] = size();
  events_.push_back({op, kIssued});
}

void EventOrder::addProgress(int op) {
  firstMark_[at(op)] = size();
  const int whole = static_cast<int>(marks_[at(op)].size());
  for (int mark = 0; mark <= whole; ++mark) events_.push_back({op, mark});
}

int EventOrder::doneWith(int op, std::int64_t elements) const {
  const auto& marks = marks_[at(op)];
  const auto mark = std::lower_bound(marks.begin(), marks.end(), elements) - marks.begin();
  return firstMark_[at(op)] + static_cast<int>(mark);
}

int EventOrder::predecessors(int event, std::array<int, kMaxPredecessors>& out) const {
  const auto [op, mark] = (*this)[event];
  const OpTable::Entry& entry = table_[op];
  int count = 0;
  if (mark == kIssued) {
    if (op > table_.firstOf(table_.chainOf(op))) out[at(count++)] = issueEvent_[at(op - 1)];
    for (int i = 0; i < entry.waitCount; ++i) {
      if (entry.waitElements[at(i)] == 0) continue;
      out[at(count++)] = doneWith(entry.waitOp[at(i)], entry.waitElements[at(i)]);
    }
    return count;
  }
  out[at(count++)] = mark == 0 ? issueEvent_[at(op)] : event - 1;
  if (isReceive(entry.kind)) out[at(count++)] = firstMark_[at(entry.partner)] + mark;
  if (mark == 0 && entry.after >= 0) {
    out[at(count++)] = doneWith(entry.after, table_[entry.after].piece.count);
  }
  return count;
}

}  // namespace faultline::schedule
