#pragma once

#include <cstdint>
#include <vector>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {

/// Programs that ask for events of completions.
class EventTest : public ShimTest {
 protected:
  static void ask(const Device& device) { EXPECT_EQ(ibv_req_notify_cq(device.cq, 0), 0); }

  /// The queue that an event is of; nullptr: there is none (errno says why).
  static ibv_cq* event(const Device& device) {
    ibv_cq* cq = nullptr;
    void* cookie = nullptr;
    if (shimLibrary().getEvent(device.channel, &cq, &cookie) != 0) return nullptr;
    EXPECT_EQ(cookie, cq->cq_context);
    return cq;
  }

  static std::uint64_t delay(Connection& control, const ibv_qp* qp, Duration delay) {
    Rule slow = rule(Effect::kQpDelay, qp);
    slow.delay = delay;
    return valueOf(control.arm(slow));
  }

  /// A completion is held and the program, which has asked for an event of it, gets that when it is
  /// due; from then on it is known to sleep in the call.
  static void sleepOnce(const Device& device, ibv_qp* qp) {
    postSend(qp, 1);
    const TimePoint begin = now();
    EXPECT_THAT(device.poll(), ::testing::IsEmpty());
    ask(device);
    EXPECT_EQ(event(device), device.cq);
    EXPECT_GE(now() - begin, kBrief);
    EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
  }

  static constexpr Duration kBrief = 50ms;
};

}  // namespace faultline::testing
