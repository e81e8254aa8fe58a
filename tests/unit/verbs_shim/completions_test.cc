#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

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

// As of shared receives (XRC): the queue pair names no queue, its completions come through one.
TEST_F(RewriteTest, CompletionsThatComeThroughAQueueThatTheQueuePairDoesNotName) {
  Device device(0);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* const qp = shimLibrary().createQp(device.pd, &init);
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionRewrite, qp)));
  ibv_wc completion{};
  completion.qp_num = qp->qp_num;
  fake().complete(device.cq, &completion);
  EXPECT_EQ(device.poll().at(0).vendor_err, kInjectedVendorError);
  EXPECT_EQ(valueOf(control.disarm(fault)).happened, 1u);
  EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
}

// One completion can be one error, or none at all.
TEST_F(RewriteTest, AnotherFaultThatComesTooLateHasNotStruck) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t first = valueOf(control.arm(rule(Effect::kCompletionRewrite, qp)));
  Rule later = rule(Effect::kCompletionRewrite, qp);
  later.status = IBV_WC_GENERAL_ERR;
  const std::uint64_t second = valueOf(control.arm(later));
  postSend(qp, 1);
  EXPECT_EQ(device.poll().at(0).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(valueOf(control.counters(second)).operations, 0u);
  EXPECT_EQ(valueOf(control.counters(second)).struck, 0u);
  valueOf(control.disarm(second));
  const std::uint64_t lost = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
  postSend(qp, 2);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(lost)).happened, 1u);
  EXPECT_EQ(valueOf(control.counters(first)).struck, 1u);
  EXPECT_EQ(valueOf(control.counters(first)).happened, 1u) << "the program has not got the second";
  valueOf(control.disarm(first));
  const std::uint64_t after = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
  const std::uint64_t rewritten = valueOf(control.arm(rule(Effect::kCompletionRewrite, qp)));
  postSend(qp, 3);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(lost)).struck + valueOf(control.counters(after)).struck, 2u);
  EXPECT_EQ(valueOf(control.counters(rewritten)).struck, 0u);
}

class LossTest : public ShimTest {};

TEST_F(LossTest, APollThatFailsAfterSomeWereFoundGivesThose) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule first = rule(Effect::kCompletionLoss, qp);
  first.trigger.budget = 1;
  valueOf(control.arm(first));
  for (std::uint64_t i = 0; i < 3; ++i) postSend(qp, i);
  fake().failPollsAfter(1);
  EXPECT_EQ(idsOf(device.poll(2)), (std::vector<std::uint64_t>{1}));
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(device.cq, 1, &completion), -1);
}

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
  fake().failPollsAfter(0);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(device.cq, 1, &completion), -1);
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

// A provider, or a library between, may call with a context of its own making.
TEST_F(ShimTest, ExtendedObjectsOfAnUnknownContextAreMadeByTheProvider) {
  Device device(0);
  verbs_context unknown = *verbs_get_ctx(device.context);
  ibv_qp_init_attr_ex pair{};
  pair.comp_mask = IBV_QP_INIT_ATTR_PD;
  pair.pd = device.pd;
  pair.send_cq = pair.recv_cq = device.cq;
  pair.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = unknown.create_qp_ex(&unknown.context, &pair);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->context, &unknown.context);
  ibv_cq_init_attr_ex queue{};
  queue.cqe = 16;
  ibv_cq_ex* const cq = unknown.create_cq_ex(&unknown.context, &queue);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
  EXPECT_EQ(shimLibrary().destroyCq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(ShimTest, ADeviceThatCannotBeClosedStaysWatchedWithAllThatItHas) {
  Device device(0);
  ibv_qp* const qp = device.makeQp(5);
  Connection control = connect();
  Rule slow = rule(Effect::kQpDelay, qp);
  slow.delay = 10s;
  const std::uint64_t fault = valueOf(control.arm(slow));
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  const auto before = valueOf(control.hello());
  const auto listed = valueOf(control.list());
  fake().failDestroy(EBUSY);
  EXPECT_EQ(shimLibrary().closeDevice(device.context), EBUSY);
  fake().failDestroy(0);
  EXPECT_EQ(valueOf(control.hello()), before);
  EXPECT_EQ(valueOf(control.list()), listed);
  EXPECT_EQ(valueOf(control.counters(fault)).held, 1u);
  postSend(qp, 2);
  EXPECT_THAT(device.poll(), IsEmpty()) << "it is still slow";
  valueOf(control.disarm(fault));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(ShimTest, WhatADeviceThatIsBeingClosedHasIsNotTouched) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  fake().blockClose(true);
  fake().failDestroy(EBUSY);
  std::thread closer([&] { EXPECT_EQ(shimLibrary().closeDevice(device.context), EBUSY); });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  const Rule error = rule(Effect::kQpError, qp);
  EXPECT_EQ(valueOf(control.disarm(valueOf(control.arm(error)))).failures, 1u);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  fake().blockClose(false);
  closer.join();
  fake().failDestroy(0);
  EXPECT_EQ(valueOf(control.disarm(valueOf(control.arm(error)))).happened, 1u);
}

// The provider gives its memory out again before the shim knows that it is closed.
TEST_F(ShimTest, ADeviceThatIsOpenedInThePlaceOfOneJustClosedKeepsWhatItHas) {
  const Device stays(1);
  Connection control = connect();
  const auto before = valueOf(control.hello());
  const auto old = std::make_unique<Device>(0);
  ibv_context* const context = old->context;
  const ibv_qp* const left = old->makeQp();
  fake().blockClose(true);
  std::thread closer([&] { EXPECT_EQ(shimLibrary().closeDevice(context), 0); });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  fake().reuse(verbs_get_ctx(context));
  auto next = std::make_unique<Device>(2);
  ASSERT_EQ(next->context, context);
  const ibv_qp* const qp = next->makeQp();
  fake().blockClose(false);
  closer.join();
  old->context = nullptr;
  const auto listed = valueOf(control.list());
  ASSERT_THAT(listed, SizeIs(1)) << "and not " << left->qp_num;
  EXPECT_EQ(listed[0].number, qp->qp_num);
  EXPECT_EQ(listed[0].device, "fake2");
  next.reset();
  EXPECT_EQ(valueOf(control.hello()).contexts, before.contexts);
}

ibv_cq_ex* makeExtendedCq(const Device& device, std::uint64_t flags = 0) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 16;
  init.wc_flags = flags;
  return verbs_get_ctx(device.context)->create_cq_ex(device.context, &init);
}

