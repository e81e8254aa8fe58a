#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faultline::plan {

/// What ranks tell each other about a change of plan. It reaches the other end some time, perhaps
/// twice and out of order.
struct ChangeMessage {
  enum class Kind : std::uint8_t {
    kPrepare,   ///< coordinator: issue nothing more, and say how far you are
    kPrepared,  ///< answer: `operation` is the number of operations issued
    kCommit,    ///< coordinator: operations from number `operation` on use the new plan
    kAbandon,   ///< coordinator: go on with the old plan
    kDone,      ///< answer: this rank uses the plan that was decided on
  };
  Kind kind = Kind::kPrepare;
  std::uint32_t change = 0;     ///< number of the change: 1, 2, ...
  std::uint64_t plan = 0;       ///< hash of the new plan: kPrepare
  std::uint64_t operation = 0;  ///< kPrepared, kCommit
};

/// What PlanChange asks of the world. May not call it back.
class PlanChangeIo {
 public:
  virtual ~PlanChangeIo() = default;
  virtual void send(int rank, const ChangeMessage& message) = 0;
};

/// A change of plan in the middle of a job: all ranks use the new plan from one operation on, and
/// none mixes them, although each is at another operation when it hears of it. Two phases, led by
/// rank 0: *prepare* (each rank answers how many operations it has issued and issues nothing new),
/// *commit* at the largest answer. When an answer is missing for too long, rank 0 abandons the
/// change, not the job. Only rank 0 decides, and a next change begins when everybody has carried
/// out the last decision, so that no order of messages can mix two. A rank that is gone ends the
/// job elsewhere.
///
/// A change to the plan that is in use is a pause: all ranks stop before the same operation, until
/// they are told to resume.
///
/// A pure state machine, one per rank and communicator; no clock.
class PlanChange {
 public:
  static constexpr int kCoordinator = 0;
  /// Operations are short against this, and control messages far shorter.
  static constexpr Duration kPatience = 500ms;

  PlanChange(int rank, int ranks, std::uint64_t firstPlan, PlanChangeIo& io);

  /// Coordinator: begins a change, or, with `plan()`, a pause; false when one is under way.
  bool begin(std::uint64_t plan, TimePoint now);

  /// Whether the next operation may be issued now.
  bool mayIssue() const { return !paused() && (!prepared_ || (commitAt_ && issued_ < *commitAt_)); }
  /// Takes the number of the next operation and says which plan it uses. Only when `mayIssue()`.
  struct Issue {
    std::uint64_t operation;
    std::uint64_t plan;
  };
  Issue issue();

  void onMessage(int from, const ChangeMessage& message);
  /// Coordinator: gives a change up whose answers do not come.
  void onTick(TimePoint now);

  /// Pauses that this rank has come to: the same ones on all ranks.
  std::uint64_t pauses() const { return pauses_; }
  bool paused() const { return pauses_ > resumed_; }
  /// The pause with this number is over, or will be when it comes.
  void resume(std::uint64_t pause) { resumed_ = std::max(resumed_, pause); }

  /// A change is under way: at this rank, or, at the coordinator, at any.
  bool underWay() const { return prepared_ || phase_ != Phase::kIdle; }
  std::uint64_t plan() const { return plan_; }
  /// Changes that this rank has carried out; pauses are none.
  std::uint64_t committed() const { return committed_; }
  std::uint64_t abandoned() const { return abandoned_; }

 private:
  /// Of the coordinator.
  enum class Phase : std::uint8_t { kIdle, kPreparing, kDeciding };

  void tellAll(const ChangeMessage& message);
  void decide(const ChangeMessage& decision);
  void takeOver();

  const int rank_;
  const int ranks_;
  PlanChangeIo& io_;

  std::uint64_t plan_;
  std::uint64_t issued_ = 0;
  std::uint32_t decided_ = 0;  // the latest change that this rank knows the decision of
  std::uint64_t committed_ = 0, abandoned_ = 0;
  std::uint64_t pauses_ = 0, resumed_ = 0;

  bool prepared_ = false;  // for change decided_ + 1
  std::uint64_t newPlan_ = 0;
  std::optional<std::uint64_t> commitAt_;

  // Coordinator.
  Phase phase_ = Phase::kIdle;
  std::uint32_t change_ = 0;
  TimePoint begun_{};
  std::vector<bool> answered_;
  int answers_ = 0;
  std::uint64_t furthest_ = 0;
};

}  // namespace faultline::plan
