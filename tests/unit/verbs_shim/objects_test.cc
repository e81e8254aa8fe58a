// What the program makes: known, not made, made past the shim, of old devices, and of too many
// kinds.
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tests/unit/verbs_shim/own_process.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ObjectsTest : public ShimTest {
 protected:
  static ibv_qp* makePlainQp(const Device& device, ibv_qp_type type) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = device.cq;
    init.qp_type = type;
    return shimLibrary().createQp(device.pd, &init);
  }
  /// Of the only queue pair that there is.
  static QueuePairFacts only() {
    const auto all = valueOf(connect().list());
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? QueuePairFacts{} : all[0];
  }
};

TEST_F(ObjectsTest, WhatTheDeviceDoesNotMakeIsNotKnown) {
  Device device(0);
  const auto before = valueOf(connect().hello());
  verbs_context* const extended = verbs_get_ctx(device.context);
  fake().failCreate(ENOMEM);
  EXPECT_EQ(makePlainQp(device, IBV_QPT_RC), nullptr);
  EXPECT_EQ(shimLibrary().createCq(device.context, 16, nullptr, nullptr, 0), nullptr);
  ibv_qp_init_attr_ex pair{};
  pair.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  pair.pd = device.pd;
  EXPECT_EQ(extended->create_qp_ex(device.context, &pair), nullptr);
  ibv_cq_init_attr_ex queue{};
  EXPECT_EQ(extended->create_cq_ex(device.context, &queue), nullptr);
  EXPECT_EQ(shimLibrary().importDevice(1), nullptr);
  fake().failCreate(0);
  EXPECT_EQ(valueOf(connect().hello()), before);
}

TEST_F(ObjectsTest, TypesAndStatesHaveTheirNames) {
  Device device(0);
  const std::map<ibv_qp_type, std::string> types{
      {IBV_QPT_RC, "RC"},
      {IBV_QPT_UC, "UC"},
      {IBV_QPT_UD, "UD"},
      {IBV_QPT_RAW_PACKET, "RAW"},
      {IBV_QPT_XRC_SEND, "XRC_SEND"},
      {IBV_QPT_XRC_RECV, "XRC_RECV"},
      {IBV_QPT_DRIVER, "DRIVER"},
      {static_cast<ibv_qp_type>(99), "UNKNOWN"},
  };
  for (const auto& [type, name] : types) {
    ibv_qp* const qp = makePlainQp(device, type);
    EXPECT_EQ(only().type, name);
    EXPECT_EQ(only().state, "RESET");
    EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
  }
  const std::map<ibv_qp_state, std::string> states{
      {IBV_QPS_INIT, "INIT"},   {IBV_QPS_RTR, "RTR"},         {IBV_QPS_RTS, "RTS"},
      {IBV_QPS_SQD, "SQD"},     {IBV_QPS_SQE, "SQE"},         {IBV_QPS_ERR, "ERR"},
      {IBV_QPS_RESET, "RESET"}, {IBV_QPS_UNKNOWN, "UNKNOWN"},
  };
  ibv_qp* const qp = device.makeQp();
  for (const auto& [state, name] : states) {
    putInState(qp, state);
    EXPECT_EQ(only().state, name);
  }
}

// As mlx5dv_create_qp() does.
TEST_F(ObjectsTest, AQueuePairThatWasMadePastTheShimIsKnownFromItsFirstChange) {
  Device device(0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = device.cq;
  init.cap.max_send_wr = 64;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  ibv_qp* const qp = fake().createQp(device.pd, &init);
  EXPECT_THAT(valueOf(connect().list()), IsEmpty());
  fake().failQuery(EIO);
  Device::connect(qp, 4);
  EXPECT_THAT(valueOf(connect().list()), IsEmpty()) << "nobody says what it is";
  fake().failQuery(0);
  Device::connect(qp, 5);
  EXPECT_EQ(only(), (QueuePairFacts{"fake0", qp->qp_num, 5, 0, "", "RC", "RTS"}));
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kPostError, qp)));
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
  EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
}

