#include "resilient_ccl/nccl/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/log_lines.h"
#include "tests/support/no_more_descriptors.h"
#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kEnough = 20s;
constexpr Duration kPatience = 1h;

/// A door, and who calls there, over loopback; the time is the test's.
class DoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto door = Door::open({.address = INADDR_LOOPBACK,
                            .self = self_,
                            .token = token_,
                            .patience = kPatience,
                            .answer = [this](const Greeting& greeting) {
                              names_.push_back(greeting.name);
                              return Answer{.refusal = {}, .incarnation = 5, .address = address()};
                            }});
    ASSERT_TRUE(door.ok()) << door.status().message();
    door_ = std::move(*door);
  }

  static fabric::ProcessAddress address() {
    fabric::ProcessAddress address;
    address.management = {9, 10};
    return address;
  }
  /// Somebody who calls: this one may have heard of the handle.
  struct Caller {
    Frames frames;
    std::optional<Meeting> meeting{};  // from its greeting on
  };
  Caller call() const {
    auto socket = transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, door_->endpoint());
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    pollfd writable{.fd = socket->get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(poll(&writable, 1, 20'000), 1);
    return Caller{Frames(std::move(*socket))};
  }
  std::vector<Caller> call(std::size_t count) const {
    std::vector<Caller> callers;
    while (callers.size() < count) callers.push_back(call());
    return callers;
  }
  Handle handle(const auth::JobKey& token) const {
    return {
        .rendezvous = door_->endpoint(), .process = self_->id(), .token = token, .name = "door"};
  }
  /// The next frame that the door says; nothing: it has hung up, or says nothing.
  std::optional<std::string> hear(Caller& caller, TimePoint time) const {
    std::optional<std::string> heard;
    (void)test::pollUntil(kEnough, [&] {
      door_->attend(time);
      const auto frame = caller.frames.receive();
      if (frame.ok() && *frame) heard = **frame;
      return !frame.ok() || heard;
    });
    return heard;
  }
  /// A greeting for this challenge, proved with this token and these keys.
  static std::string greetingFor(Caller& caller, const std::string& name, const Handle& to,
                                 const Identity& who, const std::string& challenge) {
    Greeting greeting;
    greeting.key = who.keys.publicKey();
    auth::fillRandom(greeting.nonce);
    greeting.name = name;
    greeting.address = address();
    auto meeting = Meeting::ofCaller(who, to, challenge);
    EXPECT_TRUE(meeting.ok()) << meeting.status().message();
    caller.meeting = std::move(*meeting);
    return caller.meeting->signGreeting(greeting.serialize());
  }
  void greet(Caller& caller, const std::string& name, const auth::JobKey& token,
             TimePoint time) const {
    const auto challenge = hear(caller, time);
    ASSERT_TRUE(challenge);
    say(caller, greetingFor(caller, name, handle(token), *newIdentity(), *challenge));
  }
  static void say(Caller& caller, const std::string& bytes) {
    caller.frames.send(bytes);
    const auto all = caller.frames.flush();
    ASSERT_TRUE(all.ok() && *all);
  }
  /// Nothing: the door has hung up, or does not answer, or does not prove its answer.
  std::optional<Answer> answerTo(Caller& caller, TimePoint time) const {
    const auto frame = hear(caller, time);
    const auto proved = frame ? caller.meeting->openAnswer(*frame) : std::nullopt;
    if (!proved) return std::nullopt;
    auto parsed = Answer::parse(*proved);
    EXPECT_TRUE(parsed.ok());
    return *parsed;
  }
  bool comeToVisit(std::size_t count, TimePoint time) const {
    return test::pollUntil(kEnough, [&] {
      door_->attend(time);
      return door_->visitors() == count;
    });
  }
  static bool isHungUpOn(Caller& caller) {
    return test::pollUntil(kEnough, [&] { return !caller.frames.receive().ok(); });
  }
  bool isWatched(TimePoint time) const {
    std::vector<pollfd> waits;
    door_->waitFor(waits, time);
    return waits.size() == 1 + door_->visitors();
  }

  std::shared_ptr<const Identity> self_ = newIdentity();
  const auth::JobKey token_ = auth::JobKey::random();
  const TimePoint start_ = now();
  test::LogLines log_;
  std::vector<std::string> names_;  // of who was asked about
  std::unique_ptr<Door> door_;
};

TEST_F(DoorTest, WhoHasTheTokenIsAnswered) {
  Caller caller = call();
  greet(caller, "node1", token_, start_);
  const auto answer = answerTo(caller, start_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "");
  EXPECT_EQ(answer->incarnation, 5U);
  EXPECT_THAT(names_, ElementsAre("node1"));
  EXPECT_THAT(log_.take(), IsEmpty());
}

TEST_F(DoorTest, WhoSaysNothingHasAShortTimeWhateverTheJobsPatienceIs) {
  Caller caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  door_->attend(start_ + Door::kGreetingTime - 1ms);
  EXPECT_EQ(door_->visitors(), 1U);
  door_->attend(start_ + Door::kGreetingTime);
  EXPECT_EQ(door_->visitors(), 0U);
  EXPECT_TRUE(isHungUpOn(caller));
}

TEST_F(DoorTest, WhoIsHungUpOnIsResetSoThatNothingOfItStaysInTheKernel) {
  Caller caller = call();
  ASSERT_TRUE(hear(caller, start_));
  door_->attend(start_ + Door::kGreetingTime);
  ASSERT_EQ(door_->visitors(), 0U);
  ssize_t got = 0;
  int error = 0;
  ASSERT_TRUE(test::pollUntil(kEnough, [&] {
    char byte = 0;
    got = ::recv(caller.frames.fd(), &byte, sizeof(byte), MSG_DONTWAIT);
    error = errno;
    return got >= 0 || error != EAGAIN;
  }));
  EXPECT_EQ(got, -1);
  EXPECT_EQ(error, ECONNRESET);
}

TEST_F(DoorTest, AGreetingThatHasComeIsAnsweredHoweverLateItIsRead) {
  Caller caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  greet(caller, "node1", token_, start_);
  // This process was stopped for an hour.
  const auto answer = answerTo(caller, start_ + 1h);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "");
}

