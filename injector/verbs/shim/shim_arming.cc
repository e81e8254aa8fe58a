// Which faults are armed, which objects they concern, and what is left to be done of them.
#include <algorithm>
#include <bit>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "injector/verbs/shim/fault_bits.h"
#include "injector/verbs/shim/provider_ops.h"
#include "injector/verbs/shim/queue_pair_facts.h"
#include "injector/verbs/shim/real_library.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

constinit Real<int(ibv_qp*, ibv_qp_attr*, int)> g_modify("ibv_modify_qp", "IBVERBS_1.1");

bool isInError(const QueuePair& queue_pair) {
  return queue_pair.facts.state == stateName(IBV_QPS_ERR);
}
bool isInUse(const QueuePair& queue_pair) {
  return !isInError(queue_pair) && queue_pair.facts.state != stateName(IBV_QPS_RESET);
}

}  // namespace

bool Shim::reconsider(QueuePair& queue_pair) {
  FaultBits bits = 0;
  bool all = true;
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    const Armed& armed = armed_[slot];
    if (armed.fault == nullptr || !queue_pair.isMeant(armed.rule.match)) continue;
    try {
      if (armed.rule.holds()) prepareToHold(queue_pair, armed.rule);
      bits |= bitOf(slot);
    } catch (const std::bad_alloc&) {  // not through the program, which called in C
      armed.fault->passedUnseen();
      all = false;
    }
  }
  if (bits != 0) concern(queue_pair);
  queue_pair.faults.store(bits, std::memory_order_release);
  return all;
}

void Shim::concern(const QueuePair& queue_pair) {
  g_concerned.add(queue_pair.qp);
  g_concerned.add(queue_pair.context, queue_pair.number);
  for (const ibv_cq* const cq : queue_pair.completionQueues) {
    // One that it was not made with, as of shared receives (XRC): its completions come anywhere.
    cq == nullptr ? g_concerned.addAll() : g_concerned.add(cq);
  }
}

void Shim::prepareToHold(QueuePair& queue_pair, const Rule& rule) {
  if (rule.effect == Effect::kQpRate && queue_pair.log.load() == nullptr) {
    queue_pair.log.store(new SendLog(queue_pair.made.depth), std::memory_order_release);
  }
  for (ibv_cq* const cq : queue_pair.completionQueues) {
    const auto found = owned_completion_queues_.find(cq);
    if (found == owned_completion_queues_.end()) continue;
    CompletionQueue& queue = *found->second;
    g_concerned.addHolding(cq);
    if (queue.held.load() != nullptr) continue;
    queue.held.store(new HeldQueue<HeldCompletion>(static_cast<std::size_t>(std::max(cq->cqe, 1))),
                     std::memory_order_release);
  }
}

Result<std::uint64_t> Shim::arm(const Rule& asked) {
  const Lock lock(mutex_);
  std::vector<QueuePair*> meant;
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    if (queue_pair->isMeant(asked.match)) meant.push_back(queue_pair.get());
  }
  if (meant.empty()) {
    return errorf(Code::kNotFound,
                  "arm {}: this process has no {} (of {} queue pairs that the shim knows)",
                  effectName(asked.effect), inWords(asked.match), queuePairs().size());
  }
  if (asked.one) {
    const std::size_t fitting = meant.size();
    std::erase_if(meant, [this](QueuePair* queue_pair) {
      return !refresh(*queue_pair) || !isInUse(*queue_pair);
    });
    if (meant.empty()) {
      return errorf(Code::kNotFound,
                    "arm {}: nothing is left to choose among {}: each of the {} that fit is in "
                    "error or reset, or its device is being closed",
                    effectName(asked.effect), inWords(asked.match), fitting);
    }
  }
  const auto free = std::ranges::find_if(armed_, [](const Armed& a) { return !a.fault; });
  if (free == armed_.end()) {
    return errorf(Code::kUnavailable, "arm {}: {} faults are armed in this process already",
                  effectName(asked.effect), kMostFaults);
  }
  Rule rule = asked;
  if (rule.one) {
    // By name and number and not by address, so that a seed means the same in the next run.
    std::ranges::sort(meant, {}, [](const QueuePair* queue_pair) {
      return std::tie(queue_pair->facts.device, queue_pair->facts.number);
    });
    QueuePair* const chosen = meant[chooseOne(meant.size(), rule.trigger.seed)];
    rule.match.device = chosen->facts.device;
    rule.match.number = chosen->number;
    meant = {chosen};
  }
  const std::size_t slot = static_cast<std::size_t>(free - armed_.begin());
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) queue_pair->met.fetch_and(~bitOf(slot));
  *free = {++last_number_, rule, std::make_unique<ArmedFault>(rule)};
  slots_[slot].store(free->fault.get());
  era_.fetch_add(1);
  g_armed.store(true, std::memory_order_release);
  bool all = true;
  for (QueuePair* const queue_pair : meant) all = reconsider(*queue_pair) && all;
  if (!all) {
    static_cast<void>(disarm(free->number));
    return errorf(Code::kUnavailable,
                  "arm {}: this process has no memory for what it holds back: as much as the "
                  "completion queues of {} are made for",
                  effectName(rule.effect), inWords(rule.match));
  }
  if (rule.effect == Effect::kQpError && rule.trigger.now()) {
    // Those that are there now; what is connected later has not been meant.
    std::ranges::sort(meant, {}, &QueuePair::number);
    for (QueuePair* const queue_pair : meant) {
      ArmedFault& fault = *free->fault;
      if (isAlive(*queue_pair, fault) && fault.strikes(0)) putInError(*queue_pair, fault);
    }
  }
  return free->number;
}

