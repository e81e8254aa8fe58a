#include <cerrno>
#include <thread>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::SizeIs;

class PostErrorTest : public ShimTest {};

TEST_F(PostErrorTest, ChosenQueuePairCannotPostAndOthersCan) {
  Device device(0);
  ibv_qp* const victim = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kPostError, victim)));
  const long before = fake().posts();
  EXPECT_EQ(postSend(victim, 1), ENOMEM);
  EXPECT_EQ(fake().posts(), before) << "it must not have reached the device";
  EXPECT_EQ(postRecv(victim, 2), 0) << "receives were not meant";
  EXPECT_EQ(postSend(other, 3), 0);
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.operations, 1u);
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.queuePairs, 1u);
  EXPECT_EQ(valueOf(control.disarm(fault)).happened, 1u);
  EXPECT_EQ(postSend(victim, 4), 0);
}

TEST_F(PostErrorTest, ReceivesAndBothSides) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule receives = rule(Effect::kPostError, qp);
  receives.side = Side::kRecv;
  receives.error = EINVAL;
  const std::uint64_t fault = valueOf(control.arm(receives));
  EXPECT_EQ(postSend(qp, 1), 0);
  EXPECT_EQ(postRecv(qp, 2), EINVAL);
  valueOf(control.disarm(fault));
  receives.side = Side::kBoth;
  valueOf(control.arm(receives));
  EXPECT_EQ(postSend(qp, 1), EINVAL);
  EXPECT_EQ(postRecv(qp, 2), EINVAL);
}

TEST_F(PostErrorTest, AChainIsPostedUpToTheOneThatIsRefusedAndLeftAsItWas) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule third = rule(Effect::kPostError, qp);
  third.trigger.afterOperations = 2;
  third.trigger.budget = 1;
  valueOf(control.arm(third));
  ibv_send_wr requests[4]{};
  for (int i = 0; i < 4; ++i) {
    requests[i].wr_id = static_cast<std::uint64_t>(i);
    requests[i].next = i < 3 ? &requests[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, requests, &bad), ENOMEM);
  EXPECT_EQ(bad, &requests[2]);
  EXPECT_EQ(requests[1].next, &requests[2]) << "the caller's chain must be whole again";
  EXPECT_THAT(device.poll(), SizeIs(2));
  EXPECT_EQ(ibv_post_send(qp, bad, &bad), 0) << "its budget is used up";
  EXPECT_THAT(device.poll(), SizeIs(2));
}

// By each way to post: of one, of a chain, of a batch.
TEST_F(PostErrorTest, GenuineErrorsPassAndAreCountedAsSuch) {
  Device device(0);
  ibv_qp_ex* const extended = device.makeExtendedQp();
  ibv_qp* const qp = &extended->qp_base;
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  Rule later = rule(Effect::kPostError, qp);
  later.trigger.afterOperations = 100;
  const std::uint64_t fault = valueOf(control.arm(later));
  const auto post_all = [&](int error) {
    fake().failPosts(error);
    EXPECT_EQ(postSend(qp, 1), error);
    EXPECT_EQ(postRecv(qp, 1), error);
    ibv_send_wr sends[2]{};
    sends[0].next = &sends[1];
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(ibv_post_send(qp, sends, &bad_send), error);
    ibv_recv_wr receives[2]{};
    receives[0].next = &receives[1];
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, receives, &bad_receive), error);
    ibv_wr_start(extended);
    ibv_wr_rdma_write(extended, 0, 0);
    ibv_wr_set_sge(extended, 0, 0, 100);
    EXPECT_EQ(ibv_wr_complete(extended), error);
    EXPECT_EQ(postSend(other, 1), error) << "no fault is about it";
  };
  post_all(0);
  Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.genuinePostErrors, 0u);
  post_all(EIO);
  counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.genuinePostErrors, 5u);
  EXPECT_EQ(counters.fullQueues, 0u);
  post_all(ENOMEM);
  post_all(ENOMEM);
  counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.genuinePostErrors, 5u);
  EXPECT_EQ(counters.fullQueues, 10u) << "told apart: a full send queue is no error of a device";
  EXPECT_EQ(counters.happened, 0u);
  EXPECT_EQ(counters.genuineErrors, 0u);
}

