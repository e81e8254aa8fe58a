#include "resilient_ccl/comm/planning.h"

#include <algorithm>

namespace faultline::comm {

/// One communicator of this process.
class Planning::Member : private GroupPlannerIo {
 public:
  Member(Planning& planning, std::uint32_t communicator, std::vector<int> members,
         PlanSettings settings)
      : planning_(planning),
        communicator_(communicator),
        members_(std::move(members)),
        settings_(std::move(settings)),
        rank_(static_cast<int>(rankOf(planning.self_).value_or(0))),
        planner_(rank_, static_cast<int>(members_.size()), communicator, *this) {}

  GroupPlanner& planner() { return planner_; }
  const PlanSettings& settings() const { return settings_; }

  std::optional<std::size_t> rankOf(int process) const {
    const auto found = std::ranges::find(members_, process);
    if (found == members_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - members_.begin());
  }

  void observed(const plan::Observation& seen) {
    plan::Observation own{.live = seen.live, .paths = {}};
    for (const int member : members_) {
      const auto process = static_cast<std::size_t>(member);
      own.paths.push_back(process < seen.paths.size() ? seen.paths[process] : plan::PathRate{});
    }
    planner_.observed(own);
  }

  void onTick(const std::optional<plan::HealthVector>& given, bool isFed, TimePoint now) {
    if (!isFed) return planner_.onTick(nullptr, now);
    plan::HealthVector own = planner_.health();
    if (given) {
      for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        const auto process = static_cast<std::size_t>(members_[rank]);
        if (process < given->size()) own[rank] = (*given)[process];
      }
    }
    planner_.onTick(&own, now);
  }

 private:
  void tell(int rank, const PlanWord& word) override {
    planning_.fabric_.tell(members_[static_cast<std::size_t>(rank)], word.bytes());
  }

  void plan(std::uint64_t healthHash, const plan::HealthVector& health, const PlanKey& key,
            Choice choice) override {
    // By number: it may be gone when the plan has been made.
    planning_.worker_.post([&planning = planning_, number = communicator_, settings = settings_,
                            rank = rank_, healthHash, health, key, choice] {
      auto result = planProgram(settings, health, key, choice, rank);
      planning.calls_.onProgressThread(
          [&planning, number, healthHash, key, choice, result = std::move(result)]() mutable {
            const auto group = planning.groups_.find(number);
            if (group == planning.groups_.end()) return;
            group->second->planner_.planned(healthHash, key, choice, std::move(result));
          });
    });
  }

  void failed(const Status& why) override { planning_.calls_.fail(why); }

  Planning& planning_;
  const std::uint32_t communicator_;
  const std::vector<int> members_;
  const PlanSettings settings_;
  const int rank_;
  GroupPlanner planner_;
};

Planning::Planning(fabric::Fabric& fabric, int self, int rails,
                   std::shared_ptr<plan::HealthFeed> feed, PlanningCalls calls)
    : self_(self),
      rails_(rails),
      fabric_(fabric),
      feed_(std::move(feed)),
      calls_(std::move(calls)) {}

Planning::~Planning() = default;

void Planning::add(std::uint32_t communicator, std::vector<int> members, PlanSettings settings) {
  if (!sampler_) {
    const plan::LinkModel& link = settings.link;
    const auto hidden = static_cast<Bytes>(2 * link.latency * link.bandwidth);
    sampler_.emplace(link.bandwidth / settings.ranksPerNode, rails_, std::max(kLeastLoad, hidden));
  }
  known_.insert(communicator);
  groups_[communicator] =
      std::make_unique<Member>(*this, communicator, std::move(members), std::move(settings));
  std::vector<std::pair<int, PlanWord>> early;
  std::swap(early, early_);
  for (const auto& [process, word] : early) wordArrived(process, word.bytes(), now());
}

void Planning::remove(std::uint32_t communicator) { groups_.erase(communicator); }

std::optional<Planning::Go> Planning::next(std::uint32_t communicator,
                                           const std::optional<PlanKey>& key, TimePoint now) {
  Member& member = *groups_.at(communicator);
  auto go = member.planner().next(key, now);
  if (!go) return std::nullopt;
  if (go->first) {
    calls_.event({.when = now,
                  .communicator = communicator,
                  .epoch = go->first->epoch,
                  .operation = go->operation,
                  .elements = key->elements,
                  .elementSize = key->elementSize,
                  .health = std::move(go->first->health),
                  .link = member.settings().link,
                  .tried = go->tried,
                  .plan = go->planned.plan});
  }
  return Go{.program = std::move(go->planned.program), .tried = go->tried};
}

bool Planning::wordArrived(int process, std::span<const std::byte> bytes, TimePoint now) {
  const auto word = PlanWord::parse(bytes);
  if (!word) return false;
  if (const auto group = groups_.find(word->about); group != groups_.end()) {
    if (const auto rank = group->second->rankOf(process)) {
      group->second->planner().onWord(static_cast<int>(*rank), *word, now);
    }
  } else if (!known_.contains(word->about) && early_.size() < kMostEarlyWords) {
    early_.emplace_back(process, *word);
  }
  return true;
}

void Planning::done(std::uint32_t communicator, std::uint64_t operation, TimePoint now) {
  const auto group = groups_.find(communicator);
  if (group != groups_.end()) group->second->planner().done(operation, now);
}

void Planning::onTick(TimePoint now) {
  if (!sampler_ || now < lookDue_) return;
  lookDue_ = now + plan::PortSampler::kInterval;
  fabric_.loads(loads_);
  sampler_->sample(loads_, now);
  if (now < reportDue_) return;
  reportDue_ = now + kReportPause;
  const plan::Observation seen = sampler_->observed();
  const auto given = feed_ ? feed_->get() : std::nullopt;
  for (const auto& [number, member] : groups_) {
    member->observed(seen);
    member->onTick(given, feed_ != nullptr, now);
  }
}

}  // namespace faultline::comm
