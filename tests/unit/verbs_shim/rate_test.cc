#include <algorithm>
#include <cerrno>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

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

TEST_F(RateTest, ItBeginsWithItsTriggerAndEndsWithItsBudget) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule some = rule(Effect::kQpRate, qp);
  some.trigger.afterOperations = 2;
  some.trigger.budget = 2;
  const std::uint64_t fault = valueOf(control.arm(some));
  for (std::uint64_t i = 0; i < 2; ++i) postSend(qp, i, 10'000'000);  // 10 s each
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{0, 1}));
  const TimePoint begin = now();
  for (std::uint64_t i = 2; i < 4; ++i) postSend(qp, i, 10'000);
  postSend(qp, 4, 10'000'000);
  std::size_t done = 0;
  EXPECT_TRUE(becomes([&] { return (done += device.poll().size()) == 3; }));
  EXPECT_GE(now() - begin, 20ms);
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.operations, 5u);
  EXPECT_EQ(counters.struck, 2u);
  EXPECT_EQ(counters.releasedBytes, 20'000u);
}

TEST_F(RateTest, ItBeginsAfterSoManyBytesAndCountsEachOnce) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule late = rule(Effect::kQpRate, qp);
  late.trigger.afterBytes = 4'000;
  const std::uint64_t fault = valueOf(control.arm(late));
  for (std::uint64_t i = 0; i < 3; ++i) {
    postSend(qp, i, 1'000);
    EXPECT_EQ(idsOf(device.poll()).size(), 1u) << "it has not begun";
  }
  EXPECT_EQ(valueOf(control.counters(fault)).struck, 0u);
  postSend(qp, 3, 1'000);
  std::size_t done = 0;
  EXPECT_TRUE(becomes([&] { return (done += device.poll().size()) == 1; }));
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.struck, 1u);
  EXPECT_EQ(counters.bytes, 4'000u);
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

// The chain is cut by a fault, and of what is left before that the device takes nothing.
TEST_F(RateTest, OfAChainThatTwoRefuseNothingIsPaced) {
  for (const bool hidden : {false, true}) {  // a provider should say which request was bad
    SCOPED_TRACE(hidden);
    Device device(0);
    ibv_qp* const qp = device.makeQp();
    Connection control = connect();
    const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, qp)));
    Rule third = rule(Effect::kPostError, qp);
    third.trigger.afterOperations = 2;
    const std::uint64_t refusal = valueOf(control.arm(third));
    ibv_sge data{0, 100'000'000, 0};  // 100 s
    ibv_send_wr requests[3]{};
    for (int i = 0; i < 3; ++i) {
      requests[i].sg_list = &data;
      requests[i].num_sge = 1;
      requests[i].next = i < 2 ? &requests[i + 1] : nullptr;
    }
    fake().hideBad(hidden);
    fake().failPosts(EIO);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp, requests, &bad), EIO);
    EXPECT_EQ(bad, hidden ? nullptr : &requests[0]);
    fake().failPosts(0);
    const Counters refused = valueOf(control.disarm(refusal));
    EXPECT_EQ(refused.happened, 0u);
    EXPECT_EQ(refused.struck, 0u) << "it may strike the next one";
    EXPECT_EQ(postSend(qp, 7, 1000), 0);
    std::vector<ibv_wc> completions;
    EXPECT_TRUE(becomes([&] { return !(completions = device.poll()).empty(); }));
    EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 1000u);
  }
}

/// How long 20 sends of 1 kB, 1 ms of the link each, take one after the other on a healthy queue
/// pair that shares its link with another: `before(device, other)` happens first, and `meanwhile`
/// before each of them.
template <typename Before, typename Meanwhile>
Duration healthyBeside(Connection control, const Rule& rate, Before before, Meanwhile meanwhile) {
  Device device(0);
  ibv_qp* const healthy = device.makeQp();
  ibv_qp* const other = device.makeQp();
  const std::uint64_t fault = valueOf(control.arm(rate));
  before(device, other);
  const TimePoint begin = now();
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    meanwhile(device, other);
    EXPECT_EQ(postSend(healthy, i, 1000), 0);
    EXPECT_TRUE(becomes([&] {
      const std::vector<ibv_wc> completions = device.poll(64);
      return std::ranges::any_of(completions, [&](const ibv_wc& completion) {
        return completion.qp_num == healthy->qp_num && completion.wr_id == i;
      });
    }));
    bytes += 1000;
  }
  const Duration took = now() - begin;
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, bytes) << "of the healthy one alone";
  return took;
}

