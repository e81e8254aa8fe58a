#include "resilient_ccl/comm/group_planner.h"

#include <algorithm>

#include "base/random.h"

namespace faultline::comm {

using plan::ChangeMessage;
using plan::HealthVector;
using plan::Observation;
using Kind = PlanWord::Kind;

std::uint64_t GroupPlanner::hashOf(std::uint64_t number, const HealthVector& health) {
  std::uint64_t hash = Random::mix(number + 1);
  for (const plan::Health& port : health) {
    hash = Random::mix(hash + (std::uint64_t{port.send} << 16 | port.receive) + 1);
  }
  return hash;
}

GroupPlanner::GroupPlanner(int rank, int ranks, std::uint32_t communicator, int ranksPerNode,
                           GroupPlannerIo& io)
    : rank_(rank),
      ranks_(ranks),
      communicator_(communicator),
      ranksPerNode_(ranksPerNode),
      io_(io),
      change_(rank, ranks, hashOf(0, HealthVector(ranks)), *this),
      findings_(ranks),
      hysteresis_(HealthVector(ranks)),
      planFor_(change_.plan()),
      seen_(ranks),
      seenNumber_(ranks) {
  known_[change_.plan()] = {.health = HealthVector(ranks), .healthHash = change_.plan()};
}

void GroupPlanner::tellOthers(const PlanWord& word) {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) io_.tell(rank, word);
  }
}

void GroupPlanner::send(int rank, const ChangeMessage& message) {
  PlanWord change = word(Kind::kChange);
  change.first = static_cast<std::uint32_t>(message.kind);
  change.detail = message.change;
  change.number = message.operation;
  change.hash = message.plan;
  io_.tell(rank, change);
}

// --- operations ---

std::optional<GroupPlanner::Go> GroupPlanner::next(const std::optional<PlanKey>& key,
                                                   TimePoint now) {
  if (!change_.mayIssue()) return std::nullopt;
  Go go;
  if (key) {
    const Use use = useOf(agreement(), *key);
    inUse(*key);
    const auto found = programs_.find(use);
    if (found == programs_.end()) {
      request(health(), use);
      return std::nullopt;
    }
    go.planned = found->second;
    const Use plan{use.health, key->ofPlan(), use.choice};
    // Here, because the plan changes in other places, too, and not in the same ones on all ranks.
    std::erase_if(agreed_, [&](const Use& old) { return old.health != use.health; });
    if (!agreed_.contains(plan) && !agreed({issued_, change_.plan()}, plan, go.planned.plan.hash)) {
      return std::nullopt;
    }
    const Chosen* const chosen = agreement().chosen(*key);
    const bool mayBeTried = go.planned.plan.candidates.size() > 1 &&
                            agreement().choices.size() < PlanTrials::kMostSizes;
    go.tried = chosen != nullptr ? chosen->tried : mayBeTried;
    if (tells(plan, go.tried)) go.first = {epoch(), health()};
    if (coordinates()) {
      noticeHealth();
      const plan::Plan& best = go.planned.plan;
      // Tries, too: a port that becomes slow must not wait for the end of them. But memory is used
      // for the first time in the first call of a plan.
      const bool judged = !go.first && best.bound >= kMostlyBandwidth * best.predicted;
      if (judged) pace_.began(issued_, best.predicted, now);
      trials_.began(issued_, *key, go.planned.plan, use.choice, now);
    }
  }
  go.operation = change_.issue().operation;
  issued_ = go.operation + 1;
  forgetOthers();
  return go;
}

void GroupPlanner::done(std::uint64_t operation, TimePoint now) {
  ++ended_;
  if (coordinates()) noticeHealth();
  pace_.ended(operation, now);
  trials_.ended(operation, now);
  tellWhenIdle(now);
  tryNext(now);
}

/// All ranks come here for the same operations, because they make the same calls in the same order
/// and change plans at the same one.
bool GroupPlanner::agreed(const Turn& turn, const Use& use, std::uint64_t plan) {
  if (told_ != turn) {
    told_ = turn;
    if (coordinates()) {
      vote(rank_, turn, plan);
    } else {
      PlanWord vote = word(Kind::kPlan);
      vote.number = turn.first;
      vote.detail = turn.second;
      vote.hash = plan;
      io_.tell(kCoordinator, vote);
    }
  }
  if (mayGo_ != turn) return false;
  if (agreed_.size() >= kMostAgreed) agreed_.clear();
  agreed_.insert(use);
  return true;
}

