// The program's objects, from when they are made until they go.
#include "injector/verbs/shim/shim.h"

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

#include "injector/verbs/shim/provider_ops.h"
#include "injector/verbs/shim/queue_pair_facts.h"

namespace faultline::injector::verbs::shim {
namespace {

/// What was held goes with its queue pair or queue: no link has to carry it any more.
void dropHeld(const HeldQueue<HeldCompletion>::Held& held) {
  ArmedFault* const fault = held.item.fault;
  if (fault == nullptr) return;
  fault->dropped();
  if (fault->rule().effect == Effect::kQpRate) fault->notCarried(now(), held.due, held.item.bytes);
}

}  // namespace

std::atomic<Shim*> Shim::made_{nullptr};

Shim& Shim::make() {
  static Shim* const shim = new Shim;  // for good: the program's threads outlive main()
  made_.store(shim);
  return *shim;
}

void Shim::opened(ibv_context& context) {
  const Lock lock(mutex_);
  Context& known = contexts_[&context];
  // One that is closed by now: closed() is about to be called, and finds this one in its place.
  if (std::exchange(known.closing, false)) forgetObjectsOf(context);
  known.device = context.device == nullptr ? "" : context.device->name;
  known.watched = interpose(context);
}

void Shim::closing(ibv_context& context) {
  const Lock lock(mutex_);
  contexts_[&context].closing = true;
}

void Shim::closed(ibv_context& context, bool gone) {
  const Lock lock(mutex_);
  const auto known = contexts_.find(&context);
  if (known == contexts_.end() || !std::exchange(known->second.closing, false) || !gone) return;
  forgetObjectsOf(context);  // what the program has not destroyed
  contexts_.erase(known);
}

void Shim::forgetObjectsOf(const ibv_context& context) {
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
  if (!query(qp, attributes, kAsked, init)) return;
  add(qp, {init.sq_sig_all != 0, std::max(init.cap.max_send_wr, 1U)});
  modified(qp, attributes, kAsked);
}

void Shim::modified(ibv_qp& qp, const ibv_qp_attr& attributes, int mask) {
  const Lock lock(mutex_);
  const auto found = owned_queue_pairs_.find(&qp);
  if (found == owned_queue_pairs_.end()) return adopt(qp);
  QueuePair& queue_pair = *found->second;
  update(queue_pair.facts, attributes, mask);
  reconsider(queue_pair);
  if ((mask & IBV_QP_STATE) == 0 || attributes.qp_state != IBV_QPS_RESET) return;
  // What it has sent gives no completions any more. (Put in error, it gives one for each.)
  dropHeldOf(queue_pair);
  const std::lock_guard log_lock(queue_pair.log_flag);
  if (SendLog* const log = queue_pair.log.load()) log->clear();
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
  dropHeldOf(queue_pair);
  owned_queue_pairs_.erase(at);
}

void Shim::dropHeldOf(const QueuePair& queue_pair) {
  for (ibv_cq* const cq : queue_pair.completionQueues) {
    const auto found = owned_completion_queues_.find(cq);
    if (found == owned_completion_queues_.end()) continue;
    CompletionQueue& queue = *found->second;
    HeldQueue<HeldCompletion>* const held = queue.held.load();
    if (held == nullptr) continue;
    const std::lock_guard lock(queue.flag);
    held->drop(queue_pair.number, [&](const auto& entry) {
      queue.goes(entry);
      dropHeld(entry);
    });
    queue.publish();
  }
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
  if (HeldQueue<HeldCompletion>* const held = queue.held.load()) held->dropAll(dropHeld);
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

std::vector<QueuePairFacts> Shim::queuePairs() {
  const Lock lock(mutex_);
  std::vector<QueuePairFacts> all;
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    if (!queue_pair->inherited) all.push_back(queue_pair->facts);
  }
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
  facts.queuePairs = queuePairs().size();
  facts.completionQueues = owned_completion_queues_.size();
  facts.missedQueuePairs = missed_queue_pairs_;
  facts.armed = static_cast<std::uint64_t>(
      std::ranges::count_if(armed_, [](const Armed& a) { return a.fault != nullptr; }));
  return facts;
}

void Shim::afterForkInChild() {
  readers_.forget();
  g_armed.store(false);
  g_concerned.clear();
  for (std::size_t slot = 0; slot < kMostFaults; ++slot) {
    slots_[slot].store(nullptr);
    armed_[slot] = {};
  }
  for (const auto& [qp, queue_pair] : owned_queue_pairs_) {
    queue_pair->inherited = true;
    queue_pair->faults.store(0);
    queue_pair->doomed.store(0);
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
    queue->eventless = 0;
  }
  retired_.clear();
  any_doomed_.store(false);
  wake_ = nullptr;
  // Made anew and not unlocked: a recursive mutex remembers the thread that has it, and that has
  // another number here. Nobody else can wait for it: there is one thread.
  new (&mutex_) std::recursive_mutex;
}

}  // namespace faultline::injector::verbs::shim
