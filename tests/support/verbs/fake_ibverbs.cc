#include "tests/support/verbs/fake_ibverbs.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

// Functions here, macros in the header.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace faultline::testing {
namespace {

constexpr int kDevices = 6;
constexpr int kBench = 3;

std::array<ibv_device, kDevices> namedDevices() {
  std::array<ibv_device, kDevices> devices{};
  for (int i = 0; i < kDevices; ++i) {
    ibv_device& device = devices[static_cast<std::size_t>(i)];
    std::snprintf(device.name, sizeof(device.name), i == kBench ? "bench0" : "fake%d", i);
    if (i == kManyDevice) std::strcpy(device.name, "many0");
    if (i == kOldDevice) std::strcpy(device.name, "old0");
  }
  return devices;
}

std::array<ibv_device, kDevices> g_devices = namedDevices();
std::atomic<std::uint32_t> g_next_number{100};
std::atomic<int> g_fail_posts{0}, g_fail_modify{0}, g_fail_destroy{0};
std::atomic<int> g_fail_create{0}, g_fail_query{0}, g_fail_ask{0};
std::atomic<bool> g_ignore_error{false}, g_hide_bad{false};
std::atomic<bool> g_block_modify{false}, g_block_polls{false}, g_block_close{false};
std::atomic<int> g_blocked{0}, g_polls_left{-1};
std::atomic<void*> g_reused{nullptr};
std::atomic<long> g_posts{0}, g_aborts{0}, g_contexts{0};

void waitWhile(const std::atomic<bool>& block) {
  if (!block.load()) return;
  g_blocked.fetch_add(1);
  while (block.load()) ::poll(nullptr, 0, 1);
  g_blocked.fetch_sub(1);
}

struct Cq {
  ibv_cq_ex cq{};  // first, so that one is the other
  std::mutex mutex;
  std::deque<ibv_wc> completions;
  ibv_wc current{};
  bool asked = false;       // for an event of the next completion
  long unacknowledged = 0;  // events
};

struct Context {
  verbs_context extended{};  // first, so that one is the other
  long made = 0;             // the how many-th in this place
};

struct Channel {
  ibv_comp_channel channel{};  // first, so that one is the other
  int write_end = -1;          // of events: addresses of their queues
};

struct Request {
  ibv_wc completion{};
  bool signalled = false;
};

struct Qp {
  ibv_qp_ex ex{};  // first, so that one is the other
  bool extended = false;
  bool signal_all = false;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  std::mutex mutex;
  std::deque<std::uint64_t> receives;
  std::mutex batching;  // from wrStart() until wrComplete() or wrAbort()
  std::vector<Request> batch;
};

Context& of(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<char*>(context) -
                                     offsetof(verbs_context, context));
}
Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

void complete(ibv_cq* cq, const ibv_wc* completion) {
  const std::lock_guard lock(of(cq).mutex);
  of(cq).completions.push_back(*completion);
  if (!std::exchange(of(cq).asked, false)) return;
  ++of(cq).unacknowledged;
  const int events = reinterpret_cast<Channel*>(cq->channel)->write_end;
  if (::write(events, &cq, sizeof(cq)) != sizeof(cq)) std::abort();
}

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

int postSend(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  for (ibv_send_wr* at = first; at != nullptr; at = at->next) {
    if (const int error = g_fail_posts.load(); error != 0) {
      if (!g_hide_bad.load()) *bad = at;
      return error;
    }
    g_posts.fetch_add(1);
    const ibv_wc completion = completionOf(of(qp), at->wr_id, IBV_WC_RDMA_WRITE);
    const bool tells = of(qp).signal_all || (at->send_flags & IBV_SEND_SIGNALED) != 0 ||
                       completion.status != IBV_WC_SUCCESS;
    if (tells) complete(qp->send_cq, &completion);
  }
  return 0;
}

