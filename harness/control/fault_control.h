#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/give_up.h"
#include "harness/control/sampler.h"
#include "harness/control/struck_fault.h"
#include "harness/control/timeline.h"
#include "harness/record/damage.h"
#include "harness/site/cluster.h"
#include "injector/fault.h"
#include "reports/result.h"

namespace faultline::run {

/// Carries the faults of one run through their life: due, applied, observed, reverted, proved; as
/// often as each is repeated, every time with evidence of its own.
class FaultControl {
 public:
  /// Makes and prepares all faults of the scenario, before the measured time. kAborted when it is
  /// told to `stop`; likewise step(), with what was half done taken back.
  static Result<FaultControl> create(const scenario::Scenario& scenario, site::Cluster& cluster,
                                     const GiveUp& stop);
  /// The same, with the faults that `make` makes.
  using MakeFault =
      std::function<Result<std::unique_ptr<injector::Fault>>(const scenario::Fault& fault)>;
  static Result<FaultControl> create(const scenario::Scenario& scenario, const MakeFault& make,
                                     const GiveUp& stop = {});

  // Marks of the workload. Where a fault counts bytes they are read then, and at each step.
  void warmupIteration(int node, std::uint64_t bytes);
  void started(TimePoint t0);
  void iterationBegan(int iteration, TimePoint when, TimePoint seen, Sampler& sampler);
  /// `last`: of a server, the rank has told the request's last token.
  /// `process`: the rank; of programs that are not ours any one, as they count as one job.
  void iterationEnded(int process, int iteration, TimePoint when, Sampler& sampler,
                      bool last = false);

  /// The job is given up at `now`: ranks that have not `ended` (by rank) were still at work, in the
  /// newest iteration or between it and the next.
  void givenUp(TimePoint now, const std::vector<bool>& ended);
  /// Likewise this rank alone, which has given the job up or died.
  void givenUp(TimePoint now, int rank);

  /// Does what is due now: applies, steps, gathers evidence, reverts.
  Status step(TimePoint now, Sampler& sampler);
  /// Ends all faults that are still on: the run is over.
  Status revertAll();
  /// Takes all of them back without waiting for evidence: the user wants to go.
  Status abandon();
  /// Ends those that last until the end of the run: the broken node is being repaired.
  Status endThoseWithoutDuration();

  bool anyActive() const;
  /// The ranks were killed; faults that were not due yet wait for their iteration again.
  void restarted();
  /// What the faults have changed so far.
  FaultChanges changes() const;
  /// Its damages() alone, for who asks each millisecond.
  std::vector<TimePoint> damages() const;

  /// For the result, one entry for every time a fault struck; `t0` is the run's time zero.
  std::vector<reports::AppliedFault> applied(TimePoint t0) const;
  std::vector<reports::Evidence> evidence() const;
  /// Why the run proves nothing, or empty: a fault that struck too seldom, missed, or left no
  /// evidence once.
  std::string invalidBecause() const;

 private:
  /// An iteration is watched, or a strike waits for others to move something.
  bool countsBytes() const;
  /// Tells the trigger what the fault that it waits for has done. False: it waits on.
  bool hasWaited(StruckFault& entry) const;
  /// Another fault is where this one would have to be: it waits.
  bool mustWait(const StruckFault& entry) const;
  Status apply(StruckFault& entry, TimePoint now, const Sampler& sampler);
  /// Ends all of these at the same moment: first the evidence of each, then each is taken back.
  Status end(const std::vector<StruckFault*>& entries, bool observe = true);
  std::vector<StruckFault*> allActive();
  /// Steps all that are on besides meanwhile. Not ok: one of those has failed.
  Status observeLast(StruckFault& entry);
  /// Steps all that are on but this one.
  Status stepOthers(const StruckFault& entry);
  /// `asked`: when it was to end.
  static Status revert(StruckFault& entry, TimePoint asked);
  static void wasIn(StruckFault& entry, int rank, int iteration, TimePoint until);

  std::vector<site::NodeNetwork> network_;
  int ranks_ = 0;
  bool foreign_ = false;                 // programs that are not ours
  std::optional<RequestEnds> requests_;  // of a server
  std::vector<StruckFault> entries_;
  GiveUp stop_;
  std::map<int, TimePoint> begun_;  // iterations, that are not over or a little older
  std::set<int> through_;           // ranks that have ended the latest of them
};

}  // namespace faultline::run
