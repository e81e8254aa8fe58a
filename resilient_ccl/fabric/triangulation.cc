#include "resilient_ccl/fabric/triangulation.h"

#include <algorithm>

namespace faultline::fabric {

Where locate(std::span<const Sight> sights) {
  const auto any = [&](Reach Sight::*side, Reach reach) {
    return std::ranges::any_of(sights, [&](const Sight& sight) { return sight.*side == reach; });
  };
  const auto view = [&](Reach Sight::*side) {
    if (any(side, Reach::kAnswers)) return Reach::kAnswers;
    return any(side, Reach::kSilent) ? Reach::kSilent : Reach::kUnknown;
  };
  const Reach mine = view(&Sight::mine);
  const Reach theirs = view(&Sight::theirs);
  if (mine == Reach::kAnswers && theirs == Reach::kAnswers) return Where::kBetween;
  if (mine == Reach::kAnswers && theirs == Reach::kSilent) return Where::kRemote;
  if (mine == Reach::kSilent && theirs == Reach::kAnswers) return Where::kLocal;
  return Where::kUnknown;
}

void Triangulation::begin(int peer, int rail, TimePoint now) {
  if (std::ranges::any_of(cases_,
                          [&](const Case& it) { return it.peer == peer && it.rail == rail; })) {
    return;
  }
  Case open{.peer = peer, .rail = rail, .deadline = now + kDeadline, .sights = {}, .marks = {}};
  open.sights.reserve(kMostWitnesses);
  open.marks.reserve(kMostWitnesses);
  // The processes behind the peer: different peers have different witnesses.
  for (int step = 1; step < processes_; ++step) {
    const int witness = (peer + step) % processes_;
    if (witness == self_ || !io_.reachable(witness)) continue;
    if (open.sights.size() == kMostWitnesses) break;
    open.sights.push_back({.witness = witness});
    open.marks.push_back(io_.examine(witness));
    io_.ask(witness, peer, rail);
  }
  if (!open.sights.empty()) cases_.push_back(std::move(open));
}

void Triangulation::asked(int asker, int about, int rail, TimePoint now) {
  if (about == self_ || about == asker || about < 0 || about >= processes_) return;
  if (!io_.reachable(about)) return io_.answer(asker, about, rail, Reach::kUnknown);
  // A peer that asks without end gets its answers, but costs no more than one duty per question.
  std::erase_if(duties_, [&](const Duty& duty) {
    return duty.asker == asker && duty.about == about && duty.rail == rail;
  });
  duties_.push_back({asker, about, rail, io_.examine(about), now + kExamination});
}

void Triangulation::answered(int witness, int about, int rail, Reach reach) {
  for (Case& open : cases_) {
    if (open.peer != about || open.rail != rail) continue;
    for (Sight& sight : open.sights) {
      if (sight.witness == witness) sight.theirs = reach;
    }
  }
}

bool Triangulation::decided(Case& open, TimePoint now) {
  bool complete = true;
  for (std::size_t i = 0; i < open.sights.size(); ++i) {
    Sight& sight = open.sights[i];
    if (sight.mine == Reach::kUnknown) {
      sight.mine = io_.reach(sight.witness, open.rail, open.marks[i]);
    }
    complete = complete && sight.mine != Reach::kUnknown && sight.theirs != Reach::kUnknown;
  }
  const Where where = locate(open.sights);
  // What answers once is alive: nothing that is still to come can change "between".
  if (!complete && where != Where::kBetween && now < open.deadline) return false;
  io_.located(open.peer, open.rail, where);
  return true;
}

void Triangulation::onTick(TimePoint now) {
  std::erase_if(duties_, [&](const Duty& duty) {
    const Reach reach = io_.reach(duty.about, duty.rail, duty.mark);
    if (reach == Reach::kUnknown && now < duty.deadline) return false;
    io_.answer(duty.asker, duty.about, duty.rail, reach);
    return true;
  });
  std::erase_if(cases_, [&](Case& open) { return decided(open, now); });
}

}  // namespace faultline::fabric
