#include "resilient_ccl/nccl/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/log_lines.h"
#include "tests/support/no_more_descriptors.h"
#include "tests/support/poll_until.h"

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
  Frames call() const {
    auto socket = transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, door_->endpoint());
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    pollfd writable{.fd = socket->get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(poll(&writable, 1, 20'000), 1);
    return Frames(std::move(*socket));
  }
  std::vector<Frames> call(std::size_t count) const {
    std::vector<Frames> callers;
    while (callers.size() < count) callers.push_back(call());
    return callers;
  }
  void greet(Frames& caller, const std::string& name, const auth::JobKey& proof) const {
    Greeting greeting;
    greeting.proof = proof;
    greeting.name = name;
    greeting.address = address();
    say(caller, greeting.serialize());
  }
  static void say(Frames& caller, const std::string& bytes) {
    caller.send(bytes);
    const auto all = caller.flush();
    ASSERT_TRUE(all.ok() && *all);
  }
  /// Nothing: the door has hung up, or does not answer.
  std::optional<Answer> answerTo(Frames& caller, TimePoint time) const {
    std::optional<Answer> answer;
    (void)test::pollUntil(kEnough, [&] {
      door_->attend(time);
      const auto frame = caller.receive();
      if (!frame.ok()) return true;
      if (!*frame) return false;
      auto parsed = Answer::parse(**frame);
      EXPECT_TRUE(parsed.ok());
      answer = *parsed;
      return true;
    });
    return answer;
  }
  bool comeToVisit(std::size_t count, TimePoint time) const {
    return test::pollUntil(kEnough, [&] {
      door_->attend(time);
      return door_->visitors() == count;
    });
  }
  static bool isHungUpOn(Frames& caller) {
    return test::pollUntil(kEnough, [&] { return !caller.receive().ok(); });
  }
  bool isWatched(TimePoint time) const {
    std::vector<pollfd> waits;
    door_->waitFor(waits, time);
    return waits.size() == 1 + door_->visitors();
  }

  const auth::JobKey token_ = auth::JobKey::random();
  const TimePoint start_ = now();
  test::LogLines log_;
  std::vector<std::string> names_;  // of who was asked about
  std::unique_ptr<Door> door_;
};

TEST_F(DoorTest, WhoHasTheTokenIsAnswered) {
  Frames caller = call();
  greet(caller, "node1", token_);
  const auto answer = answerTo(caller, start_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "");
  EXPECT_EQ(answer->incarnation, 5U);
  EXPECT_THAT(names_, ElementsAre("node1"));
  EXPECT_THAT(log_.take(), IsEmpty());
}

TEST_F(DoorTest, WhoSaysNothingHasAShortTimeWhateverTheJobsPatienceIs) {
  Frames caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  door_->attend(start_ + Door::kGreetingTime - 1ms);
  EXPECT_EQ(door_->visitors(), 1U);
  door_->attend(start_ + Door::kGreetingTime);
  EXPECT_EQ(door_->visitors(), 0U);
  EXPECT_TRUE(isHungUpOn(caller));
}

TEST_F(DoorTest, AGreetingThatHasComeIsAnsweredHoweverLateItIsRead) {
  Frames caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  greet(caller, "node1", token_);
  // This process was stopped for an hour.
  const auto answer = answerTo(caller, start_ + 1h);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, "");
}

TEST_F(DoorTest, WhoHasGreetedHasTheJobsPatienceFromThereOn) {
  Frames caller = call();
  ASSERT_TRUE(comeToVisit(1, start_));
  greet(caller, "node1", token_);
  const TimePoint heard = start_ + Door::kGreetingTime - 1ms;
  ASSERT_TRUE(answerTo(caller, heard));
  door_->attend(heard + kPatience - 1ms);
  EXPECT_EQ(door_->visitors(), 1U);
  door_->attend(heard + kPatience);
  EXPECT_EQ(door_->visitors(), 0U);
}