void GroupPlanner::vote(int rank, const Turn& turn, std::uint64_t plan) {
  Votes& votes = votes_[turn];
  votes.resize(static_cast<std::size_t>(ranks_));
  votes[rank] = plan;
  for (int other = 0; other < ranks_; ++other) {
    if (!votes[other] || votes[other] == plan) continue;
    const int low = std::min(rank, other), high = std::max(rank, other);
    return io_.failed(errorf(
        Code::kInvalidArgument,
        "operation {} of communicator {}: rank {} has the plan {:016x} for it and rank {} the plan "
        "{:016x}; all ranks must reduce the same count of the same type, and be given the same "
        "algorithm",
        turn.first, communicator_, low, *votes[low], high, *votes[high]));
  }
  if (!std::ranges::all_of(votes, [](const auto& one) { return one.has_value(); })) return;
  // Not all of this operation: some may have told their plans after a change already.
  std::erase_if(votes_,
                [&](const auto& it) { return it.first.first < turn.first || it.first == turn; });
  PlanWord go = word(Kind::kAgreed);
  go.number = turn.first;
  go.detail = turn.second;
  tellOthers(go);
  if (told_ == turn) mayGo_ = turn;
}

void GroupPlanner::inUse(const PlanKey& key) {
  if (!recent_.empty() && recent_.front() == key) return;
  std::erase(recent_, key);
  recent_.push_front(key);
  if (recent_.size() > kSizesInUse) recent_.pop_back();
}

void GroupPlanner::request(const HealthVector& health, const Use& use) {
  if (requested_.insert(use).second) io_.plan(use.health, health, use.key, use.choice);
}

void GroupPlanner::planned(std::uint64_t healthHash, const PlanKey& key, Choice choice,
                           Result<PlannedProgram> result) {
  const Use use{healthHash, key, choice};
  if (requested_.erase(use) == 0) return;
  if (!result.ok()) {
    return io_.failed(result.status().withContext(
        fmt::format("plan a collective ({}) of {} elements in communicator {}",
                    schedule::collectiveName(key.collective), key.elements, communicator_)));
  }
  if (programs_.size() >= kMostPrograms) programs_.clear();
  programs_[use] = std::move(*result);
  tellWhenReady();
}

void GroupPlanner::forgetOthers() {
  const auto old = [this](const auto& it) {
    return it.first != change_.plan() && it.first != proposal_.hash;
  };
  if (std::erase_if(known_, old) == 0) return;
  const auto unused = [this](const Use& use) {
    return std::ranges::none_of(known_,
                                [&](const auto& it) { return it.second.healthHash == use.health; });
  };
  std::erase_if(programs_, [&](const auto& it) { return unused(it.first); });
  std::erase_if(requested_, unused);
}

// --- changes of health ---

void GroupPlanner::begin(TimePoint now) {
  proposing_ = true;
  proposedAt_ = now;
  readyRanks_.assign(static_cast<std::size_t>(ranks_), false);
}

void GroupPlanner::propose(HealthVector health, TimePoint now) {
  begin(now);
  const std::uint64_t number = proposal_.number + 1;
  PlanWord part = word(Kind::kHealth);
  part.number = number;
  part.hash = hashOf(number, health);
  for (std::size_t first = 0; first < health.size(); first += PlanWord::kMostEntries) {
    part.first = static_cast<std::uint32_t>(first);
    part.count =
        static_cast<std::uint32_t>(std::min(PlanWord::kMostEntries, health.size() - first));
    for (std::uint32_t i = 0; i < part.count; ++i) {
      part.entries[i] = {.send = health[first + i].send, .receive = health[first + i].receive};
    }
    tellOthers(part);
  }
  proposed(number, part.hash, std::move(health));
}

void GroupPlanner::healthArrived(const PlanWord& word) {
  if (word.number < proposal_.number || (word.number == proposal_.number && proposal_.complete) ||
      word.first + word.count > static_cast<std::uint32_t>(ranks_)) {
    return;
  }
  if (word.number > proposal_.number) {
    proposal_ = {.number = word.number,
                 .hash = word.hash,
                 .health = HealthVector(ranks_),
                 .has = std::vector<bool>(ranks_),
                 .sizes = {}};
  }
  for (std::uint32_t i = 0; i < word.count; ++i) {
    proposal_.health[word.first + i] = {word.entries[i].send, word.entries[i].receive};
    proposal_.has[word.first + i] = true;
  }
  if (!std::ranges::all_of(proposal_.has, [](bool has) { return has; })) return;
  const std::uint64_t own = hashOf(word.number, proposal_.health);
  if (own != word.hash) {
    return io_.failed(errorf(Code::kInternal,
                             "communicator {}: rank {} proposes a health with hash {:016x}, of "
                             "which rank {} has {:016x}",
                             communicator_, kCoordinator, word.hash, rank_, own));
  }
  proposed(word.number, word.hash, std::move(proposal_.health));
}