TEST_F(DoorTest, WhoHasGreetedHasTheJobsPatienceFromThereOn) {
  Caller caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  greet(caller, "node1", token_, start_);
  const TimePoint heard = start_ + Door::kGreetingTime - 1ms;
  ASSERT_TRUE(answerTo(caller, heard));
  door_->attend(heard + kPatience - 1ms);
  EXPECT_EQ(door_->visitors(), 1U);
  door_->attend(heard + kPatience);
  EXPECT_EQ(door_->visitors(), 0U);
}

TEST_F(DoorTest, OfStrangersThereAreFewAndTheOldestGoes) {
  Caller known = call();
  greet(known, "node1", token_, start_);
  ASSERT_TRUE(answerTo(known, start_));
  constexpr std::size_t kMore = 20;
  std::vector<Caller> callers = call(Door::kMostStrangers);
  ASSERT_TRUE(comeToVisit(1 + Door::kMostStrangers, start_));
  Caller last = call();
  const TimePoint later = start_ + Door::kLeastTime;
  for (int i = 0; i < 5; ++i) door_->attend(later - 1ms);
  EXPECT_TRUE(callers.front().frames.receive().ok()) << "it may not have heard its challenge yet";
  EXPECT_FALSE(isWatched(later - 1ms)) << "poll would return at once, again and again";
  EXPECT_EQ(door_->refused(), 0U);
  EXPECT_TRUE(test::pollUntil(kEnough, [&] {
    door_->attend(later);
    return !callers.front().frames.receive().ok();
  }));
  EXPECT_EQ(door_->visitors(), 1 + Door::kMostStrangers);
  EXPECT_EQ(door_->refused(), 1U);
  const std::vector<Caller> others = call(kMore);
  EXPECT_TRUE(test::pollUntil(kEnough, [&] {
    door_->attend(later);
    EXPECT_LE(door_->visitors(), 1 + Door::kMostStrangers);
    return !callers[kMore].frames.receive().ok();
  }));
  EXPECT_EQ(door_->refused(), 1 + kMore);
  EXPECT_TRUE(known.frames.receive().ok()) << "it is none of them";
  // Who has a greeting to say is heard among them.
  greet(last, "node2", token_, later);
  EXPECT_TRUE(answerTo(last, later));
}

TEST_F(DoorTest, ManyWhoGreetAtOnceAreAllAnswered) {
  constexpr std::size_t kCallers = 200;
  std::vector<Caller> callers = call(kCallers);
  // The door is busier than they are: it looks as often as it has to, they whenever it has.
  std::vector<bool> greeted(kCallers), answered(kCallers);
  TimePoint time = start_;
  const bool all = test::pollUntil(kEnough, [&] {
    door_->attend(time += 1ms);
    for (std::size_t i = 0; i < kCallers; ++i) {
      const auto frame = callers[i].frames.receive();
      EXPECT_TRUE(frame.ok()) << i << ": " << frame.status().message();
      if (!frame.ok() || !*frame) continue;
      if (greeted[i]) {
        answered[i] = callers[i].meeting->openAnswer(**frame).has_value();
      } else {
        say(callers[i], greetingFor(callers[i], "node", handle(token_), *newIdentity(), **frame));
        greeted[i] = true;
      }
    }
    return std::ranges::count(answered, true) == static_cast<std::ptrdiff_t>(kCallers);
  });
  EXPECT_TRUE(all) << std::ranges::count(answered, true);
  EXPECT_EQ(names_.size(), kCallers);
  EXPECT_EQ(door_->refused(), 0U);
}