TEST_F(ObjectsTest, AStateThatCannotBeReadBackIsNoEvidence) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  fake().failQuery(EIO);
  const Counters counters =
      valueOf(control.disarm(valueOf(control.arm(rule(Effect::kQpError, qp)))));
  EXPECT_EQ(counters.happened, 0u);
  EXPECT_EQ(counters.failures, 1u);
  EXPECT_EQ(qp->state, IBV_QPS_RTS) << "what it is now nobody knows either";
}

TEST_F(ObjectsTest, AStateThatCannotBeReadBackAfterwardsIsNoEvidenceEither) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  fake().blockModify(true);
  std::optional<std::uint64_t> fault;
  std::thread armer([&] { fault = valueOf(control.arm(rule(Effect::kQpError, qp))); });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  fake().failQuery(EIO);
  fake().blockModify(false);
  armer.join();
  const Counters counters = valueOf(control.disarm(*fault));
  EXPECT_EQ(counters.happened, 0u);
  EXPECT_EQ(counters.failures, 1u);
}

TEST_F(ObjectsTest, AFailedChangeIsNotNoted) {
  Device device(0);
  ibv_qp* const qp = device.makeQp(7);
  fake().failModify(EINVAL);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(shimLibrary().modifyQp(qp, &attributes, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(only().state, "RTS");
}

// A provider gives memory out again; that the object before was destroyed the shim need not have
// seen.
TEST_F(ObjectsTest, ANewQueuePairInAnOldOnesPlaceIsTheOnlyOneThere) {
  Device device(0);
  ibv_qp* const qp = makePlainQp(device, IBV_QPT_RC);
  Device::connect(qp, 1);
  const std::uint32_t before = qp->qp_num;
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 1, 0, IBV_SEND_SIGNALED);
  EXPECT_THAT(device.poll(), IsEmpty());
  fake().reuse(qp);
  EXPECT_EQ(makePlainQp(device, IBV_QPT_UC), qp);
  ASSERT_NE(qp->qp_num, before);
  EXPECT_EQ(only(), (QueuePairFacts{"fake0", qp->qp_num, 0, 0, "", "UC", "RESET"}));
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.queuePairs, 0u);
  EXPECT_EQ(counters.dropped, 1u);
  EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
}

TEST_F(ObjectsTest, ANewCompletionQueueInAnOldOnesPlaceHoldsNothing) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  const auto before = valueOf(connect().hello());
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  fake().reuse(device.cq);
  EXPECT_EQ(shimLibrary().createCq(device.context, 16, nullptr, nullptr, 0), device.cq);
  EXPECT_EQ(valueOf(connect().hello()).completionQueues, before.completionQueues);
  EXPECT_EQ(valueOf(control.counters(fault)).dropped, 1u);
  valueOf(control.disarm(fault));
  EXPECT_THAT(device.poll(), IsEmpty());
}

// One of before the extended calls, whose provider gives no events either.
TEST_F(ObjectsTest, AnOldDeviceHasWhatItHasAndFaultsAsWell) {
  Device device(kOldDevice);
  EXPECT_EQ(verbs_get_ctx(device.context), nullptr);
  EXPECT_EQ(device.context->ops.req_notify_cq, nullptr);
  EXPECT_EQ(valueOf(connect().hello()).missedContexts, 0u);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kPostError, qp)));
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
}

// It goes on being posted to through functions of ours, which do not know it.
TEST_F(ObjectsTest, WhatCannotBeDestroyedNorDescribedIsLeftAlone) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp();
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kPostError, &qp->qp_base)));
  fake().failDestroy(EBUSY);
  fake().failQuery(EIO);
  EXPECT_EQ(shimLibrary().destroyQp(&qp->qp_base), EBUSY);
  fake().failDestroy(0);
  fake().failQuery(0);
  EXPECT_THAT(valueOf(control.list()), IsEmpty());
  EXPECT_EQ(postSend(&qp->qp_base, 1), 0);
  for (const bool aborts : {false, true}) {
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1);
    if (aborts) {
      ibv_wr_abort(qp);
    } else {
      EXPECT_EQ(ibv_wr_complete(qp), 0);
    }
  }
  EXPECT_THAT(device.poll(), SizeIs(2));
}

