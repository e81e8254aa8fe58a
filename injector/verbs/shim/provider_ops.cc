#include "injector/verbs/shim/provider_ops.h"

#include <array>
#include <cstdint>
#include <utility>

#include "injector/verbs/shim/armed_calls.h"
#include "injector/verbs/shim/create_extended.h"
#include "injector/verbs/shim/events.h"

namespace faultline::injector::verbs::shim {

constinit std::atomic<bool> g_armed{false};
constinit Concerned g_concerned;

namespace {

/// Distinct sets of functions: a provider has a few (one for each type of queue pair or layout of
/// the completion queue), a process one or two providers.
constexpr std::size_t kPlaces = 32;

bool armed() { return __builtin_expect(g_armed.load(std::memory_order_acquire), false); }

/// Written once each, before our functions for it are handed out.
template <typename Ops>
struct Table {
  std::array<Ops, kPlaces> real{};
  std::size_t used = 0;

  /// The place of `ops`, a new one if need be; kPlaces when there is none.
  std::size_t placeOf(const Ops& ops) {
    for (std::size_t i = 0; i < used; ++i) {
      if (real[i] == ops) return i;
    }
    if (used == kPlaces) return kPlaces;
    real[used] = ops;
    return used++;
  }
};

constinit Table<ContextOps> g_context;
constinit Table<CreateOps> g_create;
constinit Table<BatchOps> g_batch;
constinit Table<PollOps> g_poll;

template <std::size_t Place>
int postSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  const auto real = g_context.real[Place].postSend;
  return armed() ? armedPostSend(real, qp, first, bad) : real(qp, first, bad);
}

template <std::size_t Place>
int postRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  const auto real = g_context.real[Place].postRecv;
  return armed() ? armedPostRecv(real, qp, first, bad) : real(qp, first, bad);
}

template <std::size_t Place>
int pollCq(ibv_cq* cq, int most, ibv_wc* completions) {
  const auto real = g_context.real[Place].pollCq;
  return armed() ? armedPollCq(real, cq, most, completions) : real(cq, most, completions);
}

template <std::size_t Place>
int requestEvent(ibv_cq* cq, int solicited_only) {
  return askForEvent(g_context.real[Place].askForEvent, cq, solicited_only);
}

template <std::size_t Place>
ibv_qp* createQueuePair(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  return createExtended(g_create.real[Place].queuePair, context, attributes);
}

template <std::size_t Place>
ibv_cq_ex* createCompletionQueue(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  return createExtended(g_create.real[Place].completionQueue, context, attributes);
}

template <std::size_t Place>
void batchStart(ibv_qp_ex* qp) {
  g_batch.real[Place].start(qp);  // takes the provider's lock: threads may share a queue pair
  if (armed()) armedBatchStart(qp);
}

template <std::size_t Place>
int batchComplete(ibv_qp_ex* qp) {
  const BatchOps& real = g_batch.real[Place];
  return armed() ? armedBatchComplete(real, qp) : real.complete(qp);
}

template <std::size_t Place>
void batchAbort(ibv_qp_ex* qp) {
  if (armed()) armedBatchAbort(qp);
  g_batch.real[Place].abort(qp);
}

template <std::size_t Place>
void setSge(ibv_qp_ex* qp, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  if (armed()) armedBatchRequest(qp, length);
  g_batch.real[Place].setSge(qp, key, address, length);
}

template <std::size_t Place>
void setSgeList(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  if (armed()) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += list[i].length;
    armedBatchRequest(qp, bytes);
  }
  g_batch.real[Place].setSgeList(qp, count, list);
}

template <std::size_t Place>
void setInline(ibv_qp_ex* qp, void* data, std::size_t length) {
  if (armed()) armedBatchRequest(qp, length);
  g_batch.real[Place].setInline(qp, data, length);
}

template <std::size_t Place>
void setInlineList(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  if (armed()) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += list[i].length;
    armedBatchRequest(qp, bytes);
  }
  g_batch.real[Place].setInlineList(qp, count, list);
}

template <std::size_t Place>
int startPoll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  const int result = g_poll.real[Place].start(cq, attributes);
  if (result == 0 && armed()) armedExtendedPoll(cq);
  return result;
}
template <std::size_t Place>
int nextPoll(ibv_cq_ex* cq) {
  const int result = g_poll.real[Place].next(cq);
  if (result == 0 && armed()) armedExtendedPoll(cq);
  return result;
}

