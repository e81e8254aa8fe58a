#include <algorithm>
#include <iterator>

#include "base/random.h"
#include "resilient_ccl/comm/group_planner.h"

// What a GroupPlanner does about candidates: one size at a time uses another one.

namespace faultline::comm {

using plan::HealthVector;
using Kind = PlanWord::Kind;

std::uint64_t GroupPlanner::hashOf(std::uint64_t number, std::uint64_t before, const PlanKey& key,
                                   const Chosen& chosen) {
  std::uint64_t hash = Random::mix(number + 1);
  const auto add = [&hash](std::uint64_t word) { hash = Random::mix(hash + word + 1); };
  add(before);
  add(static_cast<std::uint64_t>(key.elements));
  add(static_cast<std::uint64_t>(key.elementSize));
  add(std::uint64_t{chosen.choice.algorithm} << 16 | chosen.choice.segments);
  add(chosen.tried ? 1 : 0);
  return hash;
}

/// Whether it is another plan, or another reason for it, than that of the call of this size before.
bool GroupPlanner::tells(const Use& use, bool tried) {
  std::erase_if(lastTold_, [&](const auto& it) { return it.second.first.health != use.health; });
  if (lastTold_.size() >= kMostAgreed) lastTold_.clear();
  const std::pair now(use, tried);
  const auto [told, isNew] = lastTold_.try_emplace(use.key, now);
  const bool differs = told->second != now;
  told->second = now;
  return isNew || differs;
}

/// Not while anything else is being changed, and not before the ports have been looked at.
void GroupPlanner::tryNext(TimePoint now) {
  if (!coordinates() || proposing_ || change_.underWay() || healthWaits_ || lead_) return;
  if (hysteresis_.differs()) return;
  if (const auto wish = trials_.next(agreement())) propose(wish->key, wish->chosen, now);
}

void GroupPlanner::propose(const PlanKey& key, const Chosen& wanted, TimePoint now) {
  begin(now);
  const std::uint64_t number = proposal_.number + 1;
  PlanWord choice = word(Kind::kChoice);
  choice.number = number;
  choice.hash = hashOf(number, change_.plan(), key, wanted);
  choice.detail = static_cast<std::uint64_t>(key.elements);
  choice.first = static_cast<std::uint32_t>(key.elementSize);
  choice.count = 2;
  choice.entries[0] = {wanted.choice.algorithm, wanted.choice.segments};
  choice.entries[1].send = wanted.tried ? 1 : 0;
  tellOthers(choice);
  chosen(number, key, wanted);
}

void GroupPlanner::choiceArrived(const PlanWord& word) {
  if (word.number <= proposal_.number || word.count != 2) return;
  const PlanKey key{static_cast<std::int64_t>(word.detail), static_cast<Bytes>(word.first), false};
  const Chosen wanted{{word.entries[0].send, word.entries[0].receive}, word.entries[1].send != 0};
  const std::uint64_t own = hashOf(word.number, change_.plan(), key, wanted);
  if (own != word.hash) {
    return io_.failed(errorf(Code::kInternal,
                             "communicator {}: rank {} proposes a choice with hash {:016x}, of "
                             "which rank {} has {:016x}",
                             communicator_, kCoordinator, word.hash, rank_, own));
  }
  chosen(word.number, key, wanted);
}

/// What is in use, but for one size.
void GroupPlanner::chosen(std::uint64_t number, const PlanKey& key, const Chosen& wanted) {
  Agreement next = agreement();
  next.choices[key] = wanted;
  std::vector<PlanKey> sizes;
  std::ranges::copy_if(recent_, std::back_inserter(sizes),
                       [&](const PlanKey& one) { return one.ofPlan() == key; });
  prepare(number, hashOf(number, change_.plan(), key, wanted), std::move(next), std::move(sizes));
}

}  // namespace faultline::comm
