#include "harness/analysis/cause_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/analysis/slow_rails.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/record/damage.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::run {
namespace {

using Row = reports::ConfusionMatrix::Row;

constexpr const char* kNone = "none";
constexpr const char* kDegraded = "degraded";
constexpr const char* kOther = "other";
constexpr std::array<const char*, 9> kColumns{"local_nic",   "remote_nic", "rail",
                                              "path_out",    "path_in",    "path_both",
                                              "path_unsure", kDegraded,    kNone};
constexpr std::size_t kAfterAllKinds = std::numeric_limits<std::size_t>::max();
constexpr double kUntilTheEnd = std::numeric_limits<double>::infinity();

/// The column of a cause; of a path with the direction that is dead.
std::string columnOf(const std::string& cause, const std::string& deadDirection) {
  if (cause != "path") {
    const bool known = std::ranges::find(kColumns, cause) != kColumns.end();
    return known ? cause : kOther;
  }
  if (deadDirection == "outgoing") return "path_out";
  if (deadDirection == "incoming") return "path_in";
  return deadDirection == "both" ? "path_both" : "path_unsure";
}

bool isRight(const injector::Finding& finding, const std::string& column) {
  if (finding.cause == injector::kAnyCause) return true;
  if (column == kNone) return finding.cause.empty() || finding.orNone;
  if (finding.orRail && column == "rail") return true;
  const bool anyDirection = finding.cause == "path" && finding.deadDirection.empty();
  if (anyDirection) return column.starts_with("path_");
  return column == columnOf(std::string(finding.cause), std::string(finding.deadDirection));
}

std::string inWords(const injector::Finding& finding) {
  if (finding.cause.empty()) return kNone;
  std::string text(finding.cause);
  if (!finding.deadDirection.empty()) text += fmt::format(" ({})", finding.deadDirection);
  if (finding.orRail) text += " or rail";
  return finding.orNone ? text + " or none" : text;
}

enum class End { kOwn, kPeer, kNobody };

/// A row while it is being counted.
struct Counting {
  std::string fault;
  injector::Finding expected;
  bool between = false;  // of no link, but of the path between two
  int strikes = 0;
  std::map<std::string, int> counts;
  Row::Places places;
  std::vector<double> detection, fence, redelivery, pause;
};

/// Rows in the order of the table of faults, then by name and end.
using Key = std::tuple<std::size_t, std::string, End>;
using Rows = std::map<Key, Counting>;

/// A strike of a run and where its two ends are counted.
struct Strike {
  const reports::AppliedFault* fault;
  Counting* own;  ///< null: without evidence
  Counting* peer;
  int ownFindings = 0;  ///< failovers and degradations
  int peerFindings = 0;
};

class Counter {
 public:
  void add(const reports::ScenarioResult& result, std::span<const reports::Run* const> runs) {
    ++matrix_.results;
    for (const reports::Run* run : runs) {
      const auto* const strategy = baseline::findStrategy(kindOf(*run));
      if (!run->faulted || (strategy != nullptr && strategy->restarts)) continue;
      ++matrix_.runs;
      add(*run, ranksPerNode(result));
    }
  }

  reports::ConfusionMatrix finish() {
    matrix_.columns.assign(kColumns.begin(), kColumns.end());
    const bool others = std::ranges::any_of(
        rows_, [](const auto& entry) { return entry.second.counts.contains(kOther); });
    if (others) matrix_.columns.push_back(kOther);
    for (const auto& [key, counting] : rows_)
      matrix_.rows.push_back(rowOf(counting, std::get<End>(key)));
    return std::move(matrix_);
  }

 private:
  void add(const reports::Run& run, int perNode) {
    std::vector<Strike> strikes;
    for (std::size_t i = 0; i < run.faults.size(); ++i) strikes.push_back(strikeOf(run, i));
    for (const reports::Failover& failover : run.failovers) {
      if (Counting* const row = counted(strikes, failover, perNode)) addTimes(*row, failover);
    }
    for (const reports::Failover& failover : run.idle_failovers) {
      (void)counted(strikes, failover, perNode);
    }
    for (const reports::Degradation& degradation : run.degradations) {
      count(strikes, degradation, perNode);
    }
    for (const Strike& strike : strikes) {
      if (strike.own == nullptr) continue;
      // Who sends over a slow rail finds it: with one end of a link that may be all.
      // And of a whole rail each end may take its own port for it, or the other's.
      const bool grouped = std::ranges::any_of(
          strikes, [&](const Strike& other) { return ofOneRail(*strike.fault, *other.fault); });
      const bool either = mustBeFoundSlow(*strike.fault) || grouped;
      const bool found = strike.ownFindings + strike.peerFindings > 0;
      if (either ? !found : strike.ownFindings == 0) ++strike.own->counts[kNone];
      if (either ? !found : strike.peerFindings == 0) ++strike.peer->counts[kNone];
    }
  }

