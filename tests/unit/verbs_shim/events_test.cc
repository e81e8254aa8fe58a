// Programs that sleep until an event tells of completions, while these are held back.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "tests/unit/verbs_shim/event_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::IsEmpty;

TEST_F(EventTest, WhoSleepsInTheCallGetsAnEventWhenSomethingIsDue) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  sleepOnce(device, qp);
  shimLibrary().ackEvents(device.cq, 1);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0) << "the device has made no event";
}

TEST_F(EventTest, GenuineEventsComeFirstAndAreAcknowledgedToTheDevice) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  ask(device);
  postSend(qp, 1);
  EXPECT_EQ(event(device), device.cq);
  EXPECT_EQ(fake().unacknowledged(device.cq), 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  ask(device);
  EXPECT_EQ(event(device), device.cq) << "of the one that was held";
  EXPECT_EQ(fake().unacknowledged(device.cq), 1);
  fake().failDestroy(EBUSY);
  EXPECT_EQ(shimLibrary().destroyCq(device.cq), EBUSY);
  fake().failDestroy(0);
  shimLibrary().ackEvents(device.cq, 2);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0);
}

TEST_F(EventTest, WhoAsksAgainBeforeItTakesTheEventStillWaitsForAnother) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  sleepOnce(device, qp);
  ask(device);
  postSend(qp, 2);
  ask(device);
  EXPECT_EQ(event(device), device.cq);
  EXPECT_EQ(fake().unacknowledged(device.cq), 1) << "it was the device's";
  EXPECT_THAT(device.poll(), IsEmpty());
  ASSERT_EQ(::fcntl(device.channel->fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_TRUE(becomes([&] { return event(device) == device.cq; }));
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
  shimLibrary().ackEvents(device.cq, 3);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0);
}

TEST_F(EventTest, TheEventIsOfTheQueueThatHoldsIt) {
  for (const bool made_first : {true, false}) {  // the shim may look at either of them first
    SCOPED_TRACE(made_first);
    Device device(0, 256, /*events=*/true);
    int cookie = 0;
    ibv_cq* other = shimLibrary().createCq(device.context, 16, &cookie, device.channel, 0);
    if (!made_first) std::swap(device.cq, other);
    ibv_qp* const qp = device.makeQp();
    Connection control = connect();
    delay(control, qp, kBrief);
    EXPECT_EQ(ibv_req_notify_cq(other, 0), 0);
    sleepOnce(device, qp);
    shimLibrary().ackEvents(device.cq, 1);
    EXPECT_EQ(shimLibrary().destroyCq(other), 0);
  }
}

TEST_F(EventTest, WhatIsReleasedIsDue) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = delay(control, qp, 10s);
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  ask(device);
  ASSERT_EQ(::fcntl(device.channel->fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(event(device), nullptr);
  valueOf(control.disarm(fault));
  EXPECT_EQ(event(device), device.cq);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0) << "it is none of the device's";
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
  shimLibrary().ackEvents(device.cq, 1);
}

TEST_F(EventTest, WithoutAFaultEventsAreTheDevices) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  ask(device);
  postSend(qp, 1);
  EXPECT_EQ(event(device), device.cq);
  shimLibrary().ackEvents(device.cq, 0);
  EXPECT_EQ(fake().unacknowledged(device.cq), 1);
  shimLibrary().ackEvents(device.cq, 1);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0);
}

TEST_F(EventTest, WhoCannotAskHasNotAsked) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, 10s);
  postSend(qp, 1);
  EXPECT_THAT(device.poll(), IsEmpty());
  fake().failAsk(EIO);
  EXPECT_EQ(ibv_req_notify_cq(device.cq, 0), EIO);
  fake().failAsk(0);
  EXPECT_THAT(device.poll(), IsEmpty()) << "it does not sleep until then";
  Device none(0);
  ibv_qp* const other = none.makeQp();
  delay(control, other, 10s);
  postSend(other, 2);
  EXPECT_EQ(ibv_req_notify_cq(none.cq, 0), 0) << "a queue without a channel may be asked";
  EXPECT_THAT(none.poll(), IsEmpty()) << "and nobody sleeps until its event";
}