std::size_t Shim::slotOf(std::uint64_t number) const {
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    if (armed_[slot].fault != nullptr && armed_[slot].number == number) return slot;
  }
  return kMostFaults;
}

Result<Counters> Shim::counters(std::uint64_t number) {
  const Lock lock(mutex_);
  const std::size_t slot = slotOf(number);
  if (slot == kMostFaults) return errorf(Code::kNotFound, "no fault {} is armed here", number);
  Counters counters = armed_[slot].fault->counters();
  counters.queuePairs = concerned(slot);
  return counters;
}

std::uint64_t Shim::concerned(std::size_t slot) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      owned_queue_pairs_,
      [&](const auto& entry) { return (entry.second->faults.load() & bitOf(slot)) != 0; }));
}

Result<Counters> Shim::disarm(std::uint64_t number) {
  const Lock lock(mutex_);
  ASSIGN_OR_RETURN(Counters counters, this->counters(number));
  const std::size_t slot = slotOf(number);
  Armed& armed = armed_[slot];
  const bool held = armed.rule.holds();
  std::unique_ptr<ArmedFault> fault = std::move(armed.fault);
  armed = {};
  slots_[slot].store(nullptr);
  era_.fetch_add(1);
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    queue_pair->faults.fetch_and(~bitOf(slot));
  }
  readers_.wait();  // nobody decides by it any more
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    queue_pair->doomed.fetch_and(~bitOf(slot));
    queue_pair->met.fetch_and(~bitOf(slot));
    forgetSends(*queue_pair);
  }
  const std::uint64_t queue_pairs = counters.queuePairs;
  counters = fault->counters();
  counters.queuePairs = queue_pairs;
  if (held) release();
  // What is held may also wait to be delivered as the error that this one has made of it.
  if (held || holdsAnything()) retired_.push_back(std::move(fault));
  work();
  return counters;
}

void Shim::release() {
  FaultBits holding = 0;
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    if (armed_[slot].fault != nullptr && armed_[slot].rule.holds()) holding |= bitOf(slot);
  }
  std::set<const ibv_cq*> kept;
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    if ((queue_pair->faults.load() & holding) == 0) continue;
    kept.insert(queue_pair->completionQueues.begin(), queue_pair->completionQueues.end());
  }
  if (kept.contains(nullptr)) return;  // completions come anywhere, as concern() says
  for (const auto& [cq, queue] : owned_completion_queues_) {
    if (!kept.contains(cq)) queue->release.store(true);
  }
}

void Shim::forgetSends(QueuePair& queue_pair) {
  SendLog* const log = queue_pair.log.load();
  if (log == nullptr) return;
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    const Armed& armed = armed_[slot];
    const bool concerns = (queue_pair.faults.load() & bitOf(slot)) != 0;
    if (armed.fault != nullptr && armed.rule.effect == Effect::kQpRate && concerns) return;
  }
  const std::lock_guard lock(queue_pair.log_flag);
  log->clear();
}

bool Shim::holdsAnything() const {
  return std::ranges::any_of(owned_completion_queues_,
                             [](const auto& entry) { return entry.second->heldNow.load() != 0; });
}

bool Shim::work() {
  const Lock lock(mutex_);
  if (any_doomed_.exchange(false)) {
    for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
      FaultBits doomed = queue_pair->doomed.exchange(0);
      for (; doomed != 0; doomed &= doomed - 1) {
        // Armed still: disarm() takes the bit away.
        ArmedFault& fault = *armed_[static_cast<std::size_t>(std::countr_zero(doomed))].fault;
        if (isAlive(*queue_pair, fault)) {
          putInError(*queue_pair, fault);
        } else {
          fault.struckNothing();
        }
      }
    }
  }
  const bool armed = std::ranges::any_of(armed_, [](const Armed& a) { return a.fault != nullptr; });
  const bool holding = holdsAnything();
  if (!holding && !retired_.empty()) {
    readers_.wait();  // somebody may just be delivering the last one
    retired_.clear();
  }
  if (!armed && !holding) {
    g_armed.store(false, std::memory_order_release);
    g_concerned.clear();
  }
  return holding && !retired_.empty();
}

bool Shim::refresh(QueuePair& queue_pair) const {
  const auto context = contexts_.find(queue_pair.context);
  if (context != contexts_.end() && context->second.closing) return false;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr ignored{};
  if (!query(*queue_pair.qp, attributes, IBV_QP_STATE, ignored)) return false;
  update(queue_pair.facts, attributes, IBV_QP_STATE);
  return true;
}

bool Shim::isAlive(QueuePair& queue_pair, ArmedFault& fault) const {
  if (!refresh(queue_pair)) {
    fault.failed();
    return false;
  }
  if (isInError(queue_pair)) fault.wasInErrorBefore();
  return isInUse(queue_pair);
}

void Shim::putInError(QueuePair& queue_pair, ArmedFault& fault) const {
  auto* const modify = g_modify.get();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (modify == nullptr || modify(queue_pair.qp, &attributes, IBV_QP_STATE) != 0) {
    fault.failed();
    return;
  }
  // Not what was asked for but what is.
  if (refresh(queue_pair) && isInError(queue_pair)) {
    fault.happened();
  } else {
    fault.failed();
  }
}

void Shim::doom(QueuePair& queue_pair, std::size_t slot) {
  if ((queue_pair.met.fetch_or(bitOf(slot)) & bitOf(slot)) != 0) return;
  queue_pair.doomed.fetch_or(bitOf(slot));
  any_doomed_.store(true);
  if (wake_) wake_();
}

void Shim::onDoom(std::function<void()> wake) {
  const Lock lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace faultline::injector::verbs::shim