  /// Counts a verdict; the row that it belongs to, or null where it does not count.
  Counting* counted(std::vector<Strike>& strikes, const reports::Failover& failover, int perNode) {
    Strike* const strike = behind(strikes, failover, perNode);
    Counting* row = nullptr;
    if (strike == nullptr) {
      row = &nothing();
    } else if (strike->own != nullptr) {
      const bool own = failover.rank / perNode == strike->fault->target.node.value_or(-1);
      ++(own ? strike->ownFindings : strike->peerFindings);
      row = own ? strike->own : strike->peer;
      // A link whose other end was blamed has been noticed as well.
      for (Strike& other : strikes) {
        const int node = other.fault->target.node.value_or(-1);
        const bool concerned = node == failover.rank / perNode || node == failover.peer / perNode;
        if (concerned && ofOneRail(*other.fault, *strike->fault)) ++other.peerFindings;
      }
    }
    if (row == nullptr) return row;
    ++row->counts[columnOf(failover.cause, failover.dead_direction)];
    if (strike != nullptr) countPlace(*row, failover, row == strike->own);
    return row;
  }

  /// A fault of one node's link is there for this node and remote for the others; one of the path
  /// between two is for both of them.
  static void countPlace(Counting& row, const reports::Failover& failover, bool own) {
    const std::string_view cause = row.expected.cause;
    if (cause != "path" && cause != "local_nic" && cause != "remote_nic") return;
    const bool placeless = failover.cause == "rail" && row.expected.orRail;
    if (placeless) return;
    const bool right = isRight(row.expected, columnOf(failover.cause, failover.dead_direction));
    const bool there = failover.where == (row.between ? "between" : own ? "local" : "remote");
    const bool unknown = failover.where == "unknown";
    ++(right && there     ? row.places.right
       : right && unknown ? row.places.unknown
                          : row.places.wrong);
  }

  /// Counts a slow rail in the row of the strike that explains it, or where nothing was struck.
  void count(std::vector<Strike>& strikes, const reports::Degradation& degradation, int perNode) {
    const auto strike = std::ranges::find_if(
        strikes, [&](const Strike& one) { return explains(*one.fault, degradation, perNode); });
    if (strike == strikes.end()) {
      // In the wake of another fault: a wrong finding of that one.
      reports::Failover seen;
      seen.rank = degradation.rank;
      seen.peer = degradation.peer;
      seen.rail = degradation.rail;
      seen.detected_ms = seen.fault_ms = degradation.at_ms;
      const Strike* const other = behind(strikes, seen, perNode);
      Counting* const row = other == nullptr ? &nothing() : other->peer;
      if (row != nullptr) ++row->counts[kDegraded];
    } else if (strike->own != nullptr) {
      const bool own = degradation.rank / perNode == strike->fault->target.node.value_or(-1);
      ++(own ? strike->ownFindings : strike->peerFindings);
      ++(own ? strike->own : strike->peer)->counts[kDegraded];
    }
  }

  Strike strikeOf(const reports::Run& run, std::size_t index) {
    const reports::AppliedFault& fault = run.faults[index];
    const bool proved = std::ranges::any_of(run.evidence, [&](const reports::Evidence& evidence) {
      return evidence.fault == static_cast<int>(index) && evidence.ok;
    });
    if (!proved) {
      ++matrix_.unproved;
      return {&fault, nullptr, nullptr};
    }
    ++matrix_.strikes;
    const auto kinds = injector::faultKinds();
    const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
    std::string name = fault.kind;
    injector::Signature signature;
    // What happens on the management network is no reason to give a rail up.
    const bool management = kind != nullptr && kind->target == injector::TargetKind::kLink &&
                            !fault.target.rail.has_value();
    if (kind != nullptr) name = injector::shortName(*kind, fault.parameters);
    if (management) name += " (mgmt)";
    if (kind != nullptr && !management) signature = signatureOf(*kind, fault.parameters);
    if (slowsLink(fault) && !mustBeFoundSlow(fault)) {
      signature.own.orNone = signature.peer.orNone = true;
    }
    const std::size_t order = kind == nullptr ? kinds.size() : kind - kinds.data();
    Counting& own = rowFor(order, name, End::kOwn, signature.own);
    Counting& peer = rowFor(order, name, End::kPeer, signature.peer);
    own.between = peer.between = kind != nullptr && kind->between;
    ++own.strikes;
    ++peer.strikes;
    return {&fault, &own, &peer};
  }

  /// The strike that a failover comes from; null: none.
  static Strike* behind(std::vector<Strike>& strikes, const reports::Failover& failover,
                        int perNode) {
    Strike* const last = latest(strikes, failover, perNode, /*onRail=*/true);
    Strike* const onRail = last == nullptr ? nullptr : meant(strikes, last, failover, perNode);
    Strike* const elsewhere = latest(strikes, failover, perNode, /*onRail=*/false);
    if (onRail == nullptr || elsewhere == nullptr) return onRail != nullptr ? onRail : elsewhere;
    // The aftermath of a fault that was over before processes were stopped.
    return onRail->fault->end_ms < elsewhere->fault->start_ms ? elsewhere : onRail;
  }

