#include "injector/verbs/shim/shim.h"

#include <algorithm>
#include <bit>
#include <new>
#include <tuple>
#include <utility>

#include "injector/verbs/shim/provider_ops.h"
#include "injector/verbs/shim/queue_pair_facts.h"
#include "injector/verbs/shim/real_library.h"

namespace faultline::injector::verbs::shim {
namespace {

constinit Real<int(ibv_qp*, ibv_qp_attr*, int)> g_modify("ibv_modify_qp", "IBVERBS_1.1");
constinit Real<int(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*)> g_query("ibv_query_qp",
                                                                           "IBVERBS_1.1");

FaultBits bitOf(std::size_t slot) { return FaultBits{1} << slot; }

using Lock = std::lock_guard<std::recursive_mutex>;

void countDropped(const HeldQueue<HeldCompletion>::Held& held) {
  if (held.item.fault != nullptr) held.item.fault->dropped();
}

}  // namespace

Shim& Shim::instance() {
  static Shim* const shim = new Shim;  // for good: the program's threads outlive main()
  return *shim;
}

void Shim::opened(ibv_context& context) {
  const Lock lock(mutex_);
  Context& known = contexts_[&context];
  known.device = context.device == nullptr ? "" : context.device->name;
  known.watched = interpose(context);
}

void Shim::closing(ibv_context& context) {
  const Lock lock(mutex_);
  // What the program has not destroyed goes with the context.
  for (auto at = owned_queue_pairs_.begin(); at != owned_queue_pairs_.end();) {
    const auto next = std::next(at);
    if (at->second->context == &context) forget(at);
    at = next;
  }
  for (auto at = owned_completion_queues_.begin(); at != owned_completion_queues_.end();) {
    const auto next = std::next(at);
    if (at->second->context == &context) forget(at);
    at = next;
  }
  contexts_.erase(&context);
}

void Shim::created(ibv_qp& qp, QueuePair::Made made) {
  const Lock lock(mutex_);
  add(qp, made);
}

void Shim::add(ibv_qp& qp, QueuePair::Made made) {
  auto known = std::make_unique<QueuePair>(&qp, made);
  const auto context = contexts_.find(qp.context);
  known->facts.device = context == contexts_.end() ? "" : context->second.device;
  known->facts.number = qp.qp_num;
  known->facts.type = typeName(qp.qp_type);
  known->facts.state = stateName(IBV_QPS_RESET);
  QueuePair& entry = *known;
  // One at this address whose end the shim has not seen.
  if (const auto old = owned_queue_pairs_.find(&qp); old != owned_queue_pairs_.end()) forget(old);
  owned_queue_pairs_.emplace(&qp, std::move(known));
  reconsider(entry);
  queue_pairs_.insert(entry);
}

void Shim::adopt(ibv_qp& qp) {
  const Lock lock(mutex_);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  constexpr int kAsked = IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_AV | IBV_QP_CAP;
  auto* const query = g_query.get();
  if (query == nullptr || query(&qp, &attributes, kAsked, &init) != 0) return;
  add(qp, {init.sq_sig_all != 0, std::max(init.cap.max_send_wr, 1U)});
  modified(qp, attributes, kAsked);
}

void Shim::modified(ibv_qp& qp, const ibv_qp_attr& attributes, int mask) {
  const Lock lock(mutex_);
  const auto found = owned_queue_pairs_.find(&qp);
  if (found == owned_queue_pairs_.end()) return adopt(qp);
  update(found->second->facts, attributes, mask);
  reconsider(*found->second);
}

void Shim::destroying(ibv_qp& qp) {
  const Lock lock(mutex_);
  const auto found = owned_queue_pairs_.find(&qp);
  if (found != owned_queue_pairs_.end()) forget(found);
}

void Shim::forget(QueuePairs::iterator at) {
  QueuePair& queue_pair = *at->second;
  queue_pairs_.remove(queue_pair);
  readers_.wait();
  for (ibv_cq* const cq : queue_pair.completionQueues) {
    const auto found = owned_completion_queues_.find(cq);
    if (found == owned_completion_queues_.end()) continue;
    CompletionQueue& queue = *found->second;
    HeldQueue<HeldCompletion>* const held = queue.held.load();
    if (held == nullptr) continue;
    const std::lock_guard lock(queue.flag);
    held->drop(queue_pair.number, countDropped);
    queue.publish();
  }
  owned_queue_pairs_.erase(at);
}

void Shim::created(ibv_cq& cq) {
  const Lock lock(mutex_);
  our_events_.erase(&cq);
  stays(cq);
}

void Shim::stays(ibv_cq& cq) {
  const Lock lock(mutex_);
  destroying(cq);  // one at this address whose end the shim has not seen
  auto known = std::make_unique<CompletionQueue>(&cq);
  completion_queues_.insert(*known);
  owned_completion_queues_.emplace(&cq, std::move(known));
}

void Shim::destroying(ibv_cq& cq) {
  const Lock lock(mutex_);
  const auto found = owned_completion_queues_.find(&cq);
  if (found != owned_completion_queues_.end()) forget(found);
}

void Shim::forget(CompletionQueues::iterator at) {
  CompletionQueue& queue = *at->second;
  completion_queues_.remove(queue);
  readers_.wait();  // from here on nobody else has it
  if (HeldQueue<HeldCompletion>* const held = queue.held.load()) held->dropAll(countDropped);
  owned_completion_queues_.erase(at);
}

bool Shim::takeOver(ibv_qp_ex& qp) {
  const Lock lock(mutex_);
  return interpose(qp);
}

bool Shim::takeOver(ibv_cq_ex& cq) {
  const Lock lock(mutex_);
  return interpose(cq);
}

void Shim::missedQueuePair() {
  const Lock lock(mutex_);
  ++missed_queue_pairs_;
}

void Shim::reconsider(QueuePair& queue_pair) {
  FaultBits bits = 0;
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    const Armed& armed = armed_[slot];
    if (armed.fault == nullptr || !matches(armed.rule.match, queue_pair.facts)) continue;
    if (armed.rule.holds()) prepareToHold(queue_pair, armed.rule);
    bits |= bitOf(slot);
  }
  queue_pair.faults.store(bits, std::memory_order_release);
}

