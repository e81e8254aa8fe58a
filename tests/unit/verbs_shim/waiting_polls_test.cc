// Polls that find nothing but what is held back: of programs that may be about to sleep they wait,
// of all others they do not.
#include <fcntl.h>

#include <cerrno>

#include "tests/unit/verbs_shim/event_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::IsEmpty;

class WaitingPollTest : public EventTest {};

TEST_F(WaitingPollTest, WhoPollsBusilyDoesNotSleepThoughTheQueueHasAChannel) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = delay(control, qp, 10s);
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_THAT(device.poll(), IsEmpty());
  // Nor does who has got the event that it asked for.
  ask(device);
  postSend(qp, 2);
  EXPECT_EQ(event(device), device.cq);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(fault)).held, 2u);
  shimLibrary().ackEvents(device.cq, 1);
}

// What comes after it has asked gives an event, which wakes it if it sleeps.
TEST_F(WaitingPollTest, WhoAskedOnceAndPollsOnDoesNotSleep) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = delay(control, qp, 10s);
  ask(device);
  EXPECT_THAT(device.poll(), IsEmpty());
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_THAT(device.poll(), IsEmpty());
  EXPECT_EQ(valueOf(control.counters(fault)).held, 1u);
  EXPECT_EQ(event(device), device.cq);
  shimLibrary().ackEvents(device.cq, 1);
}

TEST_F(WaitingPollTest, WhoSleepsInTheCallDoesNotSleepInThePoll) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t brief = delay(control, qp, kBrief);
  sleepOnce(device, qp);
  valueOf(control.disarm(brief));
  const std::uint64_t fault = delay(control, qp, 10s);
  postSend(qp, 2);
  EXPECT_THAT(device.poll(), IsEmpty());
  ask(device);
  EXPECT_THAT(device.poll(), IsEmpty()) << "it may have other things to do before it sleeps";
  valueOf(control.disarm(fault));
  EXPECT_EQ(event(device), device.cq) << "what is released is due";
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
  shimLibrary().ackEvents(device.cq, 2);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0);
}

TEST_F(WaitingPollTest, WhoSleepsOnTheDescriptorIsMadeToWaitInThePollAfterItHasAsked) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  ASSERT_EQ(::fcntl(device.channel->fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(event(device), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ask(device);
  postSend(qp, 1);
  EXPECT_EQ(event(device), device.cq);
  shimLibrary().ackEvents(device.cq, 1);
  ask(device);
  const TimePoint begin = now();
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1})) << "at the first look";
  EXPECT_GE(now() - begin, kBrief);
  EXPECT_THAT(device.poll(), IsEmpty());
}

TEST_F(WaitingPollTest, WhoSleepsOnTheDescriptorIsMadeToWaitForEachThatGivesNoEvent) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  ibv_qp* const slower = device.makeQp();
  ibv_qp* const reset = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  delay(control, slower, 2 * kBrief);
  delay(control, reset, 10s);
  postSend(qp, 1);
  postSend(slower, 2);
  postSend(reset, 3);
  EXPECT_THAT(device.poll(), IsEmpty());
  ask(device);
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
  putInState(reset, IBV_QPS_RESET);
  delay(control, qp, 10s);
  postSend(qp, 4);
  EXPECT_THAT(device.poll(), IsEmpty()) << "which gives one";
}

}  // namespace
}  // namespace faultline::testing
