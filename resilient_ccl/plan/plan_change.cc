#include "resilient_ccl/plan/plan_change.h"

#include <algorithm>
#include <cassert>

namespace faultline::plan {

using Kind = ChangeMessage::Kind;

PlanChange::PlanChange(int rank, int ranks, std::uint64_t firstPlan, PlanChangeIo& io)
    : rank_(rank), ranks_(ranks), io_(io), plan_(firstPlan) {}

void PlanChange::tellAll(const ChangeMessage& message) {
  answered_.assign(static_cast<std::size_t>(ranks_), false);
  answered_[kCoordinator] = true;
  answers_ = 1;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != kCoordinator) io_.send(rank, message);
  }
}

bool PlanChange::begin(std::uint64_t plan, TimePoint now) {
  assert(rank_ == kCoordinator);
  if (underWay()) return false;
  phase_ = Phase::kPreparing;
  change_ = decided_ + 1;
  begun_ = now;
  newPlan_ = plan;
  prepared_ = true;
  furthest_ = issued_;
  tellAll({.kind = Kind::kPrepare, .change = change_, .plan = plan});
  if (ranks_ == 1) decide({.kind = Kind::kCommit, .change = change_, .operation = furthest_});
  return true;
}

void PlanChange::decide(const ChangeMessage& decision) {
  phase_ = Phase::kDeciding;
  tellAll(decision);
  if (answers_ == ranks_) phase_ = Phase::kIdle;
  if (decision.kind == Kind::kCommit) {
    commitAt_ = decision.operation;
    takeOver();
  } else {
    prepared_ = false;
    ++abandoned_;
  }
  decided_ = decision.change;
}

/// The new plan is the plan once this rank has issued all operations before it.
void PlanChange::takeOver() {
  if (!commitAt_ || issued_ < *commitAt_) return;
  ++(newPlan_ == plan_ ? pauses_ : committed_);
  plan_ = newPlan_;
  prepared_ = false;
  commitAt_.reset();
  if (rank_ != kCoordinator) io_.send(kCoordinator, {.kind = Kind::kDone, .change = decided_});
}

PlanChange::Issue PlanChange::issue() {
  assert(mayIssue());
  const Issue result{.operation = issued_++, .plan = plan_};
  takeOver();
  return result;
}

void PlanChange::onMessage(int from, const ChangeMessage& message) {
  switch (message.kind) {
    case Kind::kPrepare:
      if (message.change != decided_ + 1) return;  // decided meanwhile: late, or repeated
      prepared_ = true;
      newPlan_ = message.plan;
      io_.send(kCoordinator,
               {.kind = Kind::kPrepared, .change = message.change, .operation = issued_});
      return;
    case Kind::kCommit:
    case Kind::kAbandon:
      if (message.change == decided_ + 1) {
        decided_ = message.change;
        if (message.kind == Kind::kCommit) {
          commitAt_ = message.operation;
          takeOver();
        } else {
          prepared_ = false;
          ++abandoned_;
          io_.send(kCoordinator, {.kind = Kind::kDone, .change = decided_});
        }
      }
      return;
    case Kind::kPrepared:
    case Kind::kDone: {
      const Phase expected = message.kind == Kind::kPrepared ? Phase::kPreparing : Phase::kDeciding;
      if (phase_ != expected || message.change != change_) return;
      const auto answer = answered_.begin() + from;
      if (*answer) return;
      *answer = true;
      ++answers_;
      furthest_ = std::max(furthest_, message.operation);
      if (answers_ < ranks_) return;
      if (phase_ == Phase::kDeciding) {
        phase_ = Phase::kIdle;
      } else {
        decide({.kind = Kind::kCommit, .change = change_, .operation = furthest_});
      }
      return;
    }
  }
}

void PlanChange::onTick(TimePoint now) {
  if (phase_ != Phase::kPreparing || now - begun_ < kPatience) return;
  decide({.kind = Kind::kAbandon, .change = change_});
}

}  // namespace faultline::plan
