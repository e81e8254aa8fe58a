#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/comm/agreement.h"
#include "resilient_ccl/comm/plan_trials.h"
#include "resilient_ccl/comm/plan_word.h"
#include "resilient_ccl/comm/planned_program.h"
#include "resilient_ccl/comm/probe_lead.h"
#include "resilient_ccl/plan/hysteresis.h"
#include "resilient_ccl/plan/pace.h"
#include "resilient_ccl/plan/plan_change.h"
#include "resilient_ccl/plan/port_findings.h"
#include "resilient_ccl/plan/port_sampler.h"
#include "resilient_ccl/plan/probe_trigger.h"

namespace faultline::comm {

/// What a GroupPlanner asks of the world. None of these may call it back.
class GroupPlannerIo {
 public:
  virtual ~GroupPlannerIo() = default;
  /// `rank`: of the communicator. Words arrive, once and in no order.
  virtual void tell(int rank, const PlanWord& word) = 0;
  /// Somebody must choose a plan, or make that of `choice`, and say `planned` when he has.
  virtual void plan(std::uint64_t healthHash, const plan::HealthVector& health, const PlanKey& key,
                    Choice choice) = 0;
  /// This rank's part of a round must be done, and said `exchanged` of.
  virtual void exchange(const TestRound& round) = 0;
  /// At the coordinator: a test is over.
  virtual void tested(const TestReport& report) = 0;
  /// Ranks do not agree: the job must end, on all of them.
  virtual void failed(const Status& why) = 0;
};

/// Keeps the ranks of one communicator at the same plan for every operation. Rank 0 coordinates:
/// when calls are late, or ports are faster than planned for (plan::ProbeTrigger), it has all stop
/// before one operation and tests the ports (plan::PortTest). A health that differs, by that or by
/// rails that are lost, it proposes, waits until everybody has planned the sizes in use for it, and
/// has it take effect at one operation (plan::PlanChange). The first operation of a size under a
/// health begins when all have said that their plans for it have the same hash; when they have not,
/// the job ends.
///
/// Where there are several candidates for a size, rank 0 tries which is the fastest (PlanTrials);
/// what the size uses is changed in the same way as the health.
///
/// One per rank and communicator, driven by calls; no thread, no clock, no network.
class GroupPlanner : private plan::PlanChangeIo {
 public:
  /// A rank that has not planned the sizes in use after so long is not waited for: the change is
  /// given up, and tried again.
  static constexpr Duration kPlanningPatience = 10s;
  /// Sizes that are planned before a change takes effect: those used last.
  static constexpr std::size_t kSizesInUse = 16;

  /// Of calls of which this share is bandwidth, by the model, it matters how long they take.
  static constexpr double kMostlyBandwidth = 0.5;
  /// A port is faster than planned for when it was seen to carry so many times that: shares are of
  /// what most ports carried in a test, and what is seen is of what was measured at the start.
  static constexpr double kFaster = 1.2;

  /// `ranksPerNode`: as of PlanSettings.
  GroupPlanner(int rank, int ranks, std::uint32_t communicator, int ranksPerNode,
               GroupPlannerIo& io);

  struct Go {
    std::uint64_t operation = 0;
    PlannedProgram planned;  ///< empty for a collective that is not planned
    bool tried = false;      ///< another one may follow: candidates are being tried
    /// The first use of this plan since another one: what it was made for.
    struct First {
      std::uint64_t epoch = 0;
      plan::HealthVector health;
    };
    std::optional<First> first;
  };
  /// The next collective wants to begin; `key`: it is an AllReduce that is planned for. Nothing: it
  /// must wait, and ask again after the next call of any other function.
  std::optional<Go> next(const std::optional<PlanKey>& key, TimePoint now = {});

  /// What was asked of GroupPlannerIo::plan.
  void planned(std::uint64_t healthHash, const PlanKey& key, Choice choice,
               Result<PlannedProgram> result);
  void onWord(int from, const PlanWord& word, TimePoint now);
  /// What was asked of GroupPlannerIo::exchange is over; the path to this rank carried this share
  /// of a whole port, in parts; 0: not known.
  void exchanged(const TestRound& round, std::uint16_t share, TimePoint now);
  /// What this rank has seen.
  void observed(const plan::Observation& seen);
  /// To be called some ten times a second. `given`: the health as somebody knows it; null: as it is
  /// measured.
  void onTick(const plan::HealthVector* given, TimePoint now);
  /// A collective that `next` has let begin is done.
  void done(std::uint64_t operation, TimePoint now);
  /// A test is under way, as far as this rank knows.
  bool testing() const { return change_.paused() || lead_; }

  /// What the next operation is planned for, and how often it has changed.
  const plan::HealthVector& health() const { return agreement().health; }
  std::uint64_t epoch() const { return agreement().epoch; }

  /// Of proposal `number`.
  static std::uint64_t hashOf(std::uint64_t number, const plan::HealthVector& health);
  static std::uint64_t hashOf(std::uint64_t number, std::uint64_t before, const PlanKey& key,
                              const Chosen& chosen);