int postRecv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  for (ibv_recv_wr* at = first; at != nullptr; at = at->next) {
    if (const int error = g_fail_posts.load(); error != 0) {
      if (!g_hide_bad.load()) *bad = at;
      return error;
    }
    g_posts.fetch_add(1);
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

int startPoll(ibv_cq_ex* cq, ibv_poll_cq_attr* /*attributes*/) {
  ibv_wc completion{};
  ibv_cq* const plain = ibv_cq_ex_to_cq(cq);
  if (pollCq(plain, 1, &completion) != 1) return ENOENT;
  cq->status = completion.status;
  cq->wr_id = completion.wr_id;
  return 0;
}
void endPoll(ibv_cq_ex* /*cq*/) {}

template <typename Object>
Object* place() {
  void* const reused = g_reused.exchange(nullptr);
  return reused == nullptr ? new Object : static_cast<Object*>(reused);
}

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

Cq* makeCq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel) {
  Cq* const cq = place<Cq>();
  cq->completions.clear();
  cq->cq.context = context;
  cq->cq.channel = channel;
  cq->cq.cq_context = cookie;
  cq->cq.cqe = entries;
  cq->cq.start_poll = startPoll;
  cq->cq.end_poll = endPoll;
  return cq;
}

ibv_cq_ex* createCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  if (g_fail_create.load() != 0) return nullptr;
  return &makeCq(context, static_cast<int>(attributes->cqe), attributes->cq_context,
                 attributes->channel)
              ->cq;
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

constexpr FakeControls kControls{
    deliver,
    complete,
    [](int error) { g_fail_posts.store(error); },
    [](int error) { g_fail_modify.store(error); },
    [](int error) { g_fail_destroy.store(error); },
    [](bool ignore) { g_ignore_error.store(ignore); },
    [](int polls) { g_polls_left.store(polls); },
    [](int error) { g_fail_create.store(error); },
    [](int error) { g_fail_query.store(error); },
    [](int error) { g_fail_ask.store(error); },
    [](void* object) { g_reused.store(object); },
    [](ibv_qp* qp) {
      const std::lock_guard lock(of(qp).mutex);
      of(qp).attributes.qp_state = IBV_QPS_ERR;
      __atomic_store_n(&qp->state, IBV_QPS_ERR, __ATOMIC_RELAXED);
    },
    [](ibv_pd* pd, ibv_qp_init_attr* attributes) {
      return &makeQp(pd->context, pd, *attributes)->ex.qp_base;
    },
    [](ibv_context* context, ibv_comp_channel* channel) {
      return ibv_cq_ex_to_cq(&makeCq(context, 16, nullptr, channel)->cq);
    },
    [](bool hide) { g_hide_bad.store(hide); },
    [](bool block) { g_block_modify.store(block); },
    [](bool block) { g_block_polls.store(block); },
    [](bool block) { g_block_close.store(block); },
    [] { return g_blocked.load(); },
    [] { return g_posts.load(); },
    [] { return g_aborts.load(); },
    [] { return g_contexts.load(); },
    [](ibv_cq* cq) {
      const std::lock_guard lock(of(cq).mutex);
      return of(cq).unacknowledged;
    },
};

}  // namespace
}  // namespace faultline::testing

namespace fake = faultline::testing;

