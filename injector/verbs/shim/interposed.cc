// The functions that the shim does not only hand on. Whoever calls them must not notice it.
#include <infiniband/verbs.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "injector/verbs/shim/control.h"
#include "injector/verbs/shim/events.h"
#include "injector/verbs/shim/real_library.h"
#include "injector/verbs/shim/shim.h"

#define FAULTLINE_EXPORT extern "C" __attribute__((visibility("default")))

namespace faultline::injector::verbs::shim {
namespace {

constexpr const char* kVersion = "IBVERBS_1.1";

constinit Real<ibv_context*(ibv_device*)> g_open("ibv_open_device", kVersion);
constinit Real<ibv_context*(int)> g_import("ibv_import_device", "IBVERBS_1.10");
constinit Real<int(ibv_context*)> g_close("ibv_close_device", kVersion);
constinit Real<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)> g_create_qp("ibv_create_qp", kVersion);
constinit Real<int(ibv_qp*, ibv_qp_attr*, int)> g_modify_qp("ibv_modify_qp", kVersion);
constinit Real<int(ibv_qp*)> g_destroy_qp("ibv_destroy_qp", kVersion);
constinit Real<ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int)> g_create_cq(
    "ibv_create_cq", kVersion);
constinit Real<int(ibv_cq*)> g_destroy_cq("ibv_destroy_cq", kVersion);
constinit Real<GetEvent> g_get_event("ibv_get_cq_event", kVersion);
constinit Real<AcknowledgeEvents> g_ack_events("ibv_ack_cq_events", kVersion);

template <typename Pointer>
Pointer missing() {
  errno = EOPNOTSUPP;
  return nullptr;
}

/// Before any device is open there is nothing to control.
ibv_context* watch(ibv_context* context) {
  if (context == nullptr) return nullptr;
  Shim::instance().opened(*context);
  Control::ensure();
  return context;
}

// A child has neither the control thread nor a controller, and must not find a mutex taken by a
// thread that it does not have.
void beforeFork() {
  Control::beforeFork();
  Shim::instance().beforeFork();
}
void afterForkInParent() {
  Shim::instance().afterForkInParent();
  Control::afterForkInParent();
}
void afterForkInChild() {
  Shim::instance().afterForkInChild();
  Control::afterForkInChild();
}

[[maybe_unused]] const int kForkHandlers =
    ::pthread_atfork(&beforeFork, &afterForkInParent, &afterForkInChild);

}  // namespace
}  // namespace faultline::injector::verbs::shim

namespace shim = faultline::injector::verbs::shim;

FAULTLINE_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  auto* const real = shim::g_open.get();
  return real == nullptr ? shim::missing<ibv_context*>() : shim::watch(real(device));
}

FAULTLINE_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  auto* const real = shim::g_import.get();
  return real == nullptr ? shim::missing<ibv_context*>() : shim::watch(real(cmd_fd));
}

FAULTLINE_EXPORT int ibv_close_device(ibv_context* context) {
  auto* const real = shim::g_close.get();
  if (real == nullptr) return EOPNOTSUPP;
  shim::Shim::instance().closing(*context);
  const int result = real(context);
  shim::Shim::instance().closed(*context, result == 0);
  return result;
}

FAULTLINE_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  auto* const real = shim::g_create_qp.get();
  if (real == nullptr) return shim::missing<ibv_qp*>();
  ibv_qp* const qp = real(pd, attributes);
  if (qp == nullptr) return nullptr;
  shim::Shim::instance().created(
      *qp, {attributes->sq_sig_all != 0, std::max(attributes->cap.max_send_wr, 1U)});
  return qp;
}

FAULTLINE_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  auto* const real = shim::g_modify_qp.get();
  if (real == nullptr) return EOPNOTSUPP;
  const int result = real(qp, attributes, mask);
  if (result == 0) shim::Shim::instance().modified(*qp, *attributes, mask);
  return result;
}

FAULTLINE_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  auto* const real = shim::g_destroy_qp.get();
  if (real == nullptr) return EOPNOTSUPP;
  shim::Shim::instance().destroying(*qp);
  const int result = real(qp);
  if (result != 0) shim::Shim::instance().adopt(*qp);
  return result;
}

FAULTLINE_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cookie,
                                       ibv_comp_channel* channel, int vector) {
  auto* const real = shim::g_create_cq.get();
  if (real == nullptr) return shim::missing<ibv_cq*>();
  ibv_cq* const cq = real(context, entries, cookie, channel, vector);
  if (cq != nullptr) shim::Shim::instance().created(*cq);
  return cq;
}

FAULTLINE_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  auto* const real = shim::g_destroy_cq.get();
  if (real == nullptr) return EOPNOTSUPP;
  shim::Shim::instance().destroying(*cq);
  shim::Shim::instance().awaitAcknowledgement(*cq);
  const int result = real(cq);
  if (result != 0) shim::Shim::instance().stays(*cq);
  return result;
}

FAULTLINE_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  auto* const real = shim::g_get_event.get();
  if (real != nullptr) return shim::getEvent(real, channel, cq, cookie);
  errno = EOPNOTSUPP;
  return -1;
}

FAULTLINE_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  auto* const real = shim::g_ack_events.get();
  if (real != nullptr) shim::acknowledgeEvents(real, cq, count);
}
