#include "resilient_ccl/channel/prober.h"

namespace faultline::channel {

Prober::Prober(int paths) : sentAt_(kRemembered), paths_(paths) {}

std::uint32_t Prober::beginRound(TimePoint now) {
  ++round_;
  sentAt_[round_ % kRemembered] = now;
  return round_;
}

void Prober::answered(int path, std::uint32_t round, TimePoint now) {
  if (round == 0 || round > round_ || round_ - round >= kRemembered) return;
  Path& own = paths_[path];
  if (round > own.lastAnswered) {
    own.inARow = round == own.lastAnswered + 1 ? own.inARow + 1 : 1;
    own.lastAnswered = round;
    own.laterAnswers = 0;
  }
  if (round <= own.lastCounted) return;  // a repetition, or overtaken: counted at most once
  own.lastCounted = round;
  if (now - sentAt_[round % kRemembered] > kPromptAnswer) return;
  for (std::size_t other = 0; other < paths_.size(); ++other) {
    if (static_cast<int>(other) == path) continue;
    // The probes of the rounds lastAnswered + 1 .. + kProbesToConvict are open on the other path;
    // this answer belongs to a later one.
    if (round > paths_[other].lastAnswered + kProbesToConvict) ++paths_[other].laterAnswers;
  }
}

void Prober::acquit(int path) {
  paths_[path].lastAnswered = round_;
  paths_[path].laterAnswers = 0;
  paths_[path].inARow = 0;
}

}  // namespace faultline::channel