/// What was found out about sizes was under another health.
void GroupPlanner::proposed(std::uint64_t number, std::uint64_t hash, HealthVector health) {
  prepare(number, hash, {.health = std::move(health), .healthHash = hash, .epoch = epoch() + 1},
          {recent_.begin(), recent_.end()});
}

void GroupPlanner::prepare(std::uint64_t number, std::uint64_t hash, Agreement proposed,
                           const std::vector<PlanKey>& sizes) {
  proposal_ = {
      .number = number, .hash = hash, .health = {}, .has = {}, .complete = true, .sizes = {}};
  const Agreement& next = known_[hash] = std::move(proposed);
  for (const PlanKey& key : sizes) proposal_.sizes.push_back(useOf(next, key));
  for (const Use& use : proposal_.sizes) {
    if (!programs_.contains(use)) request(next.health, use);
  }
  tellWhenReady();
}

void GroupPlanner::tellWhenReady() {
  if (!proposal_.complete || proposal_.ready) return;
  for (const Use& use : proposal_.sizes) {
    if (requested_.contains(use)) return;
  }
  proposal_.ready = true;
  if (coordinates()) return ready(rank_, proposal_.number);
  PlanWord done = word(Kind::kReady);
  done.number = proposal_.number;
  io_.tell(kCoordinator, done);
}

void GroupPlanner::ready(int rank, std::uint64_t number) {
  if (proposing_ && number == proposal_.number) readyRanks_[rank] = true;
}

void GroupPlanner::beginWhenAllReady(TimePoint now) {
  if (!proposing_ || !std::ranges::all_of(readyRanks_, [](bool ready) { return ready; })) return;
  proposing_ = !change_.begin(proposal_.hash, now);
}

// --- health ---

/// What was found out under another health is forgotten, before anything follows from it.
void GroupPlanner::noticeHealth() {
  if (planFor_ == agreement().healthHash) return;
  planFor_ = agreement().healthHash;
  pace_.forget();
  trials_.forget(plannedWhole_);
  hysteresis_.planned(health());
  plannedWhole_ = std::ranges::all_of(
      health(), [](const plan::Health& port) { return port == plan::Health{}; });
}

void GroupPlanner::onTick(const HealthVector* given, TimePoint now) {
  if (!coordinates()) return;
  beginWhenAllReady(now);
  change_.onTick(now);
  watchTest(now);
  noticeHealth();
  if (proposing_ && now - proposedAt_ >= kPlanningPatience) proposing_ = false;
  healthWaits_ = proposing_ || change_.underWay();
  if (healthWaits_ || lead_) return;
  const HealthVector measured = given != nullptr ? *given : this->measured();
  const bool changed = given != nullptr ? measured != health() : hysteresis_.observe(measured, now);
  if (changed) return propose(measured, now);
  // Rails that have just been lost need no test.
  if (given == nullptr && !hysteresis_.differs() && trigger_.due(hints(now), now)) beginTest(now);
  tryNext(now);
}

// --- tests of the ports ---

/// What the last test has found of rails that live, and the rails that do.
HealthVector GroupPlanner::measured() const {
  HealthVector health;
  for (int rank = 0; rank < ranks_; ++rank) {
    const double live = plan::fraction(seen_[rank].live);
    const plan::PortShare& share = findings_.shares()[rank];
    health.push_back({.send = plan::quantise(live * share.send),
                      .receive = plan::quantise(live * share.receive)});
  }
  return health;
}

plan::ProbeTrigger::Hints GroupPlanner::hints(TimePoint now) const {
  plan::ProbeTrigger::Hints hints{.lateness = pace_.lateness(now), .doubted = findings_.doubted()};
  for (int rank = 0; rank < ranks_; ++rank) {
    const Observation& seen = seen_[rank];
    const auto side = [&](double share, std::uint16_t parts) {
      if (share == 1) return;
      hints.slowed = true;
      const double planned = share * plan::fraction(seen.live);
      if (plan::fraction(parts) > kFaster * planned) hints.faster = true;
    };
    side(findings_.shares()[rank].send, seen.send);
    side(findings_.shares()[rank].receive, seen.receive);
  }
  return hints;
}

void GroupPlanner::beginTest(TimePoint now) {
  plan::PortTest ports(findings_.sure(), ranksPerNode_);
  if (!ports.nextShift()) return;  // there is no network between the ranks
  lead_.emplace(change_.pauses() + 1, std::move(ports), ranks_, pace_.lateness(now), now);
  change_.begin(change_.plan(), now);
  tellWhenIdle(now);
}

void GroupPlanner::tellWhenIdle(TimePoint now) {
  if (!change_.paused() || issued_ != ended_ || idleTold_ == change_.pauses()) return;
  idleTold_ = change_.pauses();
  answer(idleTold_, 0, 0, now);
}

void GroupPlanner::exchanged(const TestRound& round, std::uint16_t share, TimePoint now) {
  answer(round.test, round.round, share, now);
}

