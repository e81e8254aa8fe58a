#pragma once

#include <algorithm>
#include <vector>

#include "resilient_ccl/schedule/op_table.h"

namespace faultline::schedule {

/// The events of a schedule ("operation issued", "the first n elements of it done") in one order
/// that is possible, and what every possible order has in common: the edges.
///
/// Edges, and nothing else, order events: an operation is issued after the one before it in its
/// lane and after what it waits for; it progresses after its issue; a receive progresses after the
/// matching send has read the same elements and after the reduction that has to come first. That a
/// send needs the receiver's slot is not an edge: small messages go without.
class EventOrder {
 public:
  struct Event {
    int op = 0;
    int mark = kIssued;  ///< kIssued, or the index of the watermark that is reached
  };
  static constexpr int kIssued = -1;
  static constexpr int kMaxPredecessors = std::max(Op::kMaxWaits + 1, 3);

  explicit EventOrder(const OpTable& table);

  /// Appends the issue of an operation. Callers append in an order that respects the edges.
  void addIssue(int op);
  /// Appends the progress of an operation through all its watermarks.
  void addProgress(int op);

  int size() const { return static_cast<int>(events_.size()); }
  Event operator[](int event) const { return events_[static_cast<std::size_t>(event)]; }

  /// The event after which operation `op` does not touch its first `elements` elements any more.
  int doneWith(int op, std::int64_t elements) const;

  /// Writes the direct predecessors of an event to `out` and returns how many there are.
  int predecessors(int event, std::array<int, kMaxPredecessors>& out) const;

 private:
  const OpTable& table_;
  std::vector<Event> events_;
  std::vector<int> issueEvent_;
  std::vector<int> firstMark_;                    ///< event of an operation's first watermark
  std::vector<std::vector<std::int64_t>> marks_;  ///< watermarks short of the whole, ascending
};

}  // namespace faultline::schedule
