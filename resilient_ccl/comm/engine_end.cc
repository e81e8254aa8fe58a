// How work ends that does not get done, and how a process leaves: deadlines, failures, goodbyes.
// All on the progress thread.

#include <algorithm>
#include <string>

#include "resilient_ccl/comm/engine.h"
#include "resilient_ccl/comm/engine_word.h"
#include "resilient_ccl/comm/point_to_point.h"

namespace faultline::comm {

void Engine::checkDeadlines() {
  if (failure_) return;
  if (rollCall_ && rollCall_->over(now())) {
    return fail(errorf(Code::kDeadlineExceeded,
                       "collective {} of communicator {} is not done within {}: {}",
                       rollCall_->number(), rollCall_->communicator(),
                       formatDuration(options_.collectiveTimeout), rollCall_->result()));
  }
  if (rollCall_) return;
  const auto isOld = [this, time = now()](TimePoint called) {
    return time - called > options_.collectiveTimeout;
  };
  const auto oldest = std::ranges::min_element(
      running_, {}, [](const auto& running) { return running.second.began; });
  if (oldest != running_.end() && isOld(oldest->second.began)) {
    const Running& late = oldest->second;
    return overdue(*late.group, late.number, late.program.get());
  }
  for (const auto& group : groups_) {
    if (group->held().empty() || !isOld(group->held().front().called)) continue;
    return overdue(*group, group->held().front().job.number, nullptr);
  }
}

/// `program`: of a message between two; else it is not needed.
void Engine::overdue(const Group& group, std::uint64_t number, const Program* program) {
  if (isPointToPoint(number)) {
    const Program::Step& step = program->lanes()[0].steps[0];
    return fail(errorf(Code::kDeadlineExceeded,
                       "a message {} rank {} is not done within {}: it takes no part",
                       step.kind == schedule::OpKind::kSend ? "to" : "from",
                       group.members()[step.peer], formatDuration(options_.collectiveTimeout)));
  }
  rollCall_.emplace(group.id(), number, group.members(), now());
  const EngineWord question{.kind = EngineWord::Kind::kRollCall, .about = group.id()};
  for (const int member : group.members()) {
    if (member != options_.rank) fabric_->tell(member, question.bytes());
  }
  rollCall_->present(options_.rank, group.begun());
}

/// Nobody goes before everybody has said goodbye and been told: who is missed then is not missed.
/// Who has been told once needs nothing more: it may be gone before others are, and what its end
/// does to the rails is told to nobody.
void Engine::takeLeave() {
  if (!leaveBy_) {
    leaveBy_ = now() + options_.setupTimeout;
    doubtFrom_ = now() + kGoodbyeTime;
    for (int rank = 0; rank < options_.size; ++rank) {
      if (rank == options_.rank) continue;
      fabric_->tell(rank, EngineWord{.kind = EngineWord::Kind::kGoodbye}.bytes());
      untold_.insert(rank);
    }
  }
  if (givenUp_) return part(*failure_);
  std::erase_if(untold_, [this](int rank) { return fabric_->told(rank); });
  const bool allSaid = std::ssize(goodbyes_) == options_.size - 1;
  if (allSaid && untold_.empty()) return part(okStatus());
  if (allSaid && now() >= doubtFrom_) {
    // They had our goodbye, or they would have stayed; it is their acknowledgement that was lost.
    for (const int rank : untold_) fabric_->doubt(rank);
  }
  if (now() < *leaveBy_) return;
  if (allSaid) return part(okStatus());  // somebody has left, and its host does not say so
  std::string missing;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank || goodbyes_.contains(rank)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  part(errorf(Code::kDeadlineExceeded, "rank(s) {} did not say goodbye within {}", missing,
              formatDuration(options_.setupTimeout)));
}

void Engine::part(const Status& how) {
  const std::lock_guard lock(mutex_);
  if (!parted_) parted_ = how;
  partedNow_.notify_all();
}

void Engine::fail(const Status& why, bool toldByPeer) {
  if (givenUp_ || (failure_ && !toldByPeer)) return;
  if (!failure_) failedAt_ = now();
  // As long as the others will have it.
  const Status named =
      toldByPeer ? why
                 : Status(why.code(), fmt::format("rank {}: {}", options_.rank, why.message())
                                          .substr(0, fabric::Fabric::kLongestReason));
  if (!toldByPeer) fabric_->abort(named.message());  // else its author has told everybody
  // Several may have noticed at once. All take the same word.
  if (!failure_ || named.message() < failure_->message()) failure_ = named;
}

void Engine::giveUp() {
  givenUp_ = true;
  fabric_->shutDown();  // the callers get their buffers back, and staging memory goes
  reducer_.drop();
  for (auto& [tag, running] : running_) running.work->complete(*failure_);
  running_.clear();
  for (const auto& group : groups_) {
    for (const Group::Command& command : group->held()) command.work->complete(*failure_);
    group->held().clear();
  }
}

}  // namespace faultline::comm
