#include "tests/support/verbs/fake_provider.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "tests/support/verbs/fake_ibverbs.h"

namespace faultline::testing {

void waitWhile(const std::atomic<bool>& block) {
  if (!block.load()) return;
  g_blocked.fetch_add(1);
  while (block.load()) ::poll(nullptr, 0, 1);
  g_blocked.fetch_sub(1);
}

void complete(ibv_cq* cq, const ibv_wc* completion) {
  const std::lock_guard lock(of(cq).mutex);
  of(cq).completions.push_back(*completion);
  if (!std::exchange(of(cq).asked, false)) return;
  ++of(cq).unacknowledged;
  const int events = reinterpret_cast<Channel*>(cq->channel)->write_end;
  if (::write(events, &cq, sizeof(cq)) != sizeof(cq)) std::abort();
}

namespace {

int askForEvent(ibv_cq* cq, int /*solicited_only*/) {
  if (const int error = g_fail_ask.load(); error != 0) return error;
  const std::lock_guard lock(of(cq).mutex);
  of(cq).asked = cq->channel != nullptr;
  return 0;
}

ibv_wc completionOf(Qp& qp, std::uint64_t work_request, ibv_wc_opcode opcode) {
  ibv_wc completion{};
  completion.wr_id = work_request;
  completion.opcode = opcode;
  completion.qp_num = qp.ex.qp_base.qp_num;
  const ibv_qp_state state = __atomic_load_n(&qp.ex.qp_base.state, __ATOMIC_RELAXED);
  if (state == IBV_QPS_ERR) completion.status = IBV_WC_WR_FLUSH_ERR;
  return completion;
}

/// Counts one of a chain of requests; nonzero, and which it is, where posts are to fail.
template <typename Request>
int countPost(Request* at, Request** bad) {
  const int error = g_fail_posts.load();
  if (error == 0) {
    g_posts.fetch_add(1);
  } else if (!g_hide_bad.load()) {
    *bad = at;
  }
  return error;
}

int postSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  for (ibv_send_wr* at = first; at != nullptr; at = at->next) {
    if (const int error = countPost(at, bad); error != 0) return error;
    const ibv_wc completion = completionOf(of(qp), at->wr_id, IBV_WC_RDMA_WRITE);
    const bool tells = of(qp).signal_all || (at->send_flags & IBV_SEND_SIGNALED) != 0 ||
                       completion.status != IBV_WC_SUCCESS;
    if (tells) complete(qp->send_cq, &completion);
  }
  return 0;
}

int postRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  for (ibv_recv_wr* at = first; at != nullptr; at = at->next) {
    if (const int error = countPost(at, bad); error != 0) return error;
    const std::lock_guard lock(of(qp).mutex);
    of(qp).receives.push_back(at->wr_id);
  }
  return 0;
}

int pollCq(ibv_cq* cq, int most, ibv_wc* completions) {
  waitWhile(g_block_polls);
  if (g_polls_left.load() == 0) return -1;
  if (g_polls_left.load() > 0) g_polls_left.fetch_sub(1);
  const std::lock_guard lock(of(cq).mutex);
  auto& queue = of(cq).completions;
  int count = 0;
  for (; count < most && !queue.empty(); ++count) {
    completions[count] = queue.front();
    queue.pop_front();
  }
  return count;
}

// Of another provider: the same, elsewhere.
int otherPostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  return postSend(qp, first, bad);
}
int otherPollCq(ibv_cq* cq, int most, ibv_wc* completions) { return pollCq(cq, most, completions); }

// Of a provider that has as many as one can tell apart; each says which it is, so that no compiler
// makes one of them.
constexpr std::size_t kMany = 64;
std::atomic<std::size_t> g_next_many{0}, g_called{0};
template <std::size_t N>
int manyPostSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  g_called.store(N);
  return postSend(qp, first, bad);
}

// What costs least: a place in a queue is written, and read.
std::uint64_t g_doorbell[2];
int benchPost(ibv_qp* /*qp*/, ibv_send_wr* first, ibv_send_wr** /*bad*/) {
  g_doorbell[0] += first->wr_id;
  return 0;
}
int benchPostRecv(ibv_qp* /*qp*/, ibv_recv_wr* first, ibv_recv_wr** /*bad*/) {
  g_doorbell[0] += first->wr_id;
  return 0;
}
int benchPoll(ibv_cq* /*cq*/, int /*most*/, ibv_wc* completions) {
  completions->wr_id = g_doorbell[0];
  return 1;
}

