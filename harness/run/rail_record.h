#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "harness/run/damage.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The damage that explains a failure at `when` of this rail between these two nodes.
using DamageLookup =
    std::function<std::optional<Damage>(TimePoint when, int rail, int nodeA, int nodeB)>;

/// What the ranks of a run tell of their rails: failovers, failbacks, slow rails, and what they
/// recorded (`telemetry: on`). Messages in, entries of a result out: no clock, no machine.
class RailRecord {
 public:
  /// `cluster` must live as long as this.
  explicit RailRecord(const scenario::Cluster& cluster) : cluster_(cluster) {}

  /// The lists "failovers", "failbacks", "degradations" and "trace" of a message of `rank`; `t0`:
  /// start of the run. `damage` may be empty.
  void told(int rank, const nlohmann::json& message, TimePoint t0, const DamageLookup& damage);

  /// All of it into the run's entry, each failover with its failback. To be called once, last.
  void finish(reports::Run& run);

 private:
  reports::Failover failoverOf(int rank, const nlohmann::json& message, TimePoint t0,
                               const DamageLookup& damage) const;
  void addDegradation(int rank, const nlohmann::json& change, TimePoint t0);
  void addTrace(int rank, const nlohmann::json& trace, TimePoint t0);
  void matchFailbacks();

  const scenario::Cluster& cluster_;
  std::vector<reports::Failover> failovers_;
  std::vector<reports::Failover> idle_;
  std::vector<reports::Failback> failbacks_;
  std::vector<reports::Degradation> degradations_;
  reports::Telemetry telemetry_;
};

}  // namespace faultline::run