TEST_F(DoorTest, WithoutDescriptorsItIsNotWatchedForAWhile) {
  Caller caller = call();
  const TimePoint again = start_ + Door::kRest;
  {
    const test::NoMoreDescriptors none;
    ASSERT_TRUE(test::pollUntil(kEnough, [&] {
      door_->attend(start_);
      return !isWatched(start_);
    })) << "poll would return at once, again and again";
    EXPECT_FALSE(isWatched(again - 1ms));
    EXPECT_TRUE(isWatched(again));
    EXPECT_THAT(log_.take(),
                ElementsAre(AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n"))));
    door_->attend(again);
    EXPECT_FALSE(isWatched(again));
    EXPECT_THAT(log_.take(), IsEmpty()) << "it has been said";
  }
  // Who waited is answered once there are some.
  greet(caller, "node1", token_, again + Door::kRest);
  EXPECT_TRUE(answerTo(caller, again + Door::kRest));
}

TEST_F(DoorTest, WhoIsRefusedIsNamedAndOfManyOneNowAndThen) {
  const auto refused = [&](TimePoint time) {
    Caller caller = call();
    greet(caller, "stranger", auth::JobKey::random(), time);
    EXPECT_FALSE(answerTo(caller, time)) << "a proof, for somebody who has none";
    const auto from = transport::tcp::localEndpoint(caller.frames.fd());
    EXPECT_TRUE(from.ok());
    return from->toString();
  };
  const std::string first = refused(start_);
  EXPECT_THAT(log_.take(), ElementsAre("a connection from " + first +
                                       " is refused: who calls does not prove that it has "
                                       "been given this handle"));
  for (int i = 0; i < 3; ++i) (void)refused(start_ + 1s);
  EXPECT_THAT(log_.take(), IsEmpty());
  const std::string last = refused(start_ + Door::kComplaintPause);
  EXPECT_THAT(log_.take(), ElementsAre(AllOf(HasSubstr(last), HasSubstr("(3 more before it)"))));
  EXPECT_THAT(names_, IsEmpty()) << "the job is not asked";
  EXPECT_EQ(door_->refused(), 5U);
}

TEST_F(DoorTest, RandomBytesAreRefusedAndHinderNobody) {
  constexpr std::uint64_t kSeed = 20'261'126;
  constexpr int kCallers = 300;
  for (int i = 0; i < kCallers; ++i) {
    SCOPED_TRACE(kSeed + i);
    Random random(kSeed + i);
    Caller caller = call();
    const auto challenge = hear(caller, start_);
    ASSERT_TRUE(challenge);
    // Anything; a frame of anything; or a greeting with a few bits changed.
    std::string bytes(1 + random.below(300), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    if (i % 3 == 0) {
      ASSERT_EQ(::send(caller.frames.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      door_->attend(start_);
      continue;
    }
    if (i % 3 == 2) {
      bytes = greetingFor(caller, "node", handle(token_), *newIdentity(), *challenge);
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    }
    const std::uint64_t before = door_->refused();
    say(caller, bytes);
    ASSERT_TRUE(hear(caller, start_));
    EXPECT_EQ(door_->refused(), before + 1);
  }
  EXPECT_THAT(names_, IsEmpty());
  Caller caller = call();
  greet(caller, "node1", token_, start_);
  EXPECT_TRUE(answerTo(caller, start_));
  door_->attend(start_ + Door::kGreetingTime);
  EXPECT_LE(door_->visitors(), 1U);
}

// Somebody hears all that is said, knows the handle's bytes or not, and says it again.
TEST_F(DoorTest, WhatWasSaidInAnotherCallProvesNothing) {
  Caller right = call();
  const auto challenge = hear(right, start_);
  ASSERT_TRUE(challenge);
  const auto who = newIdentity();
  const std::string recorded = greetingFor(right, "node1", handle(token_), *who, *challenge);
  say(right, recorded);
  const auto answer = hear(right, start_);
  ASSERT_TRUE(answer && right.meeting->openAnswer(*answer));
  EXPECT_THAT(names_, ElementsAre("node1"));
  std::string spliced = recorded;
  spliced.replace(0, challenge->size(), *challenge);
  for (const std::string& said : {recorded, *answer, *challenge, spliced}) {
    Caller thief = call();
    ASSERT_TRUE(hear(thief, start_));
    const std::uint64_t before = door_->refused();
    say(thief, said);
    const auto heard = hear(thief, start_);
    EXPECT_TRUE(heard && !right.meeting->openAnswer(*heard));
    EXPECT_EQ(door_->refused(), before + 1);
  }
  EXPECT_EQ(names_.size(), 1U) << "the job is not asked";
}

// With the public key of another process it says a greeting of its own, and knows the token.
TEST_F(DoorTest, NobodySpeaksForAnotherProcessWithoutItsPrivateKey) {
  for (const auth::PublicKey& claimed :
       {newIdentity()->keys.publicKey(), self_->keys.publicKey(), auth::PublicKey{}}) {
    Caller liar = call();
    const auto challenge = hear(liar, start_);
    ASSERT_TRUE(challenge);
    std::string said = greetingFor(liar, "node1", handle(token_), *newIdentity(), *challenge);
    const std::string unsignedPart = said.substr(0, said.size() - Meeting::kProofBytes);
    auto greeting = Greeting::parse(unsignedPart);
    ASSERT_TRUE(greeting.ok());
    greeting->key = claimed;
    const std::uint64_t before = door_->refused();
    say(liar, liar.meeting->signGreeting(greeting->serialize()));
    ASSERT_TRUE(hear(liar, start_));
    EXPECT_EQ(door_->refused(), before + 1);
  }
  EXPECT_THAT(names_, IsEmpty());
}

TEST_F(DoorTest, AGreetingThatDoesNotEndIsCountedAndHasAShortTime) {
  Caller slow = call();
  ASSERT_TRUE(hear(slow, start_));
  const std::uint32_t length = 300;
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += std::string(length - 1, 'x');
  TimePoint time = start_;
  for (const char byte : bytes) {
    ASSERT_EQ(::send(slow.frames.fd(), &byte, 1, MSG_NOSIGNAL), 1);
    time += Door::kGreetingTime / 400;
    door_->attend(time);
  }
  EXPECT_EQ(door_->visitors(), 1U);
  EXPECT_EQ(door_->refused(), 0U);
  ASSERT_TRUE(test::pollUntil(kEnough, [&] {
    door_->attend(start_ + Door::kGreetingTime);
    return door_->visitors() == 0;
  }));
  EXPECT_EQ(door_->refused(), 1U);
  EXPECT_TRUE(isHungUpOn(slow));
}

TEST_F(DoorTest, AGreetingOfMoreThanTheLongestIsRefusedAndOneOfAsMuchIsRead) {
  for (const std::uint32_t surplus : {0U, 1U}) {
    Caller caller = call();
    ASSERT_TRUE(hear(caller, start_));
    const std::uint64_t before = door_->refused();
    const std::uint32_t length = Frames::kLongest + surplus;
    // Of the longer one the length alone is enough.
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
    if (surplus == 0) bytes += std::string(length, 'x');
    ASSERT_EQ(::send(caller.frames.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(hear(caller, start_).has_value(), surplus == 0) << "it is told why, or hung up on";
    EXPECT_EQ(door_->refused(), before + 1);
  }
}

class KeyedDoorTest : public DoorTest {
 protected:
  KeyedDoorTest() { self_ = newIdentity(key_); }
  const auth::JobKey key_ = auth::JobKey::random();
};

// It has read all of NCCL's bootstrap.
TEST_F(KeyedDoorTest, TheHandleAloneIsNotEnoughWhereTheJobHasAKey) {
  const auto answered = [&](const std::optional<auth::JobKey>& key) {
    Caller caller = call();
    auto challenge = hear(caller, start_);
    EXPECT_TRUE(challenge);
    if (!key) (*challenge)[8] = 0;  // it lies to itself, to get as far as a greeting
    say(caller, greetingFor(caller, "node1", handle(token_), *newIdentity(key), *challenge));
    return answerTo(caller, start_).has_value();
  };
  EXPECT_FALSE(answered(std::nullopt));
  EXPECT_FALSE(answered(auth::JobKey::random()));
  EXPECT_EQ(door_->refused(), 2U);
  EXPECT_TRUE(answered(key_));
  EXPECT_THAT(names_, ElementsAre("node1"));
}

}  // namespace
}  // namespace faultline::nccl
