#include "resilient_ccl/channel/prober.h"

namespace faultline::channel {

Prober::Prober(int paths) : sentAt_(kRemembered), paths_(paths) {}

std::uint32_t Prober::beginRound(TimePoint now) {
  ++round_;
  sentAt_[round_ % kRemembered] = now;
  return round_;
}

std::optional<TimePoint> Prober::sentAt(std::uint32_t round) const {
  if (round == 0 || round > round_ || round_ - round >= kRemembered) return std::nullopt;
  return sentAt_[round % kRemembered];
}

void Prober::answered(int path, std::uint32_t round, TimePoint now) {
  if (round == 0 || round > round_ || round_ - round >= kRemembered) return;
  answered_.note(path, round);
  Path& own = paths_[path];
  if (round > own.lastAnswered) {
    const bool next = round == own.lastAnswered + 1;
    own.inARow = next ? own.inARow + 1 : 1;
    const Duration overtaken =
        sentAt_[round % kRemembered] - sentAt_[(own.lastAnswered + 1) % kRemembered];
    own.lostRounds = own.lostRounds || (!next && overtaken >= kOrderKept);
    own.lastAnswered = round;
    own.answeredAt = now;
    own.laterAnswers = 0;
  }
  if (round <= own.lastCounted) return;  // a repetition, or overtaken: counted at most once
  own.lastCounted = round;
  if (now - sentAt_[round % kRemembered] > kPromptAnswer) return;
  for (std::size_t other = 0; other < paths_.size(); ++other) {
    if (static_cast<int>(other) == path) continue;
    // The probes of the rounds lastAnswered + 1 .. + kProbesToConvict are open on the other path;
    // this answer belongs to a later one.
    Path& accused = paths_[other];
    const bool together = now - accused.lastProof < kProofsApart;
    if (round <= accused.lastAnswered + kProbesToConvict || together) continue;
    ++accused.laterAnswers;
    accused.lastProof = now;
  }
}

void Prober::acquit(int path) {
  paths_[path].lastAnswered = round_;
  paths_[path].laterAnswers = 0;
  paths_[path].inARow = 0;
  paths_[path].lostRounds = false;
}

void Prober::countAgain(int path) { paths_[path].inARow = 0; }

void Prober::reported(const Hearing& heardThere) {
  const bool newer = heardThere.newest >= heardThere_.newest && heardThere.newest <= round_;
  if (newer) heardThere_ = heardThere;
}

Reach Prober::reach(int path, std::uint32_t after) const {
  if (answered_.heardSince(path, after)) return Reach::kAnswers;
  return answered_.silent(path, after) ? Reach::kSilent : Reach::kUnknown;
}

DeadDirection Prober::deadDirection(int path) const {
  const bool outgoing = heardThere_.silent(path);
  const bool incoming = heardHere_.silent(path);
  if (outgoing && incoming) return DeadDirection::kBoth;
  if (outgoing) return DeadDirection::kOutgoing;
  return incoming ? DeadDirection::kIncoming : DeadDirection::kUnknown;
}

}  // namespace faultline::channel
