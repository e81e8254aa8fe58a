#include "resilient_ccl/fabric/triangulation.h"

#include <algorithm>

namespace faultline::fabric {

namespace {

bool any(std::span<const Sight> sights, Reach Sight::*side, Reach reach) {
  return std::ranges::any_of(sights, [&](const Sight& sight) { return sight.*side == reach; });
}

}  // namespace

Where locate(std::span<const Sight> sights) {
  const auto seen = [&](Reach mine, Reach theirs) {
    return std::ranges::any_of(sights, [&](const Sight& sight) {
      // Who answers neither end may be damaged itself: its silence says nothing.
      return sight.mine == mine && sight.theirs == theirs;
    });
  };
  const bool here = any(sights, &Sight::mine, Reach::kAnswers);
  const bool there = any(sights, &Sight::theirs, Reach::kAnswers);
  if (here && there) return Where::kBetween;
  if (here && seen(Reach::kAnswers, Reach::kSilent)) return Where::kRemote;
  if (there && seen(Reach::kSilent, Reach::kAnswers)) return Where::kLocal;
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
    if (witness == self_ || !io_.reachable(witness, rail)) continue;
    if (open.sights.size() == kMostWitnesses) break;
    open.sights.push_back({.witness = witness});
    open.marks.push_back(io_.examine(witness));
    io_.ask(witness, peer, rail);
  }
  if (!open.sights.empty()) cases_.push_back(std::move(open));
}

void Triangulation::asked(int asker, int about, int rail, TimePoint now) {
  if (about == self_ || about == asker || about < 0 || about >= processes_) return;
  if (!io_.reachable(about, rail)) return io_.answer(asker, about, rail, Reach::kUnknown);
  // A peer that asks without end gets its answers, but costs no more than one duty per question.
  std::erase_if(duties_, [&](const Duty& duty) {
    return duty.asker == asker && duty.about == about && duty.rail == rail;
  });
  const Duration patience = rail == kAnyPath ? kExamination : kPatience;
  duties_.push_back({asker, about, rail, io_.examine(about), now + patience});
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
  const bool anyPath = open.rail == kAnyPath;
  bool complete = true;
  for (std::size_t i = 0; i < open.sights.size(); ++i) {
    Sight& sight = open.sights[i];
    if (sight.mine == Reach::kUnknown && !anyPath) {
      sight.mine = io_.reach(sight.witness, open.rail, open.marks[i]);
    }
    complete =
        complete && (anyPath || sight.mine != Reach::kUnknown) && sight.theirs != Reach::kUnknown;
  }
  const bool due = complete || now >= open.deadline;
  if (anyPath) {
    const bool answers = any(open.sights, &Sight::theirs, Reach::kAnswers);
    const bool silent = any(open.sights, &Sight::theirs, Reach::kSilent);
    const Reach reach = answers ? Reach::kAnswers : silent ? Reach::kSilent : Reach::kUnknown;
    if (!due && reach != Reach::kAnswers) return false;
    io_.sought(open.peer, reach);
    return true;
  }
  const Where where = locate(open.sights);
  // What answers once is alive: nothing that is still to come can change "between".
  if (!due && where != Where::kBetween) return false;
  io_.located(open.peer, open.rail, where);
  return true;
}

void Triangulation::onTick(TimePoint now) {
  std::erase_if(duties_, [&](const Duty& duty) {
    Reach reach = io_.reach(duty.about, duty.rail, duty.mark);
    if (reach == Reach::kUnknown && now < duty.deadline) return false;
    // Over one path silence must be told from a process that answers nowhere; over all it is that.
    if (reach == Reach::kUnknown && duty.rail == kAnyPath) reach = Reach::kSilent;
    io_.answer(duty.asker, duty.about, duty.rail, reach);
    return true;
  });
  std::erase_if(cases_, [&](Case& open) { return decided(open, now); });
}

}  // namespace faultline::fabric