// An event that the device makes when the shim has told of that completion already is one that
// nobody has asked for.
TEST_F(EventTest, OneEventTooManyIsNotOneThatIsOwed) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  delay(control, qp, kBrief);
  sleepOnce(device, qp);
  postSend(qp, 2);
  EXPECT_EQ(event(device), device.cq);
  EXPECT_EQ(fake().unacknowledged(device.cq), 1) << "the device's";
  EXPECT_THAT(device.poll(), IsEmpty());
  ASSERT_EQ(::fcntl(device.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ::poll(nullptr, 0, 60);  // it is due
  EXPECT_EQ(event(device), nullptr);
  for (int i = 0; i < 3; ++i) ask(device);
  EXPECT_EQ(event(device), device.cq);
  EXPECT_EQ(event(device), device.cq) << "who asks again has still asked";
  EXPECT_EQ(event(device), nullptr) << "but not for ever";
  EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{2}));
  shimLibrary().ackEvents(device.cq, 1);
  EXPECT_EQ(fake().unacknowledged(device.cq), 1) << "of four three are the shim's, told first";
  shimLibrary().ackEvents(device.cq, 3);
  EXPECT_EQ(fake().unacknowledged(device.cq), 0);
}

/// A thread of the program's that sleeps in ibv_get_cq_event() until it gets one.
class Sleeper {
 public:
  Sleeper(const Device& device, ibv_cq* (*event)(const Device&))
      : thread_([this, &device, event] {
          got_ = event(device);
          woken_ = true;
        }) {}
  bool woken() const { return woken_; }
  ibv_cq* wait() {
    thread_.join();
    return got_;
  }

 private:
  ibv_cq* got_ = nullptr;
  std::atomic<bool> woken_{false};
  std::thread thread_;
};

TEST_F(EventTest, WhoSleepsWhileAFaultIsArmedIsWokenByTheDevice) {
  for (const bool disarmed : {false, true}) {
    SCOPED_TRACE(disarmed);
    Device device(0, 256, /*events=*/true);
    ibv_qp* const victim = device.makeQp();
    ibv_qp* const other = device.makeQp();
    Connection control = connect();
    const std::uint64_t fault = delay(control, victim, 10s);
    ask(device);
    Sleeper sleeper(device, &EventTest::event);
    ::poll(nullptr, 0, 30);  // it sleeps, most probably
    if (disarmed) {
      valueOf(control.disarm(fault));
      ::poll(nullptr, 0, 30);
    }
    postSend(other, 1);
    EXPECT_EQ(sleeper.wait(), device.cq);
    EXPECT_EQ(fake().unacknowledged(device.cq), 1);
    shimLibrary().ackEvents(device.cq, 1);
  }
}

TEST_F(EventTest, OfTwoWhoSleepEachGetsAnEventOfItsOwn) {
  Device device(0, 256, /*events=*/true);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t fault = delay(control, qp, 20ms);
    postSend(qp, 1);
    EXPECT_THAT(device.poll(), IsEmpty());
    ask(device);
    Sleeper one(device, &EventTest::event);
    Sleeper two(device, &EventTest::event);
    EXPECT_TRUE(becomes([&] { return one.woken() || two.woken(); }));
    EXPECT_FALSE(one.woken() && two.woken());
    EXPECT_EQ(device.poll().size(), 1u);
    ask(device);
    postSend(qp, 2);  // the device has still to tell of one
    EXPECT_EQ(one.wait(), device.cq);
    EXPECT_EQ(two.wait(), device.cq);
    EXPECT_EQ(fake().unacknowledged(device.cq), 1);
    shimLibrary().ackEvents(device.cq, 2);
    valueOf(control.disarm(fault));
    EXPECT_EQ(device.poll().size(), 1u);
  }
}

/// Signals to the thread that makes this, again and again, of which the handler does nothing. A
/// thread that has slept for five seconds all the same is woken by an event of the device.
class Signals {
 public:
  Signals(int flags, ibv_cq* asked) : flags_(flags) {
    handle(SIGUSR1, flags_, before_);
    thread_ = std::thread([this, asked, sleeper = ::pthread_self()] {
      const TimePoint rescue = now() + 5s;
      for (bool rescued = false; !stop_; ::poll(nullptr, 0, 10)) {
        ::pthread_kill(sleeper, SIGUSR1);
        if (rescued || now() < rescue) continue;
        const ibv_wc completion{};
        fake().complete(asked, &completion);
        rescued = true;
      }
    });
  }
  ~Signals() {
    stop_ = true;
    thread_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  static void handle(int number, int flags, struct sigaction& before) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ::sigaction(number, &action, &before);
  }