void Shim::prepareToHold(QueuePair& queue_pair, const Rule& rule) {
  if (rule.effect == Effect::kQpRate && queue_pair.log.load() == nullptr) {
    queue_pair.log.store(new SendLog(queue_pair.made.depth), std::memory_order_release);
  }
  for (ibv_cq* const cq : queue_pair.completionQueues) {
    const auto found = owned_completion_queues_.find(cq);
    if (found == owned_completion_queues_.end()) continue;
    CompletionQueue& queue = *found->second;
    if (queue.held.load() != nullptr) continue;
    queue.held.store(new HeldQueue<HeldCompletion>(static_cast<std::size_t>(std::max(cq->cqe, 1))),
                     std::memory_order_release);
  }
}

Result<std::uint64_t> Shim::arm(const Rule& asked) {
  const Lock lock(mutex_);
  std::vector<QueuePair*> meant;
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    if (matches(asked.match, queue_pair->facts)) meant.push_back(queue_pair.get());
  }
  if (meant.empty()) {
    return errorf(Code::kNotFound,
                  "arm {}: this process has no {} (of {} queue pairs that the shim knows)",
                  effectName(asked.effect), inWords(asked.match), owned_queue_pairs_.size());
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
  for (QueuePair* const queue_pair : meant) reconsider(*queue_pair);
  if (rule.effect == Effect::kQpError && rule.trigger.now()) {
    // Those that are there now; what is connected later has not been meant.
    std::ranges::sort(meant, {}, &QueuePair::number);
    for (QueuePair* const queue_pair : meant) {
      if (free->fault->strikes(0)) putInError(*queue_pair, *free->fault);
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
  if (held) {
    const bool others = std::ranges::any_of(
        armed_, [](const Armed& a) { return a.fault != nullptr && a.rule.holds(); });
    for (const auto& [cq, queue] : owned_completion_queues_) {
      // With another one that holds, what this one held keeps its time.
      if (!others) queue->release.store(true);
    }
  }
  // What is held may also wait to be delivered as the error that this one has made of it.
  if (held || holdsAnything()) retired_.push_back(std::move(fault));
  work();
  return counters;
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
        const auto slot = static_cast<std::size_t>(std::countr_zero(doomed));
        if (armed_[slot].fault != nullptr) putInError(*queue_pair, *armed_[slot].fault);
      }
    }
  }
  const bool armed = std::ranges::any_of(armed_, [](const Armed& a) { return a.fault != nullptr; });
  const bool holding = holdsAnything();
  if (!holding && !retired_.empty()) {
    readers_.wait();  // somebody may just be delivering the last one
    retired_.clear();
  }
  if (!armed && !holding) g_armed.store(false, std::memory_order_release);
  return holding && !retired_.empty();
}