// 200 ms of the link for each send that comes to nothing: ten times what the healthy one sends in
// all. Nothing here is timed absolutely: what a machine adds it adds to both.
TEST_F(RateTest, WhatFailsOnAnotherQueuePairDoesNotKeepTheLinkBusy) {
  const Device first(0);  // nobody answers before a device is open
  constexpr std::uint32_t kMuch = 200'000;
  const auto nothing = [](Device&, ibv_qp*) {};
  const auto post = [](int count) {
    return [count](Device&, ibv_qp* qp) {
      for (int i = 0; i < count; ++i) EXPECT_EQ(postSend(qp, 77, kMuch), 0);
    };
  };
  const auto took = [&](auto before, auto meanwhile) {
    return healthyBeside(connect(), rule(Effect::kQpRate), before, meanwhile);
  };
  const Duration alone = took(nothing, nothing);
  EXPECT_GE(alone, 20ms);
  const Duration most = alone * 20;  // ten times less than with them

  EXPECT_LT(took([](Device&, ibv_qp* qp) { putInState(qp, IBV_QPS_ERR); }, post(1)), most)
      << "put in error by its owner, which goes on to post";
  EXPECT_LT(took([](Device&, ibv_qp* qp) { fake().breakQp(qp); }, post(1)), most)
      << "gone to error by itself";
  EXPECT_LT(took(
                [&](Device& device, ibv_qp* qp) {
                  putInState(qp, IBV_QPS_ERR);
                  post(40)(device, qp);
                },
                nothing),
            most)
      << "40 flushed before, of which nobody has asked";
  EXPECT_LT(took(
                [&](Device& device, ibv_qp* qp) {
                  post(40)(device, qp);
                  putInState(qp, IBV_QPS_RESET);
                },
                nothing),
            most)
      << "reset, with which they are gone";
  EXPECT_LT(took(
                [&](Device& device, ibv_qp* qp) {
                  post(40)(device, qp);
                  device.destroy(qp);
                },
                nothing),
            most)
      << "destroyed before anybody asked";
  EXPECT_LT(took(
                [&](Device& device, ibv_qp* qp) {
                  post(40)(device, qp);
                  EXPECT_THAT(device.poll(64), ::testing::IsEmpty())
                      << "held back, and dropped then";
                  device.destroy(qp);
                },
                nothing),
            most)
      << "destroyed while its completions were held back";
}

TEST_F(RateTest, AfterAResetNothingOfBeforeIsTakenForWhatIsSent) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  postSend(qp, 1, 100'000'000);  // 100 s
  putInState(qp, IBV_QPS_RESET);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1})) << "not known any more";
  Device::connect(qp, 0);
  postSend(qp, 1, 1000);
  EXPECT_TRUE(becomes([&] { return device.poll().size() == 1; }));
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 1000u);
}

// As an unreliable datagram's queue pair, which goes on after an error of a send.
TEST_F(RateTest, WhatComesAfterAnErrorDoesNotStandForWhatFailed) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  fake().breakQp(qp);
  postSend(qp, 1, 100'000'000);  // 100 s
  EXPECT_EQ(device.poll().at(0).status, IBV_WC_WR_FLUSH_ERR);
  Device::connect(qp, 0);
  postSend(qp, 2, 1000);
  EXPECT_TRUE(becomes([&] { return device.poll().size() == 1; }));
  const Counters counters = valueOf(control.counters(fault));
  EXPECT_EQ(counters.releasedBytes, 1000u);
  EXPECT_EQ(counters.flushErrors, 1u);
}

TEST_F(RateTest, OfABatchThoseWithoutACompletionCountWithTheNext) {
  Device device(0);
  ibv_qp_ex* const qp = device.makeExtendedQp(/*signal_all=*/false);
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kQpRate, &qp->qp_base)));
  ibv_wr_start(qp);
  for (const unsigned flags : {0U, static_cast<unsigned>(IBV_SEND_SIGNALED)}) {
    qp->wr_flags = flags;
    ibv_wr_rdma_write(qp, 0, 0);
    ibv_wr_set_sge(qp, 0, 0, 1000);
  }
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_TRUE(becomes([&] { return device.poll().size() == 1; }));
  EXPECT_EQ(valueOf(control.counters(fault)).releasedBytes, 2000u);
}

TEST_F(RateTest, WhatIsRefusedOnceTheRateIsOverIsNotTakenBack) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule never = rule(Effect::kPostError, qp);
  never.trigger.afterOperations = 1000;
  valueOf(control.arm(never));
  valueOf(control.disarm(valueOf(control.arm(rule(Effect::kQpRate, qp)))));
  fake().failPosts(EIO);
  EXPECT_EQ(postSend(qp, 1, 1000), EIO);
  fake().failPosts(0);
  const std::uint64_t again = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  EXPECT_EQ(postSend(qp, 2, 1000), 0);
  EXPECT_TRUE(becomes([&] { return !device.poll().empty(); }));
  EXPECT_EQ(valueOf(control.counters(again)).releasedBytes, 1000u);
}

TEST_F(RateTest, AnotherQueuePairsRateDoesNotKeepWhatThisOneSent) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  ibv_qp* const other = device.makeQp();
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kQpRate, other)));
  const std::uint64_t first = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  postSend(qp, 1, 100'000'000);  // 100 s
  valueOf(control.disarm(first));
  const std::uint64_t second = valueOf(control.arm(rule(Effect::kQpRate, qp)));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(valueOf(control.counters(second)).releasedBytes, 0u);
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

}  // namespace
}  // namespace faultline::testing
