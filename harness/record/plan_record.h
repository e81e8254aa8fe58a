#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "reports/result.h"
#include "wire/rank.h"

namespace faultline::run {

/// The plans that the ranks of a run tell of, and whether all ranks had the same.
class PlanRecord {
 public:
  /// Those of a message of `rank`; `t0`: start of the run.
  void told(int rank, const std::vector<wire::Plan>& plans, TimePoint t0);
  /// The ranks were killed: the next ones count their operations from 0.
  void cutOff();

  /// What is wrong with a plan that not all ranks had at the same operation; empty: nothing.
  /// `ranks`: so many must have told each, as they came to their end; 0: that is not known.
  std::string disagreement(int ranks) const;
  /// Those of rank 0, in the order in which they were told.
  const std::vector<reports::AppliedPlan>& plans() const { return plans_; }

 private:
  /// By communicator and operation: the hash of each rank's.
  using Told = std::map<std::pair<std::uint32_t, std::uint64_t>, std::map<int, std::string>>;

  static std::string difference(const Told& told);

  Told told_;
  std::vector<reports::AppliedPlan> plans_;
  std::string disagreement_;  // of ranks that were killed, the first
};

/// `t0`: start of the run.
reports::PortTest portTestOf(const wire::PortTest& told, TimePoint t0);

}  // namespace faultline::run
