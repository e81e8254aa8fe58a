#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

/// A libibverbs without a kernel: the tests of the shim put it behind the shim. Sends complete at
/// once, at the sender only; receives complete when fakeDeliver() says so. Completion channels have
/// a descriptor that is readable while they have an event. Devices:
///   fake0, fake1  alike, the same functions
///   fake2         other functions for the same, as another provider has
///   bench0        does next to nothing, for measuring what the shim adds
///   many0         each time it is opened, and for each object of its extended calls, other
///   functions;
///                 cannot abort a batch
///   old0          knows neither extended calls nor events
namespace faultline::testing {

inline constexpr int kManyDevice = 4;
inline constexpr int kOldDevice = 5;

/// What the fake has been asked to do, by name; in a table of functions, so that a test gets them
/// all with one look-up ("fakeControls").
struct FakeControls {
  /// A receive of this queue pair completes with so many bytes. False when none was posted.
  bool (*deliver)(ibv_qp* qp, std::uint32_t bytes);
  /// A completion as hardware would make it.
  void (*complete)(ibv_cq* cq, const ibv_wc* completion);
  /// The next calls of this function fail with this errno (0: they work again).
  void (*failPosts)(int error);
  void (*failModify)(int error);
  void (*failDestroy)(int error);
  /// ibv_modify_qp() to the error state succeeds and changes nothing.
  void (*ignoreError)(bool ignore);
  /// Those after so many more fail; -1: none.
  void (*failPollsAfter)(int polls);
  void (*failCreate)(int error);  ///< of all that makes or opens something, and gives nothing then
  void (*failQuery)(int error);
  void (*failAsk)(int error);  ///< for an event
  /// The next queue pair, completion queue or context is made where this one is, which is
  /// forgotten.
  void (*reuse)(void* object);
  /// This one goes to the error state by itself.
  void (*breakQp)(ibv_qp* qp);
  /// Of the fake's own, past the shim.
  ibv_qp* (*createQp)(ibv_pd* pd, ibv_qp_init_attr* attributes);
  ibv_cq* (*createCq)(ibv_context* context, ibv_comp_channel* channel);
  /// Posts that fail do not say at which request.
  void (*hideBad)(bool hide);
  /// ibv_modify_qp(), polls or ibv_close_device() do not return until this is taken back.
  void (*blockModify)(bool block);
  void (*blockPolls)(bool block);
  void (*blockClose)(bool block);
  int (*blocked)();  ///< calls that do not return now
  /// Posts that the fake has seen, and ibv_wr_abort()s.
  long (*posts)();
  long (*aborts)();
  long (*contexts)();  ///< open now
  /// Events of this queue; ibv_destroy_cq() of the kernel's waits for ever unless there are none.
  long (*unacknowledged)(ibv_cq* cq);
};

using GetFakeControls = const FakeControls*();

}  // namespace faultline::testing
