#include "tests/support/verbs/fake_ibverbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/support/verbs/fake_provider.h"

// Functions here, macros in the header.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace faultline::testing {
namespace {

constexpr int kDevices = 6;

std::array<ibv_device, kDevices> namedDevices() {
  std::array<ibv_device, kDevices> devices{};
  for (int i = 0; i < kDevices; ++i) {
    ibv_device& device = devices[static_cast<std::size_t>(i)];
    std::snprintf(device.name, sizeof(device.name), i == kBenchDevice ? "bench0" : "fake%d", i);
    if (i == kManyDevice) std::strcpy(device.name, "many0");
    if (i == kOldDevice) std::strcpy(device.name, "old0");
  }
  return devices;
}

std::array<ibv_device, kDevices> g_devices = namedDevices();

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
  fake::equip(*made, device - fake::g_devices.data());
  ibv_context& context = made->extended.context;
  context.device = device;
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
