#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

/// The devices of the library without a kernel (fake_ibverbs.h): its objects, and what their tables
/// of functions call.
namespace faultline::testing {

inline constexpr int kOtherDevice = 2;  ///< of another provider, which does the same
inline constexpr int kBenchDevice = 3;  ///< whose calls cost next to nothing

// What tests have said of it (FakeControls), and what it has seen.
inline std::atomic<std::uint32_t> g_next_number{100};
inline std::atomic<int> g_fail_posts{0}, g_fail_modify{0}, g_fail_destroy{0};
inline std::atomic<int> g_fail_create{0}, g_fail_query{0}, g_fail_ask{0};
inline std::atomic<bool> g_ignore_error{false}, g_hide_bad{false};
inline std::atomic<bool> g_block_modify{false}, g_block_polls{false}, g_block_close{false};
inline std::atomic<int> g_blocked{0}, g_polls_left{-1};
inline std::atomic<void*> g_reused{nullptr};
inline std::atomic<long> g_posts{0}, g_aborts{0}, g_contexts{0};

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

inline Context& of(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<char*>(context) -
                                     offsetof(verbs_context, context));
}
inline Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
inline Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
inline Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

/// Returns when `block` is taken back.
void waitWhile(const std::atomic<bool>& block);

/// A new one, or at a place that a test has said.
template <typename Object>
Object* place() {
  void* const reused = g_reused.exchange(nullptr);
  return reused == nullptr ? new Object : static_cast<Object*>(reused);
}

Qp* makeQp(ibv_context* context, ibv_pd* pd, ibv_qp_init_attr init);
Cq* makeCq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel);
/// With the functions of the device of that number.
void equip(Context& made, std::ptrdiff_t device);

void complete(ibv_cq* cq, const ibv_wc* completion);
/// Of the first receive; false where there is none.
bool deliver(ibv_qp* qp, std::uint32_t bytes);

}  // namespace faultline::testing