TEST_F(PostErrorTest, WhatIsInjectedIsNoGenuineError) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  for (const int error : {EIO, ENOMEM}) {
    Rule refuses = rule(Effect::kPostError, qp);
    refuses.error = error;
    const std::uint64_t fault = valueOf(control.arm(refuses));
    EXPECT_EQ(postSend(qp, 1), error);
    const Counters counters = valueOf(control.disarm(fault));
    EXPECT_EQ(counters.happened, 1u);
    EXPECT_EQ(counters.genuinePostErrors, 0u);
    EXPECT_EQ(counters.fullQueues, 0u);
  }
}

TEST_F(PostErrorTest, ABatchThatWasBegunBeforeTheFaultAndFailsUnderItIsCounted) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_sge(qp, 0, 0, 100);
  Rule later = rule(Effect::kPostError, &qp->qp_base);
  later.trigger.afterOperations = 100;
  const std::uint64_t fault = valueOf(control.arm(later));
  fake().failPosts(EIO);
  EXPECT_EQ(ibv_wr_complete(qp), EIO);
  EXPECT_EQ(valueOf(control.counters(fault)).genuinePostErrors, 1u);
}

TEST_F(PostErrorTest, AfterSoManyBytes) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule after = rule(Effect::kPostError, qp);
  after.trigger.afterBytes = 1000;
  valueOf(control.arm(after));
  EXPECT_EQ(postSend(qp, 1, 999), 0);
  EXPECT_EQ(postSend(qp, 1, 1), 0);
  EXPECT_EQ(postSend(qp, 1, 1), ENOMEM);
}

TEST_F(PostErrorTest, ABatchIsRefusedAsAWhole) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  const auto batch = [&](int requests) {
    ibv_wr_start(qp);
    for (int i = 0; i < requests; ++i) {
      qp->wr_id = static_cast<std::uint64_t>(i);
      ibv_wr_rdma_write(qp, 0, 0);
      ibv_wr_set_sge(qp, 0, 0, 100);
    }
    return ibv_wr_complete(qp);
  };
  EXPECT_EQ(batch(2), 0) << "nothing is armed";
  Connection control = connect();
  Rule fourth = rule(Effect::kPostError, &qp->qp_base);
  fourth.trigger.afterOperations = 3;
  fourth.trigger.budget = 1;
  const std::uint64_t fault = valueOf(control.arm(fourth));
  EXPECT_EQ(batch(2), 0);
  EXPECT_THAT(device.poll(), SizeIs(4));
  const long aborts = fake().aborts();
  EXPECT_EQ(batch(2), ENOMEM);
  EXPECT_EQ(fake().aborts(), aborts + 1);
  EXPECT_THAT(device.poll(), SizeIs(0));
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.operations, 4u);
  EXPECT_EQ(counters.bytes, 400u);
  EXPECT_EQ(batch(3), 0);
  EXPECT_THAT(device.poll(), SizeIs(3));
}

TEST_F(PostErrorTest, EveryWayToGiveABatchItsDataIsCounted) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  Rule never = rule(Effect::kPostError, &qp->qp_base);
  never.trigger.afterOperations = 1000;
  const std::uint64_t fault = valueOf(control.arm(never));
  const ibv_sge sges[2]{{0, 10, 0}, {0, 20, 0}};
  const ibv_data_buf buffers[2]{{nullptr, 3}, {nullptr, 4}};
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_sge_list(qp, 2, sges);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_inline_data(qp, nullptr, 5);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_inline_data_list(qp, 2, buffers);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(valueOf(control.counters(fault)).operations, 3u);
  EXPECT_EQ(valueOf(control.counters(fault)).bytes, 42u);
  ibv_wr_start(qp);
  ibv_wr_abort(qp);
  fake().failPosts(EIO);
  ibv_wr_start(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EIO);
}

TEST_F(PostErrorTest, TheFirstOfTwoErrorsIsTheOneThatIsReturned) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  const std::uint64_t first = valueOf(control.arm(rule(Effect::kPostError, &qp->qp_base)));
  Rule other = rule(Effect::kPostError, &qp->qp_base);
  other.error = EIO;
  const std::uint64_t second = valueOf(control.arm(other));
  EXPECT_EQ(postSend(&qp->qp_base, 1), ENOMEM);
  ibv_wr_start(qp);
  for (int i = 0; i < 2; ++i) {
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1);
  }
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  EXPECT_EQ(valueOf(control.counters(first)).happened, 2u);
  EXPECT_EQ(valueOf(control.counters(first)).struck, 2u) << "a batch fails once";
  EXPECT_EQ(valueOf(control.counters(second)).happened, 0u);
  EXPECT_EQ(valueOf(control.counters(second)).struck, 0u);
}