TEST_F(DoorTest, OfStrangersThereAreFewAndTheOldestGoes) {
  Frames known = call();
  greet(known, "node1", token_);
  ASSERT_TRUE(answerTo(known, start_));
  constexpr std::size_t kMore = 20;
  std::vector<Frames> callers = call(Door::kMostStrangers);
  ASSERT_TRUE(comeToVisit(1 + Door::kMostStrangers, start_));
  Frames last = call();
  EXPECT_TRUE(test::pollUntil(kEnough, [&] {
    door_->attend(start_);
    return !callers.front().receive().ok();
  }));
  EXPECT_EQ(door_->visitors(), 1 + Door::kMostStrangers);
  const std::vector<Frames> others = call(kMore);
  EXPECT_TRUE(test::pollUntil(kEnough, [&] {
    door_->attend(start_);
    EXPECT_LE(door_->visitors(), 1 + Door::kMostStrangers);
    return !callers[kMore].receive().ok();
  }));
  EXPECT_TRUE(known.receive().ok()) << "it is none of them";
  // Who has a greeting to say is heard among them.
  greet(last, "node2", token_);
  EXPECT_TRUE(answerTo(last, start_));
}

TEST_F(DoorTest, ManyWhoGreetAtOnceAreAllAnswered) {
  constexpr std::size_t kCallers = 200;
  std::vector<Frames> callers = call(kCallers);
  for (Frames& caller : callers) greet(caller, "node", token_);
  for (Frames& caller : callers) EXPECT_TRUE(answerTo(caller, start_));
  EXPECT_EQ(names_.size(), kCallers);
}

TEST_F(DoorTest, WithoutDescriptorsItIsNotWatchedForAWhile) {
  Frames caller = call();
  greet(caller, "node1", token_);
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
  EXPECT_TRUE(answerTo(caller, again + Door::kRest));
}

TEST_F(DoorTest, WhoIsRefusedIsNamedAndOfManyOneNowAndThen) {
  const auto refused = [&](TimePoint time) {
    Frames caller = call();
    greet(caller, "stranger", auth::JobKey::random());
    const auto answer = answerTo(caller, time);
    EXPECT_TRUE(answer && answer->refusal.find("not been given this handle") != std::string::npos);
    const auto from = transport::tcp::localEndpoint(caller.fd());
    EXPECT_TRUE(from.ok());
    return from->toString();
  };
  const std::string first = refused(start_);
  EXPECT_THAT(log_.take(), ElementsAre("a connection from " + first +
                                       " is refused: who calls has not been given this handle"));
  for (int i = 0; i < 3; ++i) (void)refused(start_ + 1s);
  EXPECT_THAT(log_.take(), IsEmpty());
  const std::string last = refused(start_ + Door::kComplaintPause);
  EXPECT_THAT(log_.take(), ElementsAre(AllOf(HasSubstr(last), HasSubstr("(3 more before it)"))));
  EXPECT_THAT(names_, IsEmpty()) << "the job is not asked";
}

TEST_F(DoorTest, RandomBytesAreRefusedAndHinderNobody) {
  constexpr std::uint64_t kSeed = 20'261'126;
  constexpr int kCallers = 300;
  Greeting right;
  right.proof = token_;
  right.address = address();
  const std::string model = right.serialize();
  for (int i = 0; i < kCallers; ++i) {
    SCOPED_TRACE(kSeed + i);
    Random random(kSeed + i);
    // Anything; a frame of anything; or a greeting with some bytes changed.
    std::string bytes = i % 3 == 2 ? model : std::string(1 + random.below(300), '\0');
    if (i % 3 == 2) {
      bytes[random.below(4)] ^= static_cast<char>(1 + random.below(255));  // what it begins with
      for (int change = 0; change < 8; ++change) {
        bytes[4 + random.below(bytes.size() - 4)] = static_cast<char>(random.below(256));
      }
    } else {
      for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    }
    Frames caller = call();
    if (i % 3 == 0) {
      ASSERT_EQ(::send(caller.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      door_->attend(start_);
      continue;
    }
    say(caller, bytes);
    const auto answer = answerTo(caller, start_);
    ASSERT_TRUE(answer);
    EXPECT_THAT(answer->refusal, HasSubstr("not understood"));
  }
  EXPECT_THAT(names_, IsEmpty());
  Frames caller = call();
  greet(caller, "node1", token_);
  EXPECT_TRUE(answerTo(caller, start_));
  door_->attend(start_ + Door::kGreetingTime);
  EXPECT_LE(door_->visitors(), 1U);
}

}  // namespace
}  // namespace faultline::nccl