 private:
  const int flags_;
  struct sigaction before_ {};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// As read() goes on, which is what the real function does.
TEST_F(EventTest, AHandlerAfterWhichCallsGoOnDoesNotEndTheSleep) {
  for (const bool others_do_not : {false, true}) {
    SCOPED_TRACE(others_do_not);
    struct sigaction before {};
    Signals::handle(SIGUSR2, others_do_not ? 0 : SA_RESTART, before);
    Device device(0, 256, /*events=*/true);
    ibv_qp* const qp = device.makeQp();
    Connection control = connect();
    delay(control, qp, 200ms);
    postSend(qp, 1);
    const TimePoint begin = now();
    EXPECT_THAT(device.poll(), IsEmpty());
    ask(device);
    {
      const Signals signals(SA_RESTART, device.cq);
      EXPECT_EQ(event(device), device.cq);
    }
    EXPECT_GE(now() - begin, 200ms);
    EXPECT_EQ(fake().unacknowledged(device.cq), 0) << "it is the shim's";
    EXPECT_EQ(idsOf(device.poll()), (std::vector<std::uint64_t>{1}));
    shimLibrary().ackEvents(device.cq, 1);
    ::sigaction(SIGUSR2, &before, nullptr);
  }
}

TEST_F(EventTest, AHandlerAfterWhichCallsFailEndsTheSleep) {
  for (const bool holds : {false, true}) {
    SCOPED_TRACE(holds);
    Device device(0, 256, /*events=*/true);
    ibv_qp* const qp = device.makeQp();
    Connection control = connect();
    delay(control, qp, 10s);
    if (holds) postSend(qp, 1);
    EXPECT_THAT(device.poll(), IsEmpty());
    ask(device);
    const Signals signals(0, device.cq);
    errno = 0;
    EXPECT_EQ(event(device), nullptr);
    EXPECT_EQ(errno, EINTR);
  }
}

// As for events of the device. The thread sanitizer sees whether it is touched after that.
TEST_F(EventTest, AQueueStaysUntilItsEventsAreAcknowledged) {
  Device device(0, 256, /*events=*/true);
  int cookie = 0;
  ibv_cq* const cq = shimLibrary().createCq(device.context, 16, &cookie, device.channel, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap.max_send_wr = 16;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  ibv_qp* const qp = shimLibrary().createQp(device.pd, &init);
  Connection control = connect();
  delay(control, qp, kBrief);
  postSend(qp, 1);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &completion), 0);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ibv_cq* got = nullptr;
  void* with = nullptr;
  ASSERT_EQ(shimLibrary().getEvent(device.channel, &got, &with), 0);
  ASSERT_EQ(got, cq);
  // The device says that it is in use, and does not wait for anything.
  fake().failDestroy(EBUSY);
  EXPECT_EQ(shimLibrary().destroyCq(cq), EBUSY);
  fake().failDestroy(0);
  std::atomic<bool> gone{false};
  std::thread destroyer([&] {
    shimLibrary().destroyQp(qp);
    EXPECT_EQ(shimLibrary().destroyCq(cq), 0);
    gone.store(true);
  });
  ::poll(nullptr, 0, 100);
  EXPECT_FALSE(gone.load());
  EXPECT_EQ(with, &cookie);
  shimLibrary().ackEvents(cq, 1);
  destroyer.join();
}

TEST_F(EventTest, ChannelsAreKeptApart) {
  Device first(0, 256, /*events=*/true);
  Device second(0, 256, /*events=*/true);
  Connection control = connect();
  delay(control, first.makeQp(), kBrief);
  ibv_qp* const qp = second.makeQp();
  delay(control, qp, kBrief);
  ASSERT_EQ(::fcntl(first.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ask(first);
  postSend(qp, 1);
  EXPECT_THAT(second.poll(), IsEmpty());
  ask(second);
  EXPECT_EQ(event(second), second.cq);
  EXPECT_EQ(event(first), nullptr);
  shimLibrary().ackEvents(first.cq, 1);
  EXPECT_EQ(fake().unacknowledged(first.cq), -1) << "one that it never had, and not the other's";
  shimLibrary().ackEvents(second.cq, 1);
  EXPECT_EQ(fake().unacknowledged(second.cq), 0);
}

TEST_F(EventTest, AQueueThatWasMadePastTheShimIsTheDevicesAlone) {
  Device device(0, 256, /*events=*/true);
  ibv_cq* const cq = fake().createCq(device.context, device.channel);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  const ibv_wc completion{};
  fake().complete(cq, &completion);
  EXPECT_EQ(event(device), cq);
  shimLibrary().ackEvents(cq, 1);
  EXPECT_EQ(fake().unacknowledged(cq), 0);
  EXPECT_EQ(shimLibrary().destroyCq(cq), 0);
}

}  // namespace
}  // namespace faultline::testing