template <std::size_t... Places>
constexpr auto contextOpsOf(std::index_sequence<Places...>) {
  return std::array{
      ContextOps{&postSend<Places>, &postRecv<Places>, &pollCq<Places>, &requestEvent<Places>}...};
}
template <std::size_t... Places>
constexpr auto createOpsOf(std::index_sequence<Places...>) {
  return std::array{CreateOps{&createQueuePair<Places>, &createCompletionQueue<Places>}...};
}
template <std::size_t... Places>
constexpr auto batchOpsOf(std::index_sequence<Places...>) {
  return std::array{BatchOps{&batchStart<Places>, &batchComplete<Places>, &batchAbort<Places>,
                             &setSge<Places>, &setSgeList<Places>, &setInline<Places>,
                             &setInlineList<Places>}...};
}
template <std::size_t... Places>
constexpr auto pollOpsOf(std::index_sequence<Places...>) {
  return std::array{PollOps{&startPoll<Places>, &nextPoll<Places>}...};
}

constexpr auto kContextOps = contextOpsOf(std::make_index_sequence<kPlaces>());
constexpr auto kCreateOps = createOpsOf(std::make_index_sequence<kPlaces>());
constexpr auto kBatchOps = batchOpsOf(std::make_index_sequence<kPlaces>());
constexpr auto kPollOps = pollOpsOf(std::make_index_sequence<kPlaces>());

/// Where the provider has no function, there is nothing to stand in front of.
template <typename Function>
void replace(Function& there, Function ours) {
  if (there != nullptr) there = ours;
}

bool interposeCalls(ibv_context_ops& ops) {
  // Told twice, as when the real library opens a device by calling what it exports.
  for (const ContextOps& ours : kContextOps) {
    if (ops.post_send == ours.postSend && ops.poll_cq == ours.pollCq) return true;
  }
  const std::size_t place =
      g_context.placeOf({ops.post_send, ops.post_recv, ops.poll_cq, ops.req_notify_cq});
  if (place == kPlaces) return false;
  replace(ops.post_send, kContextOps[place].postSend);
  replace(ops.post_recv, kContextOps[place].postRecv);
  replace(ops.poll_cq, kContextOps[place].pollCq);
  replace(ops.req_notify_cq, kContextOps[place].askForEvent);
  return true;
}

bool interposeCreation(ibv_context& context) {
  // Each is nullptr where the context does not reach so far, or has no such function.
  verbs_context* const queue_pair = verbs_get_ctx_op(&context, create_qp_ex);
  verbs_context* const completion_queue = verbs_get_ctx_op(&context, create_cq_ex);
  CreateOps there;
  if (queue_pair != nullptr) there.queuePair = queue_pair->create_qp_ex;
  if (completion_queue != nullptr) there.completionQueue = completion_queue->create_cq_ex;
  for (const CreateOps& ours : kCreateOps) {
    if (there.queuePair == ours.queuePair || there.completionQueue == ours.completionQueue) {
      return true;
    }
  }
  const std::size_t place = g_create.placeOf(there);
  if (place == kPlaces) return false;
  if (queue_pair != nullptr) queue_pair->create_qp_ex = kCreateOps[place].queuePair;
  if (completion_queue != nullptr) {
    completion_queue->create_cq_ex = kCreateOps[place].completionQueue;
  }
  return true;
}

}  // namespace

bool interpose(ibv_context& context) {
  const bool calls = interposeCalls(context.ops);
  return interposeCreation(context) && calls;
}

bool interpose(ibv_qp_ex& qp) {
  const std::size_t place =
      g_batch.placeOf({qp.wr_start, qp.wr_complete, qp.wr_abort, qp.wr_set_sge, qp.wr_set_sge_list,
                       qp.wr_set_inline_data, qp.wr_set_inline_data_list});
  if (place == kPlaces) return false;
  const BatchOps& ours = kBatchOps[place];
  replace(qp.wr_start, ours.start);
  replace(qp.wr_complete, ours.complete);
  replace(qp.wr_abort, ours.abort);
  replace(qp.wr_set_sge, ours.setSge);
  replace(qp.wr_set_sge_list, ours.setSgeList);
  replace(qp.wr_set_inline_data, ours.setInline);
  replace(qp.wr_set_inline_data_list, ours.setInlineList);
  return true;
}

bool interpose(ibv_cq_ex& cq) {
  const std::size_t place = g_poll.placeOf({cq.start_poll, cq.next_poll});
  if (place == kPlaces) return false;
  replace(cq.start_poll, kPollOps[place].start);
  replace(cq.next_poll, kPollOps[place].next);
  return true;
}

}  // namespace faultline::injector::verbs::shim
