#include <cerrno>
#include <map>
#include <set>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::uint64_t> idsOf(const std::vector<ibv_wc>& completions) {
  std::vector<std::uint64_t> ids;
  for (const ibv_wc& completion : completions) ids.push_back(completion.wr_id);
  return ids;
}

class RewriteTest : public ShimTest {};

TEST_F(RewriteTest, ASuccessBecomesATaggedError) {
  Device device(0);
  ibv_qp* const victim = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  Rule once = rule(Effect::kCompletionRewrite, victim);
  once.trigger = {.afterOperations = 1, .budget = 1};
  const std::uint64_t fault = valueOf(control.arm(once));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(victim, i);
  postSend(other, 10);
  const auto completions = device.poll();
  ASSERT_EQ(idsOf(completions), (std::vector<std::uint64_t>{0, 1, 2, 10}));
  for (const std::size_t i : {0, 2, 3}) EXPECT_EQ(completions[i].status, IBV_WC_SUCCESS);
  EXPECT_EQ(completions[1].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(completions[1].vendor_err, kInjectedVendorError);
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.operations, 3u);
  EXPECT_EQ(counters.genuineErrors, 0u);
}

TEST_F(RewriteTest, OnlyTheSideThatIsMeant) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule receives = rule(Effect::kCompletionRewrite, qp);
  receives.side = Side::kRecv;
  receives.status = IBV_WC_LOC_LEN_ERR;
  const std::uint64_t fault = valueOf(control.arm(receives));
  postSend(qp, 1);
  postRecv(qp, 2);
  ASSERT_TRUE(fake().deliver(qp, 77));
  const auto completions = device.poll();
  ASSERT_THAT(completions, SizeIs(2));
  EXPECT_EQ(completions[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(completions[1].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(valueOf(control.counters(fault)).bytes, 77u);
}

TEST_F(RewriteTest, GenuineErrorsStayAsTheyAreAndAreToldApart) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionRewrite, qp)));
  ibv_wc genuine{};
  genuine.status = IBV_WC_REM_ACCESS_ERR;
  genuine.qp_num = qp->qp_num;
  genuine.vendor_err = 5;
  fake().complete(device.cq, &genuine);
  const auto completions = device.poll();
  ASSERT_THAT(completions, SizeIs(1));
  EXPECT_EQ(completions[0].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(completions[0].vendor_err, 5u);
  EXPECT_EQ(valueOf(control.counters(fault)).genuineErrors, 1u);
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 0u);
}

TEST_F(RewriteTest, BytesPostedTriggerCompletions) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule after = rule(Effect::kCompletionRewrite, qp);
  after.trigger.afterBytes = 100;
  valueOf(control.arm(after));
  postSend(qp, 1, 99);
  EXPECT_EQ(device.poll().at(0).status, IBV_WC_SUCCESS);
  postSend(qp, 2, 1);
  EXPECT_EQ(device.poll().at(0).status, IBV_WC_RETRY_EXC_ERR);
}

class LossTest : public ShimTest {};

TEST_F(LossTest, WhatIsLostNeverComesAndTheRestDoes) {
  Device device(0);
  ibv_qp* const victim = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionLoss, victim)));
  for (std::uint64_t i = 0; i < 5; ++i) postSend(victim, i);
  postSend(other, 9);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{9}));
  EXPECT_EQ(valueOf(control.disarm(fault)).happened, 5u);
  EXPECT_THAT(device.poll(), IsEmpty());
}

// Who asks for four and gets fewer takes the queue to be empty, and may go to sleep.
TEST_F(LossTest, APollIsFilledUpFromBehindWhatWasLost) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule first = rule(Effect::kCompletionLoss, qp);
  first.trigger.budget = 6;
  valueOf(control.arm(first));
  for (std::uint64_t i = 0; i < 10; ++i) postSend(qp, i);
  EXPECT_EQ(idsOf(device.poll(3)), (std::vector<std::uint64_t>{6, 7, 8}));
  EXPECT_EQ(idsOf(device.poll(3)), (std::vector<std::uint64_t>{9}));
}

TEST_F(LossTest, GenuineErrorsAreNotLostAndAFailingPollFails) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
  ibv_wc genuine{};
  genuine.status = IBV_WC_RETRY_EXC_ERR;
  genuine.qp_num = qp->qp_num;
  fake().complete(device.cq, &genuine);
  EXPECT_THAT(device.poll(), SizeIs(1));
  fake().failPolls(true);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(device.cq, 1, &completion), -1);
}

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