 private:
  static constexpr int kCoordinator = plan::PlanChange::kCoordinator;
  /// Beyond these, what was kept is planned, or agreed upon, again.
  static constexpr std::size_t kMostPrograms = 256;
  static constexpr std::size_t kMostAgreed = 4096;

  /// What a program is made for.
  struct Use {
    std::uint64_t health = 0;  // its hash
    PlanKey key;
    Choice choice;

    auto operator<=>(const Use&) const = default;
  };
  using Turn = std::pair<std::uint64_t, std::uint64_t>;     // operation, hash of what is in use
  using Votes = std::vector<std::optional<std::uint64_t>>;  // plans' hashes by rank

  void send(int rank, const plan::ChangeMessage& message) override;
  void tellOthers(const PlanWord& word);
  PlanWord word(PlanWord::Kind kind) const { return {.kind = kind, .about = communicator_}; }
  bool coordinates() const { return rank_ == kCoordinator; }
  const Agreement& agreement() const { return known_.at(change_.plan()); }
  Use useOf(const Agreement& agreement, const PlanKey& key) const {
    return {agreement.healthHash, key, agreement.choice(key)};
  }
  bool tells(const Use& use, bool tried);

  plan::HealthVector measured() const;
  plan::ProbeTrigger::Hints hints(TimePoint now) const;
  void noticeHealth();
  void beginTest(TimePoint now);
  void tellWhenIdle(TimePoint now);
  void answer(std::uint64_t test, std::uint32_t round, std::uint16_t share, TimePoint now);
  void answered(int rank, std::uint64_t test, std::uint32_t round, std::uint16_t share,
                TimePoint now);
  void endTest(bool found, TimePoint now);
  void watchTest(TimePoint now);
  void propose(plan::HealthVector health, TimePoint now);
  void healthArrived(const PlanWord& word);
  void tryNext(TimePoint now);
  void propose(const PlanKey& key, const Chosen& chosen, TimePoint now);
  void choiceArrived(const PlanWord& word);
  void chosen(std::uint64_t number, const PlanKey& key, const Chosen& chosen);
  void begin(TimePoint now);
  void proposed(std::uint64_t number, std::uint64_t hash, plan::HealthVector health);
  void prepare(std::uint64_t number, std::uint64_t hash, Agreement proposed,
               const std::vector<PlanKey>& sizes);
  void tellWhenReady();
  void ready(int rank, std::uint64_t number);
  void beginWhenAllReady(TimePoint now);
  void observationArrived(int from, const PlanWord& word);
  void vote(int rank, const Turn& turn, std::uint64_t plan);
  bool agreed(const Turn& turn, const Use& use, std::uint64_t plan);
  void request(const plan::HealthVector& health, const Use& use);
  void inUse(const PlanKey& key);
  void forgetOthers();

  const int rank_;
  const int ranks_;
  const std::uint32_t communicator_;
  const int ranksPerNode_;
  GroupPlannerIo& io_;

  std::map<std::uint64_t, Agreement> known_;  // by hash: current, and proposed
  plan::PlanChange change_;
  std::uint64_t issued_ = 0, ended_ = 0;  // operations
  std::uint64_t idleTold_ = 0;            // the latest pause for which this rank has

  std::map<Use, PlannedProgram> programs_;
  std::set<Use> requested_;
  std::deque<PlanKey> recent_;  // the latest first

  std::set<Use> agreed_;                              // equal on all ranks at the same operation
  std::map<PlanKey, std::pair<Use, bool>> lastTold_;  // by size: plan in use, and whether tried
  std::optional<Turn> told_;     // the turn that this rank has told its plan of
  std::optional<Turn> mayGo_;    // that everybody has the same plan for
  std::map<Turn, Votes> votes_;  // coordinator

  /// Proposal that is being put together, or planned for.
  struct Proposal {
    std::uint64_t number = 0;
    std::uint64_t hash = 0;
    plan::HealthVector health;
    std::vector<bool> has;  // ranks whose health has arrived
    bool complete = false;
    std::vector<Use> sizes;  // to be planned
    bool ready = false;      // and they are
  };
  Proposal proposal_;

  // Coordinator.
  plan::Pace pace_;
  plan::ProbeTrigger trigger_;
  std::optional<ProbeLead> lead_;  // of the test under way
  plan::PortFindings findings_;    // of live rails
  plan::Hysteresis hysteresis_;
  std::uint64_t planFor_;     // the hash of the health that hysteresis_ knows
  bool plannedWhole_ = true;  // that health is of whole ports
  PlanTrials trials_;
  bool healthWaits_ = false;  // for its look at the ports, until no try is under way
  std::vector<plan::Observation> seen_;
  std::vector<std::uint64_t> seenNumber_;
  bool proposing_ = false;
  TimePoint proposedAt_{};
  std::vector<bool> readyRanks_;

  // Observer.
  std::optional<plan::Observation> toldSeen_;
  std::uint64_t observations_ = 0;
};

}  // namespace faultline::comm
