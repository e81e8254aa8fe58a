#include "resilient_ccl/nccl/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

using ::testing::HasSubstr;

constexpr transport::tcp::Endpoint kRendezvous{.address = 0x0a000001, .port = 4242};

std::string greetingOf(const Identity& caller) {
  Greeting greeting;
  greeting.key = caller.keys.publicKey();
  greeting.name = "caller";
  return greeting.serialize();
}

/// Whether an answer of this listener is proved to a caller, and the caller's greeting to it.
struct Outcome {
  bool greeting = false, answer = false;
};
Outcome meet(const Identity& caller, const Handle& given, const Identity& callee,
             const auth::JobKey& token, const transport::tcp::Endpoint& at) {
  Challenge challenge{.key = callee.keys.publicKey(), .keyed = caller.jobKey.has_value()};
  auth::fillRandom(challenge.nonce);
  const std::string said = challenge.serialize();
  auto calls = Meeting::ofCaller(caller, given, said);
  auto listens = Meeting::ofListener(callee, token, at, said, caller.keys.publicKey());
  EXPECT_TRUE(calls.ok()) << calls.status().message();
  EXPECT_TRUE(listens.ok()) << listens.status().message();
  const std::string greeting = calls->signGreeting(greetingOf(caller));
  Outcome outcome;
  outcome.greeting = listens->openGreeting(greeting).has_value();
  outcome.answer = calls->openAnswer(listens->signAnswer("welcome")).has_value();
  return outcome;
}

TEST(MeetingTest, BothAreProvedOnlyWithTheSameTokenKeyAndAddress) {
  const Callee callee{};
  const auto caller = newIdentity();
  const Handle handle = callee.handle(kRendezvous, "callee");
  const Outcome right = meet(*caller, handle, *callee.self, callee.token, kRendezvous);
  EXPECT_TRUE(right.greeting && right.answer);

  Handle wrong = handle;
  wrong.token = auth::JobKey::random();
  const Outcome token = meet(*caller, wrong, *callee.self, callee.token, kRendezvous);
  EXPECT_FALSE(token.greeting || token.answer);
  wrong = handle;
  ++wrong.rendezvous.port;
  const Outcome port = meet(*caller, wrong, *callee.self, callee.token, kRendezvous);
  EXPECT_FALSE(port.greeting || port.answer);
  wrong = handle;
  ++wrong.rendezvous.address;
  const Outcome address = meet(*caller, wrong, *callee.self, callee.token, kRendezvous);
  EXPECT_FALSE(address.greeting || address.answer);
}

TEST(MeetingTest, TheJobsKeyIsProvedByBoth) {
  const auth::JobKey key = auth::JobKey::random();
  Callee callee;
  callee.self = newIdentity(key);
  const Handle handle = callee.handle(kRendezvous, "callee");
  const auto with = [&](const std::optional<auth::JobKey>& callers) {
    return meet(*newIdentity(callers), handle, *callee.self, callee.token, kRendezvous);
  };
  EXPECT_TRUE(with(key).greeting && with(key).answer);
  EXPECT_FALSE(with(std::nullopt).greeting || with(std::nullopt).answer);
  const Outcome other = with(auth::JobKey::random());
  EXPECT_FALSE(other.greeting || other.answer);
}

// A listener hears the handle, and both public keys.
TEST(MeetingTest, WhoHasHeardAllOfItHasNoKeyOfIt) {
  const Callee callee{};
  const auto caller = newIdentity();
  const Handle handle = callee.handle(kRendezvous, "callee");
  const std::string challenge = callee.challenge();
  auto calls = Meeting::ofCaller(*caller, handle, challenge);
  ASSERT_TRUE(calls.ok());
  const std::string greeting = calls->signGreeting(greetingOf(*caller));
  // The same with a private key of its own, in either role.
  const Callee thief{.self = newIdentity(), .token = callee.token};
  auto asListener = Meeting::ofListener(*thief.self, callee.token, kRendezvous, challenge,
                                        caller->keys.publicKey());
  ASSERT_TRUE(asListener.ok());
  EXPECT_FALSE(asListener->openGreeting(greeting));
  (void)asListener->openGreeting(greeting);
  EXPECT_FALSE(calls->openAnswer(asListener->signAnswer("welcome")));
  const auto keys = [&](const Identity& own, const auth::PublicKey& other, int side) {
    return agreeOnPairKey(own, other, side, side == 0 ? 3 : 4, side == 0 ? 4 : 3).value();
  };
  const auto& callees = callee.self->keys.publicKey();
  const auth::JobKey key = keys(*caller, callees, 0);
  EXPECT_EQ(key, keys(*callee.self, caller->keys.publicKey(), 1));
  EXPECT_NE(key, keys(*thief.self, callees, 0));
  EXPECT_NE(key, keys(*thief.self, caller->keys.publicKey(), 1));
}