TEST_F(DelayTest, DisarmingDeliversAtOnceAndInOrder) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule slow = rule(Effect::kQpDelay, qp);
  slow.delay = 10s;
  const std::uint64_t fault = valueOf(control.arm(slow));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(qp, i);
  EXPECT_THAT(device.poll(), IsEmpty());
  valueOf(control.disarm(fault));
  postSend(qp, 3);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST_F(DelayTest, AProgramThatWaitsForEventsIsMadeToWaitInThePoll) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kQpDelay, qp)));
  const TimePoint posted = now();
  postSend(qp, 1);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1})) << "at the first look";
  EXPECT_GE(now() - posted, 50ms);
  EXPECT_THAT(device.poll(), IsEmpty());
}

TEST_F(DelayTest, WhatIsHeldGoesWithItsQueuePairAndQueue) {
  Connection control = [] {
    Device device(0);
    ibv_qp* const gone = device.makeQp();
    ibv_qp* const kept = device.makeQp();
    Connection inner = connect();
    Rule slow = rule(Effect::kQpDelay);
    slow.delay = 10s;
    slow.match.device = "fake0";
    const std::uint64_t fault = valueOf(inner.arm(slow));
    postSend(gone, 1);
    postSend(kept, 2);
    EXPECT_THAT(device.poll(), IsEmpty());
    EXPECT_EQ(valueOf(inner.counters(fault)).held, 2u);
    device.destroy(gone);
    EXPECT_EQ(valueOf(inner.counters(fault)).held, 1u);
    return inner;
  }();
  EXPECT_TRUE(becomes([&] { return valueOf(control.hello()).queuePairs == 0; }));
}

TEST_F(DelayTest, AQueueThatIsFullOfHeldOnesLeavesTheRestInTheDevice) {
  Device device(0, /*entries=*/4);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule slow = rule(Effect::kQpDelay, qp);
  slow.delay = 10s;
  const std::uint64_t fault = valueOf(control.arm(slow));
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

class RateTest : public ShimTest {};

TEST_F(RateTest, SendsCompleteAtThePaceOfTheLink) {
  Device device(0);
  ibv_qp* const qp = device.makeQp(0, /*signal_all=*/false);
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, qp)));  // 1 byte in 1 us
  // With one more that has no completion of its own, 60 kB: 60 ms.
  const TimePoint begin = now();
  std::uint64_t done = 0;
  postSend(qp, 100, 10'000, 0);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(postSend(qp, i, 10'000, IBV_SEND_SIGNALED), 0);
  EXPECT_TRUE(becomes([&] {
    for (const std::uint64_t id : idsOf(device.poll())) EXPECT_EQ(id, done++);
    return done == 5;
  }));
  EXPECT_GE(now() - begin, 60ms);
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.releasedBytes, 60'000u);
  EXPECT_EQ(counters.held, 0u);
}

TEST_F(RateTest, BatchesArePacedToo) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, &qp->qp_base)));
  const TimePoint begin = now();
  for (int i = 0; i < 4; ++i) {
    ibv_wr_start(qp);
    qp->wr_id = static_cast<std::uint64_t>(i);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 10'000);
    EXPECT_EQ(ibv_wr_complete(qp), 0);
  }
  std::size_t done = 0;
  EXPECT_TRUE(becomes([&] { return (done += device.poll().size()) == 4; }));
  EXPECT_GE(now() - begin, 40ms);
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 40'000u);
}

TEST_F(RateTest, ReceivesArePacedByWhatTheyReceive) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule receives = rule(Effect::kQpRate, qp);
  receives.side = Side::kRecv;
  const std::uint64_t fault = valueOf(control.arm(receives));
  const TimePoint begin = now();
  for (std::uint64_t i = 0; i < 4; ++i) {
    postRecv(qp, i);
    fake().deliver(qp, 10'000);
  }
  std::size_t done = 0;
  EXPECT_TRUE(becomes([&] { return (done += device.poll().size()) == 4; }));
  EXPECT_GE(now() - begin, 40ms);
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 40'000u);
}

TEST_F(RateTest, WhatTheDeviceDoesNotTakeIsNotPaced) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  fake().failPosts(ENOMEM);
  EXPECT_EQ(postSend(qp, 1, 1000), ENOMEM);
  fake().failPosts(0);
  EXPECT_EQ(postSend(qp, 2, 1000), 0);
  std::vector<ibv_wc> completions;
  EXPECT_TRUE(becomes([&] { return !(completions = device.poll()).empty(); }));
  EXPECT_EQ(completions[0].wr_id, 2u);
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 1000u);
}

