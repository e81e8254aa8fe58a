#include <algorithm>

#include "resilient_ccl/channel/link.h"

// Paths over which no datagram has ever passed.

namespace faultline::channel {

/// The network of management can carry something as soon as a rail can: the peer is there.
void Link::beginProofs(int rail, TimePoint now) {
  if (!options_.resilient) return;
  proofs_[rail].begin(now, prober_.round());
  PathProof& management = proofs_[options_.rails];
  if (!management.waits()) management.begin(now, prober_.round());
}

bool Link::asksForProof(int path, TimePoint now) const {
  const bool up = path == options_.rails || rails_[path].phase == Phase::kUp;
  return up && proofs_[path].asks(now);
}

void Link::tellProof(int path, bool passes, TimePoint now) {
  const PathProof& proof = proofs_[path];
  io_.pathProved({.path = path,
                  .passes = passes,
                  .direction = passes ? DeadDirection::kUnknown : prober_.deadDirection(path),
                  .rounds = static_cast<int>(prober_.round() - proof.firstRound()),
                  .within = now - proof.since(),
                  .othersAnswer = std::ranges::any_of(proofs_, &PathProof::passed)});
}

void Link::pathAnswered(int path, TimePoint now) {
  if (proofs_[path].pass()) tellProof(path, /*passes=*/true, now);
}

void Link::checkProofs(TimePoint now) {
  const bool nobody = std::ranges::none_of(proofs_, &PathProof::passed);
  for (int path = 0; path < paths(); ++path) {
    PathProof& proof = proofs_[path];
    const bool up = path == options_.rails || rails_[path].phase == Phase::kUp;
    if (!up || !proof.waits()) continue;
    if (prober_.round() - proof.firstRound() < PathProof::kRounds) continue;
    // Rounds that follow each other faster, because a rail is tried, prove nothing sooner.
    if (now - proof.since() < PathProof::kRounds * PathProof::kInterval) continue;
    const bool silent = prober_.reach(path, proof.firstRound()) == Reach::kSilent;
    if (!silent && !(nobody && now - proof.since() >= PathProof::kPatience)) continue;
    proof.tell();
    tellProof(path, /*passes=*/false, now);
  }
}

}  // namespace faultline::channel