  /// Different links of one rail that are struck at one time, as in a rail group.
  static bool ofOneRail(const reports::AppliedFault& a, const reports::AppliedFault& b) {
    if (!a.target.rail || a.target.rail != b.target.rail || a.target.node == b.target.node) {
      return false;
    }
    return a.start_ms <= b.end_ms.value_or(kUntilTheEnd) &&
           b.start_ms <= a.end_ms.value_or(kUntilTheEnd);
  }

  /// Where both ends of a link were struck, the strike that the verdict speaks of: its cause says
  /// at which end. Either is right.
  static Strike* meant(std::vector<Strike>& strikes, Strike* last,
                       const reports::Failover& failover, int perNode) {
    const bool local = failover.cause == "local_nic";
    if (!local && failover.cause != "remote_nic") return last;
    const int node = (local ? failover.rank : failover.peer) / perNode;
    if (last->fault->target.node == node) return last;
    const auto other = std::ranges::find_if(strikes, [&](const Strike& strike) {
      return strike.fault->target.node == node && ofOneRail(*strike.fault, *last->fault);
    });
    return other == strikes.end() ? last : &*other;
  }

  /// Whether it strikes what is between these two nodes.
  static bool concerns(const reports::FaultTarget& target, int a, int b) {
    if (!target.node) return true;
    if (!target.peer) return *target.node == a || *target.node == b;
    return (*target.node == a && *target.peer == b) || (*target.node == b && *target.peer == a);
  }

  /// The latest strike on the rail of a failover that was there at its fault's moment; or of those
  /// on processes and the machine, at the moment of its detection or shortly before.
  static Strike* latest(std::vector<Strike>& strikes, const reports::Failover& failover,
                        int perNode, bool onRail) {
    Strike* found = nullptr;
    for (Strike& strike : strikes) {
      const reports::AppliedFault& fault = *strike.fault;
      const std::optional<int>& rail = fault.target.rail;
      if (!concerns(fault.target, failover.rank / perNode, failover.peer / perNode) ||
          rail.has_value() != onRail || (onRail && *rail != failover.rail))
        continue;
      const std::optional<double> when = onRail ? failover.fault_ms : failover.detected_ms;
      const double end =
          fault.end_ms.value_or(kUntilTheEnd) + (onRail ? 0 : toMilliseconds(kAftermath));
      if (!when || *when < fault.start_ms || *when > end) continue;
      if (found == nullptr || fault.start_ms > found->fault->start_ms) found = &strike;
    }
    return found;
  }

  /// What no fault explains.
  Counting& nothing() {
    return rowFor(kAfterAllKinds, std::string(reports::ConfusionMatrix::kNoFault), End::kNobody,
                  {});
  }

  Counting& rowFor(std::size_t order, const std::string& name, End end,
                   const injector::Finding& expected) {
    Counting& row = rows_[{order, name, end}];
    row.fault = name;
    row.expected = expected;
    return row;
  }

  static void addTimes(Counting& row, const reports::Failover& failover) {
    const auto span = [](std::vector<double>& times, const std::optional<double>& from,
                         const std::optional<double>& to) {
      if (from && to) times.push_back(*to - *from);
    };
    if (failover.timed()) span(row.detection, failover.fault_ms, failover.detected_ms);
    span(row.fence, failover.detected_ms, failover.fenced_ms);
    span(row.redelivery, failover.fenced_ms, failover.resumed_ms);
    row.pause.push_back(failover.pause_ms);
  }

  Row rowOf(const Counting& counting, End end) const {
    Row row;
    row.fault = counting.fault;
    row.end = end == End::kOwn ? "own" : end == End::kPeer ? "peer" : "";
    row.expected = inWords(counting.expected);
    row.judged = counting.expected.cause != injector::kAnyCause;
    row.strikes = counting.strikes;
    for (const std::string& column : matrix_.columns) {
      const auto count = counting.counts.find(column);
      row.counts.push_back(count == counting.counts.end() ? 0 : count->second);
      row.right.push_back(isRight(counting.expected, column));
    }
    row.places = counting.places;
    row.detection_ms = percentilesOf(counting.detection);
    row.fence_ms = percentilesOf(counting.fence);
    row.redelivery_ms = percentilesOf(counting.redelivery);
    row.pause_ms = percentilesOf(counting.pause);
    return row;
  }

  reports::ConfusionMatrix matrix_;
  Rows rows_;
};

}  // namespace

reports::ConfusionMatrix confusionOf(std::span<const reports::ScenarioResult> results) {
  Counter counter;
  for (const reports::ScenarioResult& result : results) {
    std::vector<const reports::Run*> runs;
    for (const reports::Run& run : result.runs) runs.push_back(&run);
    counter.add(result, runs);
  }
  return counter.finish();
}

reports::ConfusionMatrix confusionOf(const reports::ScenarioResult& result,
                                     std::span<const reports::Run* const> runs) {
  Counter counter;
  counter.add(result, runs);
  return counter.finish();
}

}  // namespace faultline::run