void wrStart(ibv_qp_ex* qp) {
  if (!of(qp).batching.try_lock()) {
    g_blocked.fetch_add(1);
    of(qp).batching.lock();
    g_blocked.fetch_sub(1);
  }
  of(qp).batch.clear();
}
void wrWrite(ibv_qp_ex* qp, std::uint32_t /*key*/, std::uint64_t /*address*/) {
  Request request{completionOf(of(qp), qp->wr_id, IBV_WC_RDMA_WRITE)};
  request.signalled = of(qp).signal_all || (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  of(qp).batch.push_back(request);
}
void wrSetSge(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint32_t) {}
void wrSetSgeList(ibv_qp_ex*, std::size_t, const ibv_sge*) {}
void wrSetInline(ibv_qp_ex*, void*, std::size_t) {}
void wrSetInlineList(ibv_qp_ex*, std::size_t, const ibv_data_buf*) {}
void wrAbort(ibv_qp_ex* qp) {
  g_aborts.fetch_add(1);
  of(qp).batch.clear();
  of(qp).batching.unlock();
}
int wrComplete(ibv_qp_ex* qp) {
  const std::lock_guard lock(of(qp).batching, std::adopt_lock);
  if (const int error = g_fail_posts.load(); error != 0) return error;
  for (const Request& request : of(qp).batch) {
    g_posts.fetch_add(1);
    if (request.signalled) complete(qp->qp_base.send_cq, &request.completion);
  }
  of(qp).batch.clear();
  return 0;
}

int nextPoll(ibv_cq_ex* cq) {
  ibv_cq* const plain = ibv_cq_ex_to_cq(cq);
  ibv_wc& completion = of(plain).current;
  if (pollCq(plain, 1, &completion) != 1) return ENOENT;
  cq->status = completion.status;
  cq->wr_id = completion.wr_id;
  return 0;
}
int startPoll(ibv_cq_ex* cq, ibv_poll_cq_attr* /*attributes*/) { return nextPoll(cq); }
std::uint32_t readQpNum(ibv_cq_ex* cq) { return of(ibv_cq_ex_to_cq(cq)).current.qp_num; }
void endPoll(ibv_cq_ex* /*cq*/) {}

}  // namespace

Qp* makeQp(ibv_context* context, ibv_pd* pd, ibv_qp_init_attr init) {
  Qp* const qp = place<Qp>();
  qp->attributes = {};
  qp->init = init;
  qp->signal_all = init.sq_sig_all != 0;
  ibv_qp& base = qp->ex.qp_base;
  base.context = context;
  base.pd = pd;
  base.send_cq = init.send_cq;
  base.recv_cq = init.recv_cq;
  base.qp_type = init.qp_type;
  base.qp_num = g_next_number.fetch_add(1);
  base.state = IBV_QPS_RESET;
  return qp;
}

Cq* makeCq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel) {
  Cq* const cq = place<Cq>();
  cq->completions.clear();
  cq->cq.context = context;
  cq->cq.channel = channel;
  cq->cq.cq_context = cookie;
  cq->cq.cqe = entries;
  cq->cq.start_poll = startPoll;
  cq->cq.next_poll = nextPoll;
  cq->cq.end_poll = endPoll;
  return cq;
}