TEST_F(PostErrorTest, ABatchThatIsAbortedTakesNothingOfTheBudget) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  Rule once = rule(Effect::kPostError, &qp->qp_base);
  once.trigger.budget = 1;
  const std::uint64_t fault = valueOf(control.arm(once));
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_sge(qp, 0, 0, 1);
  ibv_wr_abort(qp);
  EXPECT_EQ(valueOf(control.counters(fault)).struck, 0u);
  EXPECT_EQ(postSend(&qp->qp_base, 1), ENOMEM);
  EXPECT_EQ(postSend(&qp->qp_base, 2), 0);
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 1u);
}

TEST_F(PostErrorTest, ACallerNeedNotAskWhichRequestWasBadNorPostAny) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule second = rule(Effect::kPostError, qp);
  second.trigger = {.afterOperations = 1, .budget = 1};
  valueOf(control.arm(second));
  ibv_send_wr requests[2]{};
  requests[0].next = &requests[1];
  EXPECT_EQ(ibv_post_send(qp, requests, nullptr), ENOMEM);
  EXPECT_EQ(requests[0].next, &requests[1]);
  fake().failPosts(EIO);
  EXPECT_EQ(ibv_post_send(qp, requests, nullptr), EIO);
  fake().failPosts(0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, nullptr, &bad), 0);
  EXPECT_THAT(device.poll(), SizeIs(1));
}

TEST_F(PostErrorTest, ReceivesOfOthersPassWhileFaultsComeAndGo) {
  Device device(0);
  ibv_qp* const never = device.makeQp();
  ibv_qp* const before = device.makeQp();
  ibv_qp* const after = device.makeQp();
  EXPECT_EQ(postRecv(after, 1), 0) << "nothing is armed";
  Connection control = connect();
  Rule receives = rule(Effect::kPostError, before);
  receives.side = Side::kRecv;
  const std::uint64_t ended = valueOf(control.arm(receives));
  receives.match.number = after->qp_num;
  valueOf(control.arm(receives));
  valueOf(control.disarm(ended));
  EXPECT_EQ(postRecv(after, 2), ENOMEM);
  EXPECT_EQ(postRecv(before, 3), 0);
  EXPECT_EQ(postRecv(never, 4), 0);
}

TEST_F(PostErrorTest, ABatchOfOthersIsAbortedByItself) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  ibv_qp_ex* const other = device.makeExtendedQp();
  const auto aborted = [&] {
    const long before = fake().aborts();
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1);
    ibv_wr_abort(qp);
    return fake().aborts() - before;
  };
  EXPECT_EQ(aborted(), 1) << "nothing is armed";
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kPostError, &other->qp_base)));
  EXPECT_EQ(aborted(), 1);
}

TEST_F(PostErrorTest, AnErrorOfABatchThatWasDisarmedDoesNotComeLater) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kPostError, &qp->qp_base)));
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_sge(qp, 0, 0, 1);
  valueOf(control.disarm(fault));
  Rule other = rule(Effect::kPostError, &qp->qp_base);
  other.trigger.afterOperations = 100;
  valueOf(control.arm(other));
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  ibv_wr_start(qp);
  valueOf(control.arm(other));
  ibv_wr_abort(qp);
}

TEST_F(PostErrorTest, EveryWayToGiveABatchItsDataReachesTheDeviceWhenNothingIsArmed) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  ibv_sge sge{};
  ibv_data_buf buffer{};
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_sge_list(qp, 1, &sge);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_inline_data(qp, nullptr, 0);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_inline_data_list(qp, 1, &buffer);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_THAT(device.poll(), SizeIs(3));
}

// The provider's ibv_wr_start() lets one of them in.
TEST_F(PostErrorTest, ThreadsThatShareAQueuePairHaveABatchEach) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  Rule first = rule(Effect::kPostError, &qp->qp_base);
  first.trigger.budget = 1;
  const std::uint64_t fault = valueOf(control.arm(first));
  const auto begin = [&] {
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1);
  };
  begin();
  int other = -1;
  std::thread thread([&] {
    begin();
    other = ibv_wr_complete(qp);
  });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 1u);
  EXPECT_THAT(device.poll(), SizeIs(1));
}

}  // namespace
}  // namespace faultline::testing