/// How long a send of 10 kB, 10 ms of the link, takes once `before` has happened under a rate; the
/// queue pair posts in both ways.
template <typename Before>
Duration sendAfter(Before before, Connection control, Rule rate) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  rate.match.number = qp->qp_base.qp_num;
  const std::uint64_t fault = valueOf(control.arm(rate));
  before(qp);
  const TimePoint begin = now();
  EXPECT_EQ(postSend(&qp->qp_base, 1, 10'000), 0);
  EXPECT_TRUE(becomes([&] { return !device.poll().empty(); }));
  const Duration took = now() - begin;
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 10'000u);
  return took;
}

// Of 100 sends that nobody took, 100 ms each, the link knows nothing.
TEST_F(RateTest, WhatTheDeviceDoesNotTakeDoesNotKeepTheLinkBusy) {
  const Device first(0);  // nobody answers before a device is open
  const auto begin_batch = [](ibv_qp_ex* qp) {
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 100'000);
  };
  const auto took = [&](auto before) {
    return sendAfter(
        [&](ibv_qp_ex* qp) {
          for (int i = 0; i < 100; ++i) before(qp);
          fake().failPosts(0);
        },
        connect(), rule(Effect::kQpRate));
  };
  const Duration alone = took([](ibv_qp_ex*) {});
  const Duration most = alone * 100;  // ten times less than with them
  EXPECT_GE(alone, 10ms);
  EXPECT_LT(took([](ibv_qp_ex* qp) {
              fake().failPosts(ENOMEM);
              EXPECT_EQ(postSend(&qp->qp_base, 1, 100'000), ENOMEM);
            }),
            most);
  EXPECT_LT(took([&](ibv_qp_ex* qp) {
              fake().failPosts(ENOMEM);
              begin_batch(qp);
              EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
            }),
            most);
  EXPECT_LT(took([&](ibv_qp_ex* qp) {
              begin_batch(qp);
              ibv_wr_abort(qp);
            }),
            most);
}

TEST_F(RateTest, ASecondRateKnowsNothingOfWhatWasPostedUnderTheFirst) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t first = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(qp, i, 100'000'000);  // 100 s each
  valueOf(control.disarm(first));
  const std::uint64_t second = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(valueOf(control.counters(second)).held, 0u);
  EXPECT_EQ(valueOf(control.counters(second)).releasedBytes, 0u);
}

TEST_F(RateTest, OneOfTwoRatesThatEndsLeavesTheOtherWhatItKnows) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule slower = rule(Effect::kQpRate, qp);
  slower.bitsPerSecond /= 2;
  const std::uint64_t stays = valueOf(control.arm(slower));
  const std::uint64_t ends = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  postSend(qp, 1, 10'000);
  valueOf(control.disarm(ends));
  EXPECT_TRUE(becomes([&] { return !device.poll().empty(); }));
  EXPECT_EQ(valueOf(control.counters(stays)).releasedBytes, 10'000u);
}

TEST_F(ShimTest, AnotherProvidersFunctionsAreTakenOverAsWell) {
  Device first(0);
  Device other(2);
  ibv_qp* const qp = other.makeQp();
  first.makeQp();
  EXPECT_NE(first.context->ops.post_send, other.context->ops.post_send);
  Connection control = connect();
  Rule lose = rule(Effect::kCompletionLoss);
  lose.match.device = "fake2";
  const std::uint64_t fault = valueOf(control.arm(lose));
  postSend(qp, 1);
  EXPECT_THAT(other.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 1u);
}

TEST_F(ShimTest, PollsOfAnExtendedQueueAreCountedAsUnseen) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  ibv_cq_init_attr_ex init{};
  init.cqe = 16;
  ibv_cq_ex* const cq = verbs_get_ctx(device.context)->create_cq_ex(device.context, &init);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr attributes{};
  EXPECT_EQ(ibv_start_poll(cq, &attributes), ENOENT) << "nothing is armed";
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
  EXPECT_EQ(ibv_start_poll(cq, &attributes), ENOENT);
  EXPECT_EQ(valueOf(control.counters(fault)).uncovered, 1u);
  EXPECT_EQ(shimLibrary().destroyCq(ibv_cq_ex_to_cq(cq)), 0);
}

}  // namespace
}  // namespace faultline::testing
