#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/sanitizers.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DelayTest : public ShimTest {};

TEST_F(DelayTest, CompletionsComeLateAndOthersAtOnce) {
  Device device(0);
  ibv_qp* const victim = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpDelay, victim)));
  const TimePoint posted = now();
  postSend(victim, 1);
  postSend(other, 2);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(valueOf(control.counters(fault)).held, 1u);
  std::vector<ibv_wc> late;
  EXPECT_TRUE(becomes([&] { return !(late = device.poll()).empty(); }));
  EXPECT_GE(now() - posted, 50ms);
  EXPECT_EQ(idsOf(late), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(late[0].status, IBV_WC_SUCCESS);
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.released, 1u);
  EXPECT_GE(counters.shortestNanoseconds, 50'000'000u);
}

TEST_F(DelayTest, WhatIsNotDelayedWaitsForItsTurn) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule first = rule(Effect::kQpDelay, qp);
  first.trigger.budget = 1;
  valueOf(control.arm(first));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(qp, i);
  std::vector<std::uint64_t> order;
  EXPECT_TRUE(becomes([&] {
    for (const std::uint64_t id : idsOf(device.poll())) order.push_back(id);
    return order.size() == 3;
  }));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST_F(DelayTest, AQueueThatAFaultIsAboutAlreadyHoldsForTheNext) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule later = rule(Effect::kCompletionRewrite, qp);
  later.trigger.afterOperations = 1;
  valueOf(control.arm(later));
  postSend(qp, 1);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
  const std::uint64_t slow = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 2);
  EXPECT_THAT(device.poll(), IsEmpty());
  valueOf(control.disarm(slow));
  EXPECT_EQ(device.poll().at(0).vendor_err, kInjectedVendorError) << "the other is still armed";
}

// What was polled before is not counted, nor does it use up the budget.
TEST_F(DelayTest, ItBeginsWithAWholePollWhileOthersGoOn) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule never = rule(Effect::kCompletionRewrite, qp);
  never.trigger.afterOperations = std::uint64_t{1} << 40;
  std::atomic<bool> stop{false};
  std::thread program([&] {
    while (!stop) {
      postSend(qp, 1);
      device.poll();
    }
  });
  Rule once = rule(Effect::kQpDelay, qp);
  once.delay = 1us;
  once.trigger.budget = 1;
  const TimePoint begin = now();
  for (int i = 0; (i < 300 || now() < begin + 300ms) && !HasFailure(); ++i) {
    const std::uint64_t other = valueOf(control.arm(never));
    const std::uint64_t fault = valueOf(control.arm(once));
    EXPECT_TRUE(becomes([&] { return valueOf(control.counters(fault)).released == 1; })) << i;
    valueOf(control.disarm(other));
    EXPECT_EQ(valueOf(control.disarm(fault)).uncovered, 0u) << i;
  }
  stop = true;
  program.join();
}

TEST_F(DelayTest, DisarmingDeliversAtOnceAndInOrder) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(qp, i);
  EXPECT_THAT(device.poll(), IsEmpty());
  valueOf(control.disarm(fault));
  postSend(qp, 3);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

/// What was held is held, was delivered, or was dropped.
void expectHeld(const Counters& counters, std::uint64_t now, std::uint64_t delivered,
                std::uint64_t dropped) {
  EXPECT_EQ(counters.held, now);
  EXPECT_EQ(counters.released, delivered);
  EXPECT_EQ(counters.dropped, dropped);
  EXPECT_EQ(counters.struck, now + delivered + dropped);
}

TEST_F(DelayTest, WhatIsHeldGoesWithItsQueuePairAndIsCounted) {
  Device device(0);
  ibv_qp* const gone = device.makeQp();
  ibv_qp* const kept = device.makeQp();
  Connection control = connect();
  Rule slow = longDelay();
  slow.match.device = "fake0";
  const std::uint64_t fault = valueOf(control.arm(slow));
  for (ibv_qp* const qp : {gone, gone, kept}) postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  expectHeld(valueOf(control.counters(fault)), 3, 0, 0);
  device.destroy(gone);
  expectHeld(valueOf(control.counters(fault)), 1, 0, 2);
}

TEST_F(DelayTest, AfterAResetNothingOfBeforeIsDelivered) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  putInState(qp, IBV_QPS_RESET);
  expectHeld(valueOf(control.counters(fault)), 0, 0, 1);
  Device::connect(qp, 0);
  postSend(qp, 2);
  EXPECT_THAT(device.poll(), IsEmpty());
  valueOf(control.disarm(fault));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
}

