#include <cerrno>
#include <set>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::SizeIs;

class QpErrorTest : public ShimTest {};

TEST_F(QpErrorTest, NowGoesThroughTheOwnersModify) {
  Device device(0);
  ibv_qp* const victim = device.makeQp(7);
  ibv_qp* const other = device.makeQp(8);
  Connection control = connect();
  Rule now = rule(Effect::kQpError);
  now.match.peerNumber = 7;
  const std::uint64_t fault = valueOf(control.arm(now));
  Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.failures, 0u);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  shimLibrary().queryQp(victim, &attributes, IBV_QP_STATE, &init);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_ERR);
  shimLibrary().queryQp(other, &attributes, IBV_QP_STATE, &init);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(postSend(victim, 1), 0);
  const auto completions = device.poll();
  ASSERT_THAT(completions, SizeIs(1));
  EXPECT_EQ(completions[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_NE(completions[0].vendor_err, kInjectedVendorError) << "the flush is genuine";
  counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.flushErrors, 1u);
  EXPECT_EQ(counters.genuineErrors, 0u);
}

TEST_F(QpErrorTest, AfterOperationsTheControlThreadDoesIt) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule later = rule(Effect::kQpError, qp);
  later.trigger = {.afterOperations = 3, .budget = 1};
  const std::uint64_t fault = valueOf(control.arm(later));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(postSend(qp, i), 0);
  EXPECT_EQ(valueOf(control.counters(fault)).struck, 0u);
  EXPECT_EQ(postSend(qp, 3), 0);
  EXPECT_TRUE(becomes([&] { return valueOf(control.counters(fault)).happened == 1; }));
  EXPECT_EQ(postSend(qp, 4), 0);
  bool flushed = false;
  for (const ibv_wc& completion : device.poll()) {
    flushed = flushed || completion.status == IBV_WC_WR_FLUSH_ERR;
  }
  EXPECT_TRUE(flushed);
}

TEST_F(QpErrorTest, WhatTheDeviceRefusesOrDoesNotDoIsNoEffect) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  fake().failModify(EINVAL);
  std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpError, qp)));
  Counters counters = valueOf(control.disarm(fault));
  EXPECT_EQ(counters.happened, 0u);
  EXPECT_EQ(counters.failures, 1u);
  fake().failModify(0);
  fake().ignoreError(true);
  fault = valueOf(control.arm(rule(Effect::kQpError, qp)));
  counters = valueOf(control.disarm(fault));
  EXPECT_EQ(counters.happened, 0u) << "it says yes and does nothing";
  EXPECT_EQ(counters.failures, 1u);
}

TEST_F(QpErrorTest, OneOfManyIsChosenByTheSeed) {
  const auto chosen = [](std::uint64_t seed) {
    Device device(0);
    std::vector<ibv_qp*> all;
    for (int i = 0; i < 5; ++i) all.push_back(device.makeQp());
    Connection control = connect();
    Rule one = rule(Effect::kQpError);
    one.match.device = "fake0";
    one.one = true;
    one.trigger.seed = seed;
    const std::uint64_t fault = valueOf(control.arm(one));
    EXPECT_EQ(valueOf(control.counters(fault)).happened, 1u);
    std::vector<int> broken;
    for (int i = 0; i < 5; ++i) {
      if (all[static_cast<std::size_t>(i)]->state == IBV_QPS_ERR) broken.push_back(i);
    }
    EXPECT_THAT(broken, SizeIs(1));
    return broken.at(0);
  };
  std::set<int> seen;
  for (std::uint64_t seed = 1; seed < 30; ++seed) seen.insert(chosen(seed));
  EXPECT_GT(seen.size(), 3u);
  EXPECT_EQ(chosen(4), chosen(4));
}

// By its program or by itself, of which the shim is not told.
TEST_F(QpErrorTest, WhatWasInErrorBeforeIsNotItsDoing) {
  for (const bool by_itself : {false, true}) {
    SCOPED_TRACE(by_itself);
    Device device(0);
    ibv_qp* const dead = device.makeQp();
    ibv_qp* const alive = device.makeQp();
    by_itself ? fake().breakQp(dead) : putInState(dead, IBV_QPS_ERR);
    Connection control = connect();
    Rule all = rule(Effect::kQpError);
    all.match.device = "fake0";
    all.trigger.budget = 1;
    const Counters counters = valueOf(control.disarm(valueOf(control.arm(all))));
    EXPECT_EQ(counters.happened, 1u);
    EXPECT_EQ(counters.inErrorBefore, 1u);
    EXPECT_EQ(counters.struck, 1u) << "it takes nothing of the budget";
    EXPECT_EQ(counters.failures, 0u);
    EXPECT_EQ(alive->state, IBV_QPS_ERR);
  }
}