void Shim::putInError(QueuePair& queue_pair, ArmedFault& fault) {
  auto* const modify = g_modify.get();
  auto* const query = g_query.get();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (modify == nullptr || query == nullptr ||
      modify(queue_pair.qp, &attributes, IBV_QP_STATE) != 0) {
    fault.failed();
    return;
  }
  // Not what was asked for but what is.
  attributes = {};
  ibv_qp_init_attr ignored{};
  const bool read = query(queue_pair.qp, &attributes, IBV_QP_STATE, &ignored) == 0;
  if (read) update(queue_pair.facts, attributes, IBV_QP_STATE);
  if (read && attributes.qp_state == IBV_QPS_ERR) {
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

std::vector<QueuePairFacts> Shim::queuePairs() {
  const Lock lock(mutex_);
  std::vector<QueuePairFacts> all;
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) all.push_back(queue_pair->facts);
  std::ranges::sort(
      all, {}, [](const QueuePairFacts& facts) { return std::tie(facts.device, facts.number); });
  return all;
}

ShimFacts Shim::facts() {
  const Lock lock(mutex_);
  ShimFacts facts;
  facts.contexts = static_cast<std::uint64_t>(
      std::ranges::count_if(contexts_, [](const auto& entry) { return entry.second.watched; }));
  facts.missedContexts = contexts_.size() - facts.contexts;
  facts.queuePairs = owned_queue_pairs_.size();
  facts.completionQueues = owned_completion_queues_.size();
  facts.missedQueuePairs = missed_queue_pairs_;
  facts.armed = static_cast<std::uint64_t>(
      std::ranges::count_if(armed_, [](const Armed& a) { return a.fault != nullptr; }));
  return facts;
}

void Shim::afterForkInChild() {
  readers_.forget();
  g_armed.store(false);
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    slots_[slot].store(nullptr);
    armed_[slot] = {};
  }
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    queue_pair->faults.store(0);
    queue_pair->doomed.store(0);
    queue_pair->met.store(0);
    queue_pair->batch = {};
    // Threads that the child does not have may hold it, in the middle of a change: what they were
    // changing is not read any more.
    queue_pair->log_flag.unlock();
    if (SendLog* const log = queue_pair->log.load()) log->clear();
  }
  for (const auto& [cq, queue] : owned_completion_queues_) {
    queue->flag.unlock();
    // The parent delivers them.
    if (HeldQueue<HeldCompletion>* const held = queue->held.load()) held->clear();
    queue->heldNow.store(0);
    queue->release.store(false);
  }
  retired_.clear();
  any_doomed_.store(false);
  wake_ = nullptr;
  // Made anew and not unlocked: a recursive mutex remembers the thread that has it, and that has
  // another number here. Nobody else can wait for it: there is one thread.
  new (&mutex_) std::recursive_mutex;
}

}  // namespace faultline::injector::verbs::shim