TEST_F(ObjectsTest, CompletionsOfAQueueThatWasMadePastTheShimCannotBeHeldAndAreCounted) {
  Device device(0);
  ibv_cq* const cq = fake().createCq(device.context, nullptr);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap.max_send_wr = 64;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  ibv_qp* const qp = shimLibrary().createQp(device.pd, &init);
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 1);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &completion), 1);
  const Counters counters = valueOf(control.disarm(fault));
  EXPECT_EQ(counters.uncovered, 1u);
  EXPECT_EQ(counters.held, 0u);
  EXPECT_EQ(counters.happened, 0u);
  EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
  EXPECT_EQ(shimLibrary().destroyCq(cq), 0);
}

// In the tables is room for 32 of each kind.
TEST_F(ObjectsTest, WhatDoesNotFitIntoTheTablesIsCountedAndWorksUntouched) {
  if (!isInner()) {
    inOwnProcess(FAULTLINE_FAKE_IBVERBS);
    return;
  }
  constexpr std::size_t kRoom = 32;
  constexpr std::size_t kMade = kRoom + 5;
  std::vector<std::unique_ptr<Device>> devices;
  for (std::size_t i = 0; i < kMade; ++i) devices.push_back(std::make_unique<Device>(kManyDevice));
  auto facts = valueOf(connect().hello());
  EXPECT_EQ(facts.contexts, kRoom);
  EXPECT_EQ(facts.missedContexts, kMade - kRoom);
  std::vector<ibv_qp_ex*> pairs;
  for (std::size_t i = 0; i < kMade; ++i) pairs.push_back(devices[0]->makeExtendedQp());
  facts = valueOf(connect().hello());
  EXPECT_EQ(facts.queuePairs, kMade);
  EXPECT_EQ(facts.missedQueuePairs, kMade - kRoom);
  Connection control = connect();
  Rule all = rule(Effect::kPostError);
  all.match.device = "many0";
  const std::uint64_t fault = valueOf(control.arm(all));
  const auto batch = [](ibv_qp_ex* qp) {
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1);
    return ibv_wr_complete(qp);
  };
  const auto operations = [&] { return valueOf(control.counters(fault)).operations; };
  EXPECT_EQ(batch(pairs[kRoom - 1]), 0) << "what has no abort cannot be refused";
  EXPECT_EQ(operations(), 1u);
  EXPECT_EQ(batch(pairs[kRoom]), 0);
  EXPECT_EQ(operations(), 1u);
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 0u);
  ibv_qp* const watched = devices[kRoom - 1]->makeQp();
  ibv_qp* const missed = devices[kRoom]->makeQp();
  EXPECT_EQ(postSend(watched, 1), ENOMEM);
  EXPECT_EQ(postSend(missed, 1), 0);
  const auto polls_seen = [&](ibv_cq_ex* cq) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.qp_type = IBV_QPT_RC;
    ibv_qp* const qp = shimLibrary().createQp(devices[0]->pd, &init);
    const std::uint64_t lost = valueOf(control.arm(rule(Effect::kCompletionLoss, qp)));
    ibv_wc completion{};
    fake().complete(ibv_cq_ex_to_cq(cq), &completion);
    ibv_poll_cq_attr attributes{};
    EXPECT_EQ(ibv_start_poll(cq, &attributes), 0);
    EXPECT_EQ(shimLibrary().destroyQp(qp), 0);
    return valueOf(control.disarm(lost)).uncovered;
  };
  std::vector<ibv_cq_ex*> queues;
  for (std::size_t i = 0; i < kMade; ++i) {
    ibv_cq_init_attr_ex init{};
    init.cqe = 16;
    ibv_context* const context = devices[0]->context;
    queues.push_back(verbs_get_ctx(context)->create_cq_ex(context, &init));
  }
  EXPECT_EQ(polls_seen(queues[kRoom - 1]), 1u);
  EXPECT_EQ(polls_seen(queues[kRoom]), 0u);
  for (ibv_cq_ex* const cq : queues) shimLibrary().destroyCq(ibv_cq_ex_to_cq(cq));
}

}  // namespace
}  // namespace faultline::testing