#if !defined(FAULTLINE_ADDRESS_SANITIZER) && !defined(FAULTLINE_THREAD_SANITIZER)
// Sanitizers map more than any limit of address space.
TEST_F(DelayTest, WhereThereIsNoMemoryForWhatIsHeldItIsRefusedAndTheProgramGoesOn) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  const int entries = std::exchange(device.cq->cqe, 1 << 26);
  Connection control = connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{2UL << 30, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  const auto refused = control.arm(longDelay(qp));
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(refused.status().code(), Code::kUnavailable) << refused.status().message();
  EXPECT_THAT(refused.status().message(), HasSubstr("no memory"));
  EXPECT_EQ(valueOf(control.hello()).armed, 0u);
  device.cq->cqe = entries;
  postSend(qp, 1);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
}
#endif

// The program has got an error when it has got it.
TEST_F(DelayTest, AnErrorThatIsHeldHasNotHappenedYet) {
  Device device(0);
  ibv_qp* const gone = device.makeQp();
  ibv_qp* const kept = device.makeQp();
  Connection control = connect();
  Rule slow = longDelay();
  slow.match.device = "fake0";
  const std::uint64_t late = valueOf(control.arm(slow));
  Rule error = rule(Effect::kCompletionRewrite);
  error.match.device = "fake0";
  const std::uint64_t rewritten = valueOf(control.arm(error));
  for (ibv_qp* const qp : {gone, kept, kept}) postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  Counters counters = valueOf(control.counters(rewritten));
  EXPECT_EQ(counters.struck, 3u);
  EXPECT_EQ(counters.happened, 0u);
  device.destroy(gone);
  valueOf(control.disarm(late));
  const auto delivered = device.poll(1);
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(valueOf(control.counters(rewritten)).happened, 1u);
  valueOf(control.disarm(rewritten));
  EXPECT_EQ(device.poll().size(), 1u) << "which still knows whose it was";
}

/// A queue and a queue pair of its own, on the same device.
struct OwnQueue {
  explicit OwnQueue(const Device& device)
      : cq(shimLibrary().createCq(device.context, 16, nullptr, nullptr, 0)) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = 16;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    qp = shimLibrary().createQp(device.pd, &init);
  }
  void hold(std::uint64_t id) const {
    postSend(qp, id);
    ibv_wc completion{};
    EXPECT_EQ(ibv_poll_cq(cq, 1, &completion), 0);
  }

  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
};

TEST_F(DelayTest, WhatIsHeldGoesWithItsCompletionQueueAndIsCounted) {
  const Device device(0);
  const OwnQueue own(device);
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(own.qp)));
  own.hold(1);
  own.hold(2);
  expectHeld(valueOf(control.counters(fault)), 2, 0, 0);
  shimLibrary().destroyCq(own.cq);
  expectHeld(valueOf(control.counters(fault)), 0, 0, 2);
  shimLibrary().destroyQp(own.qp);
  expectHeld(valueOf(control.disarm(fault)), 0, 0, 2);
}

TEST_F(DelayTest, AClosedDeviceTakesItsQueuesAlongAndWhatTheyHold) {
  const Device stays(1);
  const auto before = valueOf(connect().hello());
  Connection control = connect();
  std::optional<std::uint64_t> fault;
  std::optional<OwnQueue> own;
  {
    auto closes = std::make_unique<Device>(0);
    own.emplace(*closes);
    fault = valueOf(control.arm(longDelay(own->qp)));
    own->hold(1);
  }
  const auto after = valueOf(control.hello());
  EXPECT_EQ(after.queuePairs, before.queuePairs);
  EXPECT_EQ(after.completionQueues, before.completionQueues);
  expectHeld(valueOf(control.disarm(*fault)), 0, 0, 1);
  // The fake has not noticed that they should be gone.
  shimLibrary().destroyQp(own->qp);
  shimLibrary().destroyCq(own->cq);
}

int polled(ibv_cq* cq) {
  ibv_wc completion{};
  return ibv_poll_cq(cq, 1, &completion);
}