TEST(MeetingTest, APairsKeyIsOfItsIncarnationsAndOfTheJobsKey) {
  const auto one = newIdentity(), other = newIdentity();
  const auto& publicKey = other->keys.publicKey();
  const auth::JobKey key = agreeOnPairKey(*one, publicKey, 0, 3, 4).value();
  EXPECT_EQ(key, agreeOnPairKey(*one, publicKey, 0, 3, 4).value());
  EXPECT_NE(key, agreeOnPairKey(*one, publicKey, 0, 3, 5).value());
  EXPECT_NE(key, agreeOnPairKey(*one, publicKey, 0, 5, 4).value());
  EXPECT_NE(key, agreeOnPairKey(*one, publicKey, 1, 3, 4).value());
  EXPECT_EQ(agreeOnPairKey(*one, {}, 0, 3, 4).status().code(), Code::kInvalidArgument);
  // The same private key in a job with a key: only the test can do that.
  auth::Secret secret;
  auth::fillRandom(secret.bytes());
  const Identity bare{.keys = auth::KeyPair(secret)};
  const Identity keyed{.keys = auth::KeyPair(secret), .jobKey = auth::JobKey::random()};
  EXPECT_NE(agreeOnPairKey(bare, publicKey, 0, 3, 4).value(),
            agreeOnPairKey(keyed, publicKey, 0, 3, 4).value());
}

TEST(MeetingTest, OfAnAnswerEveryChangedBitAndEveryShorterOneIsRefused) {
  const Callee callee{};
  const auto caller = newIdentity();
  const std::string challenge = callee.challenge();
  auto calls = Meeting::ofCaller(*caller, callee.handle(kRendezvous, "callee"), challenge);
  ASSERT_TRUE(calls.ok());
  const std::string greeting = calls->signGreeting(greetingOf(*caller));
  Meeting listens = callee.meeting(kRendezvous, challenge, greeting);
  for (std::size_t bit = 0; bit < 8 * greeting.size(); ++bit) {
    std::string changed = greeting;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(listens.openGreeting(changed)) << bit;
  }
  for (std::size_t size = 0; size < greeting.size(); ++size) {
    EXPECT_FALSE(listens.openGreeting(greeting.substr(0, size))) << size;
  }
  ASSERT_EQ(listens.openGreeting(greeting), greetingOf(*caller));
  const std::string answer = listens.signAnswer("welcome");
  for (std::size_t bit = 0; bit < 8 * answer.size(); ++bit) {
    std::string changed = answer;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(calls->openAnswer(changed)) << bit;
  }
  for (std::size_t size = 0; size < answer.size(); ++size) {
    EXPECT_FALSE(calls->openAnswer(answer.substr(0, size))) << size;
  }
  EXPECT_EQ(calls->openAnswer(answer), "welcome");
}

TEST(ChallengeTest, WhatIsSaidIsHeardAndAllElseIsRefusedByName) {
  const Callee callee{};
  const std::string said = callee.challenge();
  const auto heard = Challenge::parse(said);
  ASSERT_TRUE(heard.ok()) << heard.status().message();
  EXPECT_EQ(heard->key, callee.self->keys.publicKey());
  EXPECT_FALSE(heard->keyed);
  EXPECT_EQ(heard->serialize(), said);
  EXPECT_NE(callee.challenge(), said) << "a nonce is used once";
  std::string older = said;
  older[4] = 2;
  EXPECT_THAT(Challenge::parse(older).status().message(), HasSubstr("version 2, this one 3"));
  std::string other = said;
  other[0] = 'x';
  for (const std::string& bytes : {other, std::string(), said + "x", said.substr(1)}) {
    EXPECT_THAT(Challenge::parse(bytes).status().message(), HasSubstr("does not begin as"));
  }
}

}  // namespace
}  // namespace faultline::nccl