extern "C" {

__attribute__((visibility("default"))) const fake::FakeControls* fakeControls() {
  return &fake::kControls;
}

ibv_device** ibv_get_device_list(int* count) {
  auto** const list = new ibv_device*[fake::kDevices + 1];
  for (int i = 0; i < fake::kDevices; ++i) {
    list[i] = &fake::g_devices[static_cast<std::size_t>(i)];
  }
  list[fake::kDevices] = nullptr;
  if (count != nullptr) *count = fake::kDevices;
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  if (fake::g_fail_create.load() != 0) return nullptr;
  fake::Context* const made = fake::place<fake::Context>();
  ++made->made;
  verbs_context* const extended = &made->extended;
  extended->sz = sizeof(*extended);
  extended->create_qp_ex = fake::createQpEx;
  extended->create_cq_ex = fake::createCqEx;
  ibv_context& context = extended->context;
  context.device = device;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  const std::ptrdiff_t index = device - fake::g_devices.data();
  context.ops.post_send = fake::postSend;
  context.ops.post_recv = fake::postRecv;
  context.ops.poll_cq = fake::pollCq;
  context.ops.req_notify_cq = fake::askForEvent;
  if (index == 2) {
    context.ops.post_send = fake::otherPostSend;
    context.ops.poll_cq = fake::otherPollCq;
  } else if (index == fake::kBench) {
    context.ops.post_send = fake::benchPost;
    context.ops.post_recv = fake::benchPostRecv;
    context.ops.poll_cq = fake::benchPoll;
  } else if (index == fake::kManyDevice) {
    const fake::Functions& functions = fake::otherFunctions();
    context.ops.post_send = functions.postSend;
    extended->create_qp_ex = functions.createQpEx;
    extended->create_cq_ex = functions.createCqEx;
  } else if (index == fake::kOldDevice) {
    context.abi_compat = nullptr;
    context.ops.req_notify_cq = nullptr;
  }
  fake::g_contexts.fetch_add(1);
  return &context;
}

ibv_context* ibv_import_device(int index) {
  return ibv_open_device(&fake::g_devices[static_cast<std::size_t>(index)]);
}

int ibv_close_device(ibv_context* context) {
  fake::Context* const whole = &fake::of(context);
  const long made = whole->made;
  fake::waitWhile(fake::g_block_close);
  if (const int error = fake::g_fail_destroy.load(); error != 0) return error;
  fake::g_contexts.fetch_sub(1);
  if (whole->made == made) delete whole;  // else the next one is there
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const pd = new ibv_pd{};
  pd->context = context;
  return pd;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = new fake::Channel;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  channel->channel.context = context;
  channel->channel.fd = ends[0];
  channel->write_end = ends[1];
  return &channel->channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  auto* const whole = reinterpret_cast<fake::Channel*>(channel);
  ::close(channel->fd);
  ::close(whole->write_end);
  delete whole;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  if (::read(channel->fd, cq, sizeof(*cq)) != sizeof(*cq)) return -1;
  *cookie = (*cq)->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  const std::lock_guard lock(fake::of(cq).mutex);
  fake::of(cq).unacknowledged -= count;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel,
                      int /*vector*/) {
  if (fake::g_fail_create.load() != 0) return nullptr;
  return ibv_cq_ex_to_cq(&fake::makeCq(context, entries, cookie, channel)->cq);
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (const int error = fake::g_fail_destroy.load(); error != 0) return error;
  delete &fake::of(cq);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (fake::g_fail_create.load() != 0) return nullptr;
  return &fake::makeQp(pd->context, pd, *attributes)->ex.qp_base;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  return fake::of(qp).extended ? &fake::of(qp).ex : nullptr;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (const int error = fake::g_fail_modify.load(); error != 0) return error;
  fake::waitWhile(fake::g_block_modify);
  const std::lock_guard lock(fake::of(qp).mutex);  // any thread may, as with the kernel's
  ibv_qp_attr& kept = fake::of(qp).attributes;
  const bool ignored = attributes->qp_state == IBV_QPS_ERR && fake::g_ignore_error.load();
  if ((mask & IBV_QP_STATE) != 0 && !ignored) {
    kept.qp_state = attributes->qp_state;
    // Read by posting threads, as a provider's is.
    __atomic_store_n(&qp->state, attributes->qp_state, __ATOMIC_RELAXED);
  }
  if ((mask & IBV_QP_DEST_QPN) != 0) kept.dest_qp_num = attributes->dest_qp_num;
  if ((mask & IBV_QP_AV) != 0) kept.ah_attr = attributes->ah_attr;
  return 0;
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* init) {
  if (const int error = fake::g_fail_query.load(); error != 0) return error;
  const std::lock_guard lock(fake::of(qp).mutex);
  *attributes = fake::of(qp).attributes;
  *init = fake::of(qp).init;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (const int error = fake::g_fail_destroy.load(); error != 0) return error;
  delete &fake::of(qp);
  return 0;
}

/// What it was given.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access) {
  static ibv_mr given;
  given.pd = pd;
  given.addr = reinterpret_cast<void*>(offset);
  given.length = length;
  given.handle = static_cast<std::uint32_t>(iova);
  given.lkey = static_cast<std::uint32_t>(fd);
  given.rkey = static_cast<std::uint32_t>(access);
  return &given;
}

const char* ibv_wc_status_str(ibv_wc_status /*status*/) { return "a status"; }

}  // extern "C"