void GroupPlanner::answer(std::uint64_t test, std::uint32_t round, std::uint16_t share,
                          TimePoint now) {
  if (coordinates()) return answered(rank_, test, round, share, now);
  PlanWord answer = word(Kind::kTestAnswer);
  answer.number = test;
  answer.first = round;
  answer.detail = share;
  io_.tell(kCoordinator, answer);
}

void GroupPlanner::answered(int rank, std::uint64_t test, std::uint32_t round, std::uint16_t share,
                            TimePoint now) {
  if (!lead_) return;
  lead_->answer(rank, test, round, plan::fraction(share));
  if (!lead_->allAnswered()) return;
  const auto next = lead_->next(now);
  if (!next) return endTest(true, now);
  PlanWord begin = word(Kind::kTestRound);
  begin.number = next->test;
  begin.first = next->round;
  begin.detail = static_cast<std::uint64_t>(next->shift);
  tellOthers(begin);
  io_.exchange(*next);
}

void GroupPlanner::endTest(bool found, TimePoint now) {
  // One that never began leaves its number to the next.
  if (change_.pauses() >= lead_->test()) {
    PlanWord over = word(Kind::kTestOver);
    over.number = lead_->test();
    tellOthers(over);
    change_.resume(over.number);
  }
  const bool changed = found && findings_.found(lead_->ports().shares());
  io_.tested(lead_->report(issued_, found, changed, now));
  lead_.reset();
  trigger_.tested(changed, now);
  if (changed) propose(measured(), now);
}

/// One that was not begun, because an answer to that was missing, or that somebody does not get on
/// with, is given up. What is told of it later comes too late.
void GroupPlanner::watchTest(TimePoint now) {
  if (!lead_) return;
  const bool abandoned = !change_.underWay() && change_.pauses() < lead_->test();
  if (abandoned || lead_->takesTooLong(now)) endTest(false, now);
}

// --- words ---

void GroupPlanner::observed(const Observation& seen) {
  if (coordinates()) {
    seen_[rank_] = seen;
    return;
  }
  if (toldSeen_ == seen) return;
  toldSeen_ = seen;
  PlanWord told = word(Kind::kObserved);
  told.number = ++observations_;
  told.detail = seen.live;
  told.count = 1;
  told.entries[0] = {.send = seen.send, .receive = seen.receive};
  io_.tell(kCoordinator, told);
}

void GroupPlanner::observationArrived(int from, const PlanWord& word) {
  if (word.number < seenNumber_[from] || word.detail == 0 || word.detail > plan::Health::kWhole ||
      word.count != 1) {
    return;
  }
  seenNumber_[from] = word.number;
  seen_[from] = {.live = static_cast<std::uint16_t>(word.detail),
                 .send = word.entries[0].send,
                 .receive = word.entries[0].receive};
}

void GroupPlanner::onWord(int from, const PlanWord& word, TimePoint now) {
  const bool toCoordinator = word.kind == Kind::kObserved || word.kind == Kind::kReady ||
                             word.kind == Kind::kPlan || word.kind == Kind::kTestAnswer;
  if (toCoordinator && !coordinates()) return;
  switch (word.kind) {
    case Kind::kObserved:
      return observationArrived(from, word);
    case Kind::kHealth:
      if (from == kCoordinator && !coordinates()) healthArrived(word);
      return;
    case Kind::kChoice:
      if (from == kCoordinator && !coordinates()) choiceArrived(word);
      return;
    case Kind::kReady:
      ready(from, word.number);
      return beginWhenAllReady(now);
    case Kind::kChange:
      change_.onMessage(from, {.kind = static_cast<ChangeMessage::Kind>(word.first),
                               .change = static_cast<std::uint32_t>(word.detail),
                               .plan = word.hash,
                               .operation = word.number});
      return tellWhenIdle(now);
    case Kind::kPlan:
      return vote(from, {word.number, word.detail}, word.hash);
    case Kind::kAgreed:
      // Late, when the plans have been changed meanwhile.
      if (told_ == Turn{word.number, word.detail}) mayGo_ = told_;
      return;
    case Kind::kTestRound:
      // Also of a test that has been given up: others wait for the messages.
      if (from == kCoordinator && word.detail > 0 &&
          word.detail < static_cast<std::uint64_t>(ranks_)) {
        io_.exchange({word.number, word.first, static_cast<int>(word.detail)});
      }
      return;
    case Kind::kTestAnswer:
      return answered(from, word.number, word.first,
                      static_cast<std::uint16_t>(std::min<std::uint64_t>(word.detail, 0xffff)),
                      now);
    case Kind::kTestOver:
      if (from == kCoordinator) change_.resume(word.number);
      return;
  }
}

}  // namespace faultline::comm