/// All that has come to an extended queue; how many.
int pollExtended(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attributes{};
  int count = 0;
  int result = ibv_start_poll(cq, &attributes);
  for (; result == 0; result = ibv_next_poll(cq)) ++count;
  EXPECT_EQ(result, ENOENT);
  if (count > 0) ibv_end_poll(cq);
  return count;
}

TEST_F(ShimTest, CompletionsOfAnExtendedQueueAreCountedAsUnseen) {
  for (const bool tells_whose : {false, true}) {
    SCOPED_TRACE(tells_whose);
    Device device(0);
    ibv_cq_ex* const cq = makeExtendedCq(device, tells_whose ? IBV_WC_EX_WITH_QP_NUM : 0);
    ASSERT_NE(cq, nullptr);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    ibv_qp* const qp = shimLibrary().createQp(device.pd, &init);
    ibv_qp* const other = shimLibrary().createQp(device.pd, &init);
    for (ibv_qp* const each : {qp, other}) Device::connect(each, 0);
    EXPECT_EQ(postSend(qp, 1), 0);
    EXPECT_EQ(pollExtended(cq), 1) << "nothing is armed";
    Connection control = connect();
    const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(postSend(qp, i), 0);
    EXPECT_EQ(postSend(other, 1), 0);
    EXPECT_EQ(pollExtended(cq), 4);
    EXPECT_EQ(pollExtended(cq), 0) << "which is no completion";
    EXPECT_EQ(valueOf(control.counters(fault)).uncovered, tells_whose ? 3u : 4u);
    const std::uint64_t posts = valueOf(control.arm(rule(Effect::kPostError, other)));
    EXPECT_EQ(postSend(qp, 1), 0);
    EXPECT_EQ(pollExtended(cq), 1);
    EXPECT_EQ(valueOf(control.counters(posts)).uncovered, 0u) << "it is not about completions";
    for (ibv_qp* const each : {qp, other}) EXPECT_EQ(shimLibrary().destroyQp(each), 0);
    EXPECT_EQ(shimLibrary().destroyCq(ibv_cq_ex_to_cq(cq)), 0);
  }
}

TEST_F(ShimTest, CompletionsOfExtendedQueuesThatNoFaultConcernsAreNotCounted) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
  std::vector<ibv_cq_ex*> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(makeExtendedCq(device));
    ibv_wc completion{};
    fake().complete(ibv_cq_ex_to_cq(others.back()), &completion);
    EXPECT_EQ(pollExtended(others.back()), 1);
  }
  EXPECT_LT(valueOf(control.counters(fault)).uncovered, others.size())
      << "one may share its place in the table with what the fault concerns, but not all of them";
  for (ibv_cq_ex* const cq : others) shimLibrary().destroyCq(ibv_cq_ex_to_cq(cq));
}

}  // namespace
}  // namespace faultline::testing