TEST_F(QpErrorTest, WhatIsResetIsNobodysAndNoEvidence) {
  Device device(0);
  ibv_qp* const reset = device.makeQp();
  ibv_qp* const alive = device.makeQp();
  putInState(reset, IBV_QPS_RESET);
  Connection control = connect();
  Rule all = rule(Effect::kQpError);
  all.match.device = "fake0";
  const Counters counters = valueOf(control.disarm(valueOf(control.arm(all))));
  EXPECT_EQ(counters.happened, 1u);
  EXPECT_EQ(counters.inErrorBefore, 0u);
  EXPECT_EQ(reset->state, IBV_QPS_RESET);
  EXPECT_EQ(alive->state, IBV_QPS_ERR);
}

TEST_F(QpErrorTest, WhatIsInErrorWhenItsTimeComesIsNotItsDoingAndTakesNothingOfTheBudget) {
  Device device(0);
  ibv_qp* const dead = device.makeQp();
  ibv_qp* const alive = device.makeQp();
  Connection control = connect();
  Rule later = rule(Effect::kQpError);
  later.match.device = "fake0";
  later.trigger.afterOperations = 1;
  later.trigger.budget = 1;
  const std::uint64_t fault = valueOf(control.arm(later));
  fake().breakQp(dead);
  EXPECT_EQ(postSend(dead, 1), 0);
  EXPECT_EQ(postSend(dead, 2), 0);
  EXPECT_TRUE(becomes([&] { return valueOf(control.counters(fault)).inErrorBefore == 1; }));
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 0u);
  EXPECT_EQ(postSend(alive, 3), 0);
  EXPECT_TRUE(becomes([&] { return valueOf(control.counters(fault)).happened == 1; }));
  EXPECT_EQ(valueOf(control.disarm(fault)).struck, 1u);
}

TEST_F(QpErrorTest, TheSecondOfTwoFindsNothingToChoose) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule one = rule(Effect::kQpError, qp);
  one.one = true;
  EXPECT_EQ(valueOf(control.disarm(valueOf(control.arm(one)))).happened, 1u);
  const auto again = control.arm(one);
  EXPECT_EQ(again.status().code(), Code::kNotFound);
  EXPECT_THAT(again.status().message(), ::testing::HasSubstr("in error or reset"));
  EXPECT_EQ(valueOf(control.hello()).armed, 0u);
}

TEST_F(QpErrorTest, OneIsChosenOfThoseThatAreInUse) {
  Device device(0);
  for (int i = 0; i < 3; ++i) {
    fake().breakQp(device.makeQp());
    putInState(device.makeQp(), IBV_QPS_RESET);
  }
  ibv_qp* const in_use = device.makeQp();
  Connection control = connect();
  Rule one = rule(Effect::kPostError);
  one.match.device = "fake0";
  one.one = true;
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    one.trigger.seed = seed;
    const std::uint64_t fault = valueOf(control.arm(one));
    EXPECT_EQ(postSend(in_use, 1), ENOMEM) << seed;
    valueOf(control.disarm(fault));
  }
}

TEST_F(QpErrorTest, ADeviceMeansAllOfItsQueuePairsThatAreThere) {
  Device device(0);
  Device other(1);
  for (int i = 0; i < 3; ++i) device.makeQp();
  ibv_qp* const untouched = other.makeQp();
  Connection control = connect();
  Rule all = rule(Effect::kQpError);
  all.match.device = "fake0";
  all.trigger.budget = 2;
  const std::uint64_t fault = valueOf(control.arm(all));
  EXPECT_EQ(valueOf(control.counters(fault)).happened, 2u) << "not more than its budget";
  valueOf(control.disarm(fault));
  all.trigger.budget = 0;
  const std::uint64_t again = valueOf(control.arm(all));
  EXPECT_EQ(valueOf(control.counters(again)).happened, 1u);
  EXPECT_EQ(valueOf(control.counters(again)).inErrorBefore, 2u);
  EXPECT_EQ(untouched->state, IBV_QPS_RTS);
  ibv_qp* const later = device.makeQp();
  EXPECT_EQ(postSend(later, 1), 0);
  EXPECT_EQ(later->state, IBV_QPS_RTS) << "what is connected later was not meant";
}

}  // namespace
}  // namespace faultline::testing