TEST_F(DelayTest, WhatIsReleasedDoesNotWaitForFaultsOfOtherQueues) {
  for (const bool died : {false, true}) {
    SCOPED_TRACE(died);
    const Device device(0);
    const OwnQueue ended(device);
    const OwnQueue kept(device);
    Connection control = connect();
    Connection other = connect();
    const std::uint64_t fault = valueOf(control.arm(longDelay(ended.qp)));
    valueOf(other.arm(longDelay(kept.qp)));
    ended.hold(1);
    kept.hold(2);
    if (died) {
      control.close();
      EXPECT_TRUE(becomes([&] { return valueOf(other.hello()).armed == 1; }));
    } else {
      valueOf(control.disarm(fault));
    }
    EXPECT_EQ(polled(ended.cq), 1);
    EXPECT_EQ(polled(kept.cq), 0);
    for (const OwnQueue& own : {ended, kept}) {
      EXPECT_EQ(shimLibrary().destroyQp(own.qp), 0);
      EXPECT_EQ(shimLibrary().destroyCq(own.cq), 0);
    }
  }
}

TEST_F(DelayTest, WhatIsReleasedKeepsItsTimeWhereAnotherFaultHoldsWhatMayComeThere) {
  const Device device(0);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_XRC_RECV}) {
    SCOPED_TRACE(type);
    const OwnQueue own(device);
    ibv_qp_init_attr init{};
    init.qp_type = type;
    if (type == IBV_QPT_RC) {
      init.send_cq = device.cq;
      init.recv_cq = own.cq;
    }  // the other one names no queue
    ibv_qp* const receiver = shimLibrary().createQp(device.pd, &init);
    Connection control = connect();
    const std::uint64_t fault = valueOf(control.arm(longDelay(own.qp)));
    const std::uint64_t other = valueOf(control.arm(longDelay(receiver)));
    own.hold(1);
    valueOf(control.disarm(fault));
    EXPECT_EQ(polled(own.cq), 0);
    valueOf(control.disarm(other));
    EXPECT_EQ(polled(own.cq), 1);
    EXPECT_EQ(shimLibrary().destroyQp(receiver), 0);
    EXPECT_EQ(shimLibrary().destroyQp(own.qp), 0);
    EXPECT_EQ(shimLibrary().destroyCq(own.cq), 0);
  }
}

TEST_F(DelayTest, OfTwoDelaysTheLongerOneCounts) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  for (const bool longer_first : {true, false}) {
    const Rule brief = rule(Effect::kQpDelay, qp);
    const std::uint64_t first = valueOf(control.arm(longer_first ? longDelay(qp) : brief));
    const std::uint64_t second = valueOf(control.arm(longer_first ? brief : longDelay(qp)));
    const std::uint64_t slow = longer_first ? first : second;
    postSend(qp, 1);
    EXPECT_THAT(device.poll(), IsEmpty());
    EXPECT_EQ(valueOf(control.counters(slow)).held, 1u);
    ::poll(nullptr, 0, 60);  // longer than the brief one
    EXPECT_THAT(device.poll(), IsEmpty());
    valueOf(control.disarm(longer_first ? second : first));
    EXPECT_THAT(device.poll(), IsEmpty()) << "with another one that holds it keeps its time";
    valueOf(control.disarm(slow));
    EXPECT_EQ(device.poll().size(), 1u);
  }
}

TEST_F(DelayTest, APollThatFailsWhileSomeAreHeldFailsOnlyWithoutAny) {
  Device device(0);
  ibv_qp* const victim = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(victim)));
  postSend(victim, 1);
  for (std::uint64_t i = 2; i < 30; ++i) postSend(other, i);  // more than one look
  fake().failPollsAfter(1);
  EXPECT_EQ(device.poll(40).size(), 15u);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(device.cq, 1, &completion), -1);
  EXPECT_EQ(valueOf(control.counters(fault)).held, 1u);
}

TEST_F(DelayTest, WhoPollsWhileAnotherThreadDoesGetsNoneAndDoesNotWait) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  valueOf(control.arm(longDelay(qp)));
  ibv_qp* const other = device.makeQp();
  postSend(other, 1);
  fake().blockPolls(true);
  std::vector<ibv_wc> first;
  std::thread poller([&] { first = device.poll(); });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(fake().blocked(), 1);
  fake().blockPolls(false);
  poller.join();
  EXPECT_EQ(idsOf(first), (std::vector<std::uint64_t>{1}));
}

TEST_F(DelayTest, AQueueThatIsFullOfHeldOnesLeavesTheRestInTheDevice) {
  Device device(0, /*entries=*/4);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  for (std::uint64_t i = 0; i < 6; ++i) postSend(qp, i);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(fault)).held, 4u);
  valueOf(control.disarm(fault));
  std::vector<std::uint64_t> order;
  EXPECT_TRUE(becomes([&] {
    for (const std::uint64_t id : idsOf(device.poll())) order.push_back(id);
    return order.size() == 6;
  }));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace faultline::testing
