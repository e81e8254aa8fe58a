// Faults on nodes, without nodes: RemoteFault at one end of a channel, what holds a fault at the
// other, in a thread. What that cannot be made to say: tests/unit/site/remote_fault_test.cc.
#include "harness/site/remote_fault.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "harness/agent/fault_holder.h"
#include "harness/launch/message_channel.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "tests/support/poll_until.h"

namespace faultline::agent {
namespace {

using faultline::test::pollUntil;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kRemotePatience = 20s;
const site::RemoteManner kManner{.answers = 60s, .lastAnswer = 1s};
/// How long the fault takes to return after its change.
constexpr Duration kAfterChange = 50ms;

/// What happens to the fault in one guest, and how it is to behave.
class Guest {
 public:
  void note(const std::string& call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  wire::HeldFault held;
  std::atomic<int> steps{0};
  std::atomic<bool> unfit{false};      ///< for the fault
  std::atomic<bool> refuses{false};    ///< to be applied
  std::atomic<bool> sticks{false};     ///< and cannot be taken back
  std::atomic<bool> breaks{false};     ///< what it does over time
  std::atomic<bool> undecided{false};  ///< about its evidence
  std::atomic<bool> lapses{false};

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

class ProbeFault final : public injector::Fault {
 public:
  explicit ProbeFault(Guest& guest) : guest_(guest) {}
  ~ProbeFault() override { (void)revert(); }
  Status prepare() override {
    guest_.note("prepare");
    return guest_.unfit ? errorf(Code::kUnsupported, "no tc") : okStatus();
  }
  Status apply() override {
    guest_.note("apply");
    if (guest_.refuses) return errorf(Code::kNotFound, "no queue pair 17");
    applied_ = true;
    const Status status = transit(true, [] { return okStatus(); });
    ::poll(nullptr, 0, static_cast<int>(toMilliseconds(kAfterChange)));
    return status;
  }
  Status step(TimePoint /*now*/) override {
    ++guest_.steps;
    return guest_.breaks ? errorf(Code::kIo, "the queue is gone") : okStatus();
  }
  Status revert() override {
    if (!applied_) return okStatus();
    if (guest_.sticks) return errorf(Code::kNotRestored, "the queue is still there");
    applied_ = false;
    guest_.note("revert");
    if (guest_.lapses) lapsed_ = now();
    return transit(false, [] { return okStatus(); });
  }
  std::string mechanism() const override { return applied_ ? "probe" : "not applied"; }
  std::optional<TimePoint> lapsedAt() const override { return lapsed_; }
  Duration evidenceBudget() const override { return 100ms; }

 protected:
  bool conclusive() const override { return applied_ && !guest_.undecided; }
  injector::Evidence verdict() const override {
    return {"probe", "calls", fmt::format("struck on {}", guest_.held.device), conclusive()};
  }

 private:
  Guest& guest_;
  bool applied_ = false;
  std::optional<TimePoint> lapsed_;
};

/// Two of them.
class FakeGuests final : public site::HolderLine {
 public:
  Result<int> startFault(int host, const wire::HeldFault& fault) override {
    Guest& guest = guests.at(static_cast<std::size_t>(host));
    guest.held = fault;
    ASSIGN_OR_RETURN(auto ends, launch::MessageChannel::makePair());
    const int number = next_++;
    auto holder = std::make_unique<Holder>(std::move(ends.first));
    holder->thread = std::jthread([&guest, far = std::move(ends.second)]() mutable {
      std::unique_ptr<injector::Fault> probe = std::make_unique<ProbeFault>(guest);
      (void)holdFault(far, std::move(probe));
      guest.note("ended");
    });
    holders_[number] = std::move(holder);
    return number;
  }
  Status tellFault(int fault, const wire::ToHolder& message) override {
    return holders_.at(fault)->near->send(wire::toJson(message));
  }
  std::optional<wire::FromHolder> faultSaid(int fault) override {
    Holder& holder = *holders_.at(fault);
    if (holder.gone) return std::nullopt;
    const auto message = holder.near->receive();
    if (!message.ok()) {
      holder.gone = true;
      return wire::Gone{message.status().message()};
    }
    if (!*message) return std::nullopt;
    const auto said = wire::fromJson<wire::FromHolder>(**message);
    EXPECT_TRUE(said.ok()) << said.status().message();
    return said.ok() ? std::optional(*said) : std::nullopt;
  }
  Status endFault(int fault) override {
    holders_.erase(fault);
    return okStatus();
  }
  Status listen(Duration timeout) override {
    ::poll(nullptr, 0, static_cast<int>(toMilliseconds(timeout)));
    return okStatus();
  }
  /// What holds it dies, and with it the fault.
  void kill(int fault) { ::shutdown(holders_.at(fault)->near->fd(), SHUT_RDWR); }

  std::array<Guest, 2> guests;

 private:
  struct Holder {
    explicit Holder(launch::MessageChannel end) : near(std::move(end)) {}
    std::jthread thread;  // ends when `near` has been closed
    std::optional<launch::MessageChannel> near;
    bool gone = false;
  };
  std::map<int, std::unique_ptr<Holder>> holders_;
  int next_ = 1;
};

class RemoteFaultTest : public ::testing::Test {
 protected:
  static constexpr int kHost = 1;

  std::unique_ptr<site::RemoteFault> make(const std::string& device = "rxe3") {
    return std::make_unique<site::RemoteFault>(
        guests_, kHost, "host 1", wire::HeldFault{.kind = "probe", .device = device}, kManner);
  }
  std::unique_ptr<site::RemoteFault> makeApplied() {
    auto fault = make();
    EXPECT_TRUE(fault->prepare().ok());
    const Status applied = fault->apply();
    EXPECT_TRUE(applied.ok()) << applied.message();
    return fault;
  }
  bool stepsReach(int steps) {
    return pollUntil(kRemotePatience, [&] { return guest_.steps >= steps; });
  }

  FakeGuests guests_;
  Guest& guest_ = guests_.guests[kHost];
};

TEST_F(RemoteFaultTest, EachCallReachesTheFaultInItsGuestAndNoOther) {
  {
    site::RemoteFault fault(
        guests_, kHost, "host 1",
        {.kind = "qp_error", .parameters = {{"device", "rxe1"}}, .device = "rxe2"}, kManner);
    EXPECT_TRUE(fault.prepare().ok());
    EXPECT_EQ(guest_.held.kind, "qp_error");
    EXPECT_EQ(guest_.held.parameters.at("device"), "rxe1");
    EXPECT_EQ(guest_.held.device, "rxe2");
    EXPECT_THAT(guest_.calls(), ElementsAre("prepare"));
    EXPECT_EQ(fault.mechanism(), "not applied");
    EXPECT_TRUE(fault.apply().ok());
    EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply"));
    EXPECT_EQ(fault.mechanism(), "probe");
    EXPECT_TRUE(fault.revert().ok());
    EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert"));
    EXPECT_TRUE(fault.revert().ok()) << "there is nothing left to be done";
  }
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert", "ended"));
  EXPECT_THAT(guests_.guests[0].calls(), IsEmpty());
}

TEST_F(RemoteFaultTest, IsPreparedTwiceByOneHolder) {
  const auto fault = make();
  EXPECT_TRUE(fault->prepare().ok());
  EXPECT_TRUE(fault->prepare().ok());
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "prepare"));
}

TEST_F(RemoteFaultTest, IsTakenBackWithItsObject) {
  makeApplied();
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert", "ended"));
}

// A shim's lease is renewed by step().
TEST_F(RemoteFaultTest, IsSteppedInTheGuestFromItsBeginningToItsEnd) {
  const auto fault = make();
  EXPECT_TRUE(fault->prepare().ok());
  ::poll(nullptr, 0, 10);
  EXPECT_EQ(guest_.steps, 0);
  EXPECT_TRUE(fault->apply().ok());
  EXPECT_GE(guest_.steps, 1) << "at once";
  EXPECT_TRUE(stepsReach(20)) << "whether or not somebody asks";
  EXPECT_TRUE(fault->revert().ok());
  const int until = guest_.steps;
  ::poll(nullptr, 0, 20);
  EXPECT_EQ(guest_.steps, until);
}

TEST_F(RemoteFaultTest, MomentsAreOfTheChangeAndNotOfTheAnswer) {
  const auto fault = make();
  EXPECT_TRUE(fault->prepare().ok());
  EXPECT_TRUE(fault->transitions().empty());
  const TimePoint begin = now();
  EXPECT_TRUE(fault->apply().ok());
  ASSERT_EQ(fault->transitions().size(), 1u);
  const injector::Transition struck = fault->transitions()[0];
  EXPECT_TRUE(struck.broken);
  EXPECT_GE(struck.before, begin);
  EXPECT_GE(struck.after, struck.before);
  EXPECT_LE(struck.after, now() - kAfterChange);
  EXPECT_TRUE(fault->revert().ok());
  ASSERT_EQ(fault->transitions().size(), 2u);
  EXPECT_FALSE(fault->transitions()[1].broken);
}

TEST_F(RemoteFaultTest, EvidenceIsTheGuestsOfThisStrike) {
  const auto fault = makeApplied();
  auto evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_EQ(evidence->fault, "probe");
  EXPECT_EQ(evidence->observed, "struck on rxe3");
  EXPECT_TRUE(evidence->ok);
  EXPECT_TRUE(fault->revert().ok());
  guest_.undecided = true;
  EXPECT_TRUE(fault->apply().ok());
  evidence = fault->evidence();
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_FALSE(evidence->ok) << "of the strike before";
}

TEST_F(RemoteFaultTest, EvidenceThatNobodyWaitsForDoesNotStandInTheWay) {
  guest_.undecided = true;  // it takes its time
  const auto fault = makeApplied();
  const auto evidence = fault->evidence([] { return true; });
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_FALSE(evidence->ok);
  EXPECT_THAT(evidence->observed, HasSubstr("has not told"));
  const Status reverted = fault->revert();
  EXPECT_TRUE(reverted.ok()) << reverted.message();
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert"));
  EXPECT_EQ(fault->transitions().size(), 2u);
}

TEST_F(RemoteFaultTest, WhatTheGuestRefusesIsTheFaultsOwnError) {
  guest_.refuses = true;
  const auto fault = make();
  EXPECT_TRUE(fault->prepare().ok());
  const Status refused = fault->apply();
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_EQ(refused.message(), "no queue pair 17");
  EXPECT_TRUE(fault->transitions().empty());
  ::poll(nullptr, 0, 10);
  EXPECT_EQ(guest_.steps, 0);
}

TEST_F(RemoteFaultTest, AGuestInWhichItCannotWorkIsTheFaultsOwnErrorToo) {
  guest_.unfit = true;
  const Status prepared = make()->prepare();
  EXPECT_EQ(prepared.code(), Code::kUnsupported);
  EXPECT_EQ(prepared.message(), "no tc");
}

TEST_F(RemoteFaultTest, WhatFailsAtOnceIsAnErrorOfTheStrike) {
  guest_.breaks = true;
  const auto fault = make();
  EXPECT_TRUE(fault->prepare().ok());
  EXPECT_EQ(fault->apply().message(), "the queue is gone");
  ::poll(nullptr, 0, 10);
  EXPECT_EQ(guest_.steps, 1) << "it is not tried again";
  EXPECT_TRUE(fault->revert().ok());
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert"));
}

TEST_F(RemoteFaultTest, WhatCannotBeTakenBackIsToldAndTriedAgain) {
  guest_.sticks = true;
  const auto fault = makeApplied();
  const Status reverted = fault->revert();
  EXPECT_EQ(reverted.code(), Code::kNotRestored);
  EXPECT_EQ(reverted.message(), "the queue is still there");
  EXPECT_EQ(fault->transitions().size(), 1u);
  guest_.sticks = false;
  EXPECT_TRUE(fault->revert().ok());
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert"));
}

TEST_F(RemoteFaultTest, WhatBreaksLeavesNoEvidence) {
  guest_.undecided = true;
  const auto fault = makeApplied();
  guest_.breaks = true;
  EXPECT_TRUE(pollUntil(kRemotePatience, [&] { return !fault->step(now()).ok(); }));
  EXPECT_EQ(fault->evidence().status().message(), "the queue is gone");
}

TEST_F(RemoteFaultTest, WhatBreaksInTheGuestIsSaidOnceAndCanStillBeTakenBack) {
  const auto fault = makeApplied();
  guest_.breaks = true;
  Status broken;
  EXPECT_TRUE(pollUntil(kRemotePatience, [&] { return !(broken = fault->step(now())).ok(); }));
  EXPECT_EQ(broken.code(), Code::kIo);
  EXPECT_EQ(broken.message(), "the queue is gone");
  const int until = guest_.steps;
  EXPECT_TRUE(fault->step(now()).ok()) << "once";
  ::poll(nullptr, 0, 10);
  EXPECT_EQ(guest_.steps, until) << "it is not tried again";
  EXPECT_TRUE(fault->revert().ok());
  EXPECT_THAT(guest_.calls(), ElementsAre("prepare", "apply", "revert"));
}

TEST_F(RemoteFaultTest, AHolderThatHasEndedIsAnErrorFromThenOn) {
  const auto fault = makeApplied();
  guests_.kill(1);
  Status gone;
  EXPECT_TRUE(pollUntil(kRemotePatience, [&] { return !(gone = fault->step(now())).ok(); }));
  EXPECT_EQ(gone.code(), Code::kUnavailable);
  EXPECT_THAT(gone.message(), HasSubstr("what holds probe on host 1 has ended"));
  EXPECT_EQ(fault->revert().code(), Code::kUnavailable);
  EXPECT_EQ(fault->apply().code(), Code::kUnavailable);
}

TEST_F(RemoteFaultTest, AnEndThatNobodyNoticedIsTold) {
  const auto fault = makeApplied();
  EXPECT_FALSE(fault->lapsedAt());
  guest_.lapses = true;
  const TimePoint begin = now();
  EXPECT_TRUE(fault->revert().ok());
  ASSERT_TRUE(fault->lapsedAt());
  EXPECT_GE(*fault->lapsedAt(), begin);
  EXPECT_LE(*fault->lapsedAt(), now());
}

TEST_F(RemoteFaultTest, WhatWasNotPreparedIsAMistake) {
  const auto fault = make();
  EXPECT_EQ(fault->apply().code(), Code::kInternal);
  EXPECT_THAT(guest_.calls(), IsEmpty());
}

TEST(HoldFaultTest, WhatCouldNotBeMadeIsEachAnswer) {
  auto ends = launch::MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  const std::jthread holder([&] {
    (void)holdFault(ends->second, errorf(Code::kUnsupported, "a guest has no fault 'loss'"));
  });
  for (const auto call : {wire::FaultCall::kPrepare, wire::FaultCall::kApply}) {
    EXPECT_TRUE(ends->first.send(wire::toJson(wire::ToHolder(wire::CallFault{call}))).ok());
    const auto message = ends->first.receiveWithin(kRemotePatience);
    const auto said = wire::fromJson<wire::FromHolder>(message.ok() ? *message : json());
    ASSERT_TRUE(said.ok()) << said.status().message();
    EXPECT_EQ(std::get<wire::HolderAnswer>(*said).outcome.code, Code::kUnsupported);
  }
  ends->first.release();  // with which it ends
}

TEST(HoldFaultTest, WhatItDoesNotUnderstandEndsTheFault) {
  auto ends = launch::MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  Guest guest;
  Status held;
  {
    const std::jthread holder([&] {
      std::unique_ptr<injector::Fault> probe = std::make_unique<ProbeFault>(guest);
      held = holdFault(ends->second, std::move(probe));
    });
    EXPECT_TRUE(
        ends->first.send(wire::toJson(wire::ToHolder(wire::CallFault{wire::FaultCall::kApply})))
            .ok());
    EXPECT_TRUE(ends->first.send({{"type", "explode"}}).ok());
    EXPECT_TRUE(pollUntil(kRemotePatience, [&] { return guest.calls().size() == 2; }));
    ends->first.release();
  }
  EXPECT_EQ(held.code(), Code::kInvalidArgument);
  EXPECT_THAT(held.message(), HasSubstr("\"explode\""));
  EXPECT_THAT(guest.calls(), ElementsAre("apply", "revert"));
}

TEST(HeldFaultTest, AGuestHasFaultsOfRdmaDevicesAndOfQueuePairs) {
  const UniqueFd here(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  auto network = netlink::Socket::open(here.get());
  ASSERT_TRUE(network.ok()) << network.status().message();
  const auto make = [&](const wire::HeldFault& held) { return makeHeldFault(held, *network); };
  const auto device = make({.kind = "rdma_port_down", .parameters = {}, .device = "rxe1"});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_THAT((*device)->mechanism(), HasSubstr("of the RDMA port"));
  const auto pair = make({.kind = "qp_error", .parameters = {}, .device = "rxe0"});
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_THAT((*pair)->mechanism(), HasSubstr("ibv_modify_qp"));
  EXPECT_EQ(
      make({.kind = "loss", .parameters = {{"percent", "1%"}}, .device = "rxe0"}).status().code(),
      Code::kUnsupported);
  EXPECT_EQ(make({.kind = "explode", .parameters = {}, .device = "rxe0"}).status().code(),
            Code::kNotFound);
  const auto often =
      make({.kind = "rdma_throttle", .parameters = {{"rate", "often"}}, .device = "rxe0"});
  EXPECT_EQ(often.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::agent
