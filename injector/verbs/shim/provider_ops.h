#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>

#include "injector/verbs/shim/concerned.h"

/// The functions of the device's provider that the shim stands in front of. Each distinct set has a
/// place in a small table, and for each place there are functions of ours that know it, so that a
/// call needs no search: one look at `g_armed`, one more at `g_concerned` while something is, then
/// on to the provider.
namespace faultline::injector::verbs::shim {

/// Whether any fault is armed, or completions are still held back.
extern std::atomic<bool> g_armed;
/// And if so, which queue pairs and completion queues that is about.
extern Concerned g_concerned;

struct ContextOps {
  decltype(ibv_context_ops::post_send) postSend = nullptr;
  decltype(ibv_context_ops::post_recv) postRecv = nullptr;
  decltype(ibv_context_ops::poll_cq) pollCq = nullptr;
  decltype(ibv_context_ops::req_notify_cq) askForEvent = nullptr;
  bool operator==(const ContextOps&) const = default;
};

/// What ibv_create_qp_ex() and ibv_create_cq_ex() call without passing through the library.
struct CreateOps {
  decltype(verbs_context::create_qp_ex) queuePair = nullptr;
  decltype(verbs_context::create_cq_ex) completionQueue = nullptr;
  bool operator==(const CreateOps&) const = default;
};

/// Of the extended way to post (ibv_wr_start and so on).
struct BatchOps {
  decltype(ibv_qp_ex::wr_start) start = nullptr;
  decltype(ibv_qp_ex::wr_complete) complete = nullptr;
  decltype(ibv_qp_ex::wr_abort) abort = nullptr;
  decltype(ibv_qp_ex::wr_set_sge) setSge = nullptr;
  decltype(ibv_qp_ex::wr_set_sge_list) setSgeList = nullptr;
  decltype(ibv_qp_ex::wr_set_inline_data) setInline = nullptr;
  decltype(ibv_qp_ex::wr_set_inline_data_list) setInlineList = nullptr;
  bool operator==(const BatchOps&) const = default;
};

/// Of the extended way to poll, which is only counted.
struct PollOps {
  decltype(ibv_cq_ex::start_poll) start = nullptr;
  decltype(ibv_cq_ex::next_poll) next = nullptr;
  bool operator==(const PollOps&) const = default;
};

/// Puts our functions in place. False when the table is full: nothing is changed then. One thread
/// at a time.
bool interpose(ibv_context& context);
bool interpose(ibv_qp_ex& qp);
bool interpose(ibv_cq_ex& cq);

}  // namespace faultline::injector::verbs::shim