namespace {

ibv_qp* createQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  if (g_fail_create.load() != 0) return nullptr;
  ibv_qp_init_attr init{};
  init.send_cq = attributes->send_cq;
  init.recv_cq = attributes->recv_cq;
  init.cap = attributes->cap;
  init.qp_type = attributes->qp_type;
  init.sq_sig_all = attributes->sq_sig_all;
  Qp* const qp = makeQp(context, attributes->pd, init);
  qp->extended = (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (qp->extended) {
    qp->ex.wr_start = wrStart;
    qp->ex.wr_rdma_write = wrWrite;
    qp->ex.wr_set_sge = wrSetSge;
    qp->ex.wr_set_sge_list = wrSetSgeList;
    qp->ex.wr_set_inline_data = wrSetInline;
    qp->ex.wr_set_inline_data_list = wrSetInlineList;
    qp->ex.wr_complete = wrComplete;
    qp->ex.wr_abort = wrAbort;
  }
  return &qp->ex.qp_base;
}

ibv_cq_ex* createCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  if (g_fail_create.load() != 0) return nullptr;
  ibv_cq_ex& cq = makeCq(context, static_cast<int>(attributes->cqe), attributes->cq_context,
                         attributes->channel)
                      ->cq;
  if ((attributes->wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0) cq.read_qp_num = readQpNum;
  return &cq;
}

template <std::size_t N>
void manyStart(ibv_qp_ex* qp) {
  g_called.store(N);
  wrStart(qp);
}
template <std::size_t N>
int manyStartPoll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  g_called.store(N);
  return startPoll(cq, attributes);
}
template <std::size_t N>
ibv_qp* manyCreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes);
template <std::size_t N>
ibv_cq_ex* manyCreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes);

struct Functions {
  decltype(ibv_context_ops::post_send) postSend;
  decltype(ibv_qp_ex::wr_start) start;
  decltype(ibv_cq_ex::start_poll) startPoll;
  decltype(verbs_context::create_qp_ex) createQpEx;
  decltype(verbs_context::create_cq_ex) createCqEx;
};
template <std::size_t... N>
constexpr auto functionsOf(std::index_sequence<N...>) {
  return std::array{Functions{&manyPostSend<N>, &manyStart<N>, &manyStartPoll<N>,
                              &manyCreateQpEx<N>, &manyCreateCqEx<N>}...};
}
constexpr auto kManyFunctions = functionsOf(std::make_index_sequence<kMany>());
const Functions& otherFunctions() { return kManyFunctions[g_next_many.fetch_add(1) % kMany]; }

template <std::size_t N>
ibv_qp* manyCreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  ibv_qp* const qp = createQpEx(context, attributes);
  if (qp == nullptr || !of(qp).extended) return qp;
  of(qp).ex.wr_start = otherFunctions().start;
  of(qp).ex.wr_abort = nullptr;
  return qp;
}
template <std::size_t N>
ibv_cq_ex* manyCreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex* const cq = createCqEx(context, attributes);
  if (cq != nullptr) cq->start_poll = otherFunctions().startPoll;
  return cq;
}

}  // namespace

void equip(Context& made, std::ptrdiff_t device) {
  verbs_context* const extended = &made.extended;
  extended->sz = sizeof(*extended);
  extended->create_qp_ex = createQpEx;
  extended->create_cq_ex = createCqEx;
  ibv_context& context = extended->context;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.ops.post_send = postSend;
  context.ops.post_recv = postRecv;
  context.ops.poll_cq = pollCq;
  context.ops.req_notify_cq = askForEvent;
  if (device == kOtherDevice) {
    context.ops.post_send = otherPostSend;
    context.ops.poll_cq = otherPollCq;
  } else if (device == kBenchDevice) {
    context.ops.post_send = benchPost;
    context.ops.post_recv = benchPostRecv;
    context.ops.poll_cq = benchPoll;
  } else if (device == kManyDevice) {
    const Functions& functions = otherFunctions();
    context.ops.post_send = functions.postSend;
    extended->create_qp_ex = functions.createQpEx;
    extended->create_cq_ex = functions.createCqEx;
  } else if (device == kOldDevice) {
    context.abi_compat = nullptr;
    context.ops.req_notify_cq = nullptr;
  }
}

bool deliver(ibv_qp* qp, std::uint32_t bytes) {
  std::uint64_t work_request = 0;
  {
    const std::lock_guard lock(of(qp).mutex);
    if (of(qp).receives.empty()) return false;
    work_request = of(qp).receives.front();
    of(qp).receives.pop_front();
  }
  ibv_wc completion = completionOf(of(qp), work_request, IBV_WC_RECV);
  completion.byte_len = bytes;
  complete(qp->recv_cq, &completion);
  return true;
}

}  // namespace faultline::testing
