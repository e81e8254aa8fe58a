#include "resilient_ccl/comm/planning.h"

#include <algorithm>
#include <bit>

namespace faultline::comm {

/// One communicator of this process.
class Planning::Member : public MessagePort, private GroupPlannerIo {
 public:
  Member(Planning& planning, std::uint32_t communicator, std::vector<int> members,
         PlanSettings settings)
      : planning_(planning),
        communicator_(communicator),
        members_(std::move(members)),
        settings_(std::move(settings)),
        rank_(static_cast<int>(rankOf(planning.self_).value_or(0))),
        planner_(rank_, static_cast<int>(members_.size()), communicator, settings_.ranksPerNode,
                 *this) {}

  GroupPlanner& planner() { return planner_; }
  const PlanSettings& settings() const { return settings_; }
  std::uint32_t communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int process(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(members_.size()); }
  /// What a whole port carries for one rank, in bytes per second.
  double whole() const { return settings_.link.bandwidth / settings_.ranksPerNode; }

  /// Nothing is called in it any more.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

  std::optional<std::size_t> rankOf(int process) const {
    const auto found = std::ranges::find(members_, process);
    if (found == members_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - members_.begin());
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

  // MessagePort; peers are ranks of this communicator.
  void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                std::uint64_t token) override {
    planning_.fabric_.postSend(process(peer), key, data, length, token);
  }
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token) override {
    planning_.fabric_.postReceive(process(peer), key, region, capacity, token);
  }

 private:
  void tell(int rank, const PlanWord& word) override {
    planning_.fabric_.tell(process(rank), word.bytes());
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

  void exchange(const TestRound& round) override { planning_.begin(*this, round); }
  void tested(const TestReport& report) override {
    planning_.calls_.tested({.communicator = communicator_, .report = report});
  }
  void failed(const Status& why) override { planning_.calls_.fail(why); }

  Planning& planning_;
  const std::uint32_t communicator_;
  const std::vector<int> members_;
  const PlanSettings settings_;
  const int rank_;
  GroupPlanner planner_;
  bool closed_ = false;
};

struct Planning::Exchange {
  Exchange(Member& of, const TestRound& which, ProbeExchange what)
      : member(of), round(which), messages(std::move(what)) {}

  Member& member;
  TestRound round;
  ProbeExchange messages;
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

void Planning::remove(std::uint32_t communicator) { groups_.at(communicator)->close(); }

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
                  .collective = key->collective,
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
  endFinished(now);  // those that had nothing to do
  if (now < reportDue_) return;
  reportDue_ = now + kReportPause;
  std::erase_if(groups_, [this](const auto& it) {
    const auto ofIt = [&](const auto& exchange) {
      return &exchange.second.member == it.second.get();
    };
    return it.second->closed() && !it.second->planner().testing() &&
           std::ranges::none_of(exchanges_, ofIt);
  });
  const plan::Observation seen = sampler_->observed();
  const auto given = feed_ ? feed_->get() : std::nullopt;
  for (const auto& [number, member] : groups_) {
    member->planner().observed(seen);
    member->onTick(given, feed_ != nullptr, now);
  }
}

// --- tests of the ports ---

bool Planning::testing() const {
  return !exchanges_.empty() || std::ranges::any_of(groups_, [](const auto& it) {
    return it.second->planner().testing();
  });
}

void Planning::begin(Member& member, const TestRound& round) {
  const int size = member.size();
  fabric_.loads(loads_);
  // Memory between processes of a node says nothing of the network.
  const auto overNetwork = [&](int rank) {
    const auto process = static_cast<std::size_t>(member.process(rank));
    return loads_[process] ? std::optional(rank) : std::nullopt;
  };
  const std::uint32_t number = nextExchange_++ & kExchangeNumbers;
  const channel::MessageKey key{.communicator = member.communicator(),
                                .sequence = 0,
                                .stream = probeStream(round.test, round.round)};
  const auto exchange = exchanges_.try_emplace(
      number, member, round,
      ProbeExchange(
          ProbeExchange::shapeFor(member.whole(), member.settings().link.latency, round.round),
          overNetwork((member.rank() + round.shift) % size),
          overNetwork((member.rank() + size - round.shift) % size), key,
          kTestToken | std::uint64_t{number} << 32, member));
  exchange.first->second.messages.start(now());
}

void Planning::messageDone(std::uint64_t token, Bytes length, TimePoint now) {
  const auto number = static_cast<std::uint32_t>(token >> 32) & kExchangeNumbers;
  const auto found = exchanges_.find(number);
  if (found == exchanges_.end()) return;
  found->second.messages.messageDone(token, length, now);
  endFinished(now);
}

void Planning::endFinished(TimePoint now) {
  for (;;) {
    const auto found = std::ranges::find_if(
        exchanges_, [](const auto& it) { return it.second.messages.finished(); });
    if (found == exchanges_.end()) return;
    const Exchange exchange = std::move(exchanges_.extract(found).mapped());
    exchange.member.planner().exchanged(exchange.round, shareOf(exchange), now);
  }
}

/// Of what the rails that the path has would carry of a whole port.
std::uint16_t Planning::shareOf(const Exchange& exchange) {
  const Member& member = exchange.member;
  const double rate = exchange.messages.rate();
  const int from = (member.rank() + member.size() - exchange.round.shift) % member.size();
  fabric_.loads(loads_);
  const auto& path = loads_[static_cast<std::size_t>(member.process(from))];
  if (!path || path->railsUp == 0 || rate <= 0) return 0;
  const double live = static_cast<double>(std::popcount(path->railsUp)) / rails_;
  constexpr double kMostParts = 4.0 * plan::Health::kWhole;
  return static_cast<std::uint16_t>(
      std::clamp(rate / (live * member.whole()) * plan::Health::kWhole, 1.0, kMostParts));
}

}  // namespace faultline::comm
