#include "resilient_ccl/fabric/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "resilient_ccl/auth/mutual_proof.h"

namespace faultline::fabric {
namespace {

constexpr Duration kLongTime = 20s;

/// One end of a handshake; the test plays the other one over a socket pair.
class HandshakeTest : public ::testing::Test {
 protected:
  HandshakeTest() : hello_{.source = 1, .rail = 2, .epoch = 3, .attempt = 4} {}

  /// The end of a fresh connection whose other end is the test's.
  UniqueFd connection() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    there_ = UniqueFd(ends[1]);
    return UniqueFd(ends[0]);
  }
  template <typename T>
  void say(const T& value) {
    ASSERT_EQ(send(there_.get(), &value, sizeof(value), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(value)));
  }
  template <typename T>
  T hear() {
    T value{};
    EXPECT_EQ(recv(there_.get(), &value, sizeof(value), 0), static_cast<ssize_t>(sizeof(value)));
    return value;
  }
  static std::span<const std::byte> bytesOf(const Hello& hello) {
    return std::as_bytes(std::span(&hello, 1));
  }
  /// An accepting end that has said its challenge.
  Handshake accepting() {
    Handshake handshake = Handshake::accepted(connection(), now() + kLongTime);
    const Result<bool> begun = handshake.advance(authenticator_);
    EXPECT_TRUE(begun.ok() && !*begun);
    return handshake;
  }
  /// A connecting end that has answered this challenge.
  Handshake connecting(const auth::Nonce& challenge) {
    Handshake handshake = Handshake::connecting(connection(), hello_, now() + kLongTime);
    say(challenge);
    const Result<bool> begun = handshake.advance(authenticator_);
    EXPECT_TRUE(begun.ok() && !*begun);
    const auto said = hear<SignedHello>();
    EXPECT_TRUE(auth::verifyHello(authenticator_, challenge, bytesOf(said.hello), said.tag));
    return handshake;
  }

  const auth::JobKey key_ = auth::JobKey::random();
  auth::Authenticator authenticator_{key_}, stranger_{auth::JobKey::random()};
  UniqueFd there_;
  Hello hello_;
};

TEST_F(HandshakeTest, BothEndsAreProved) {
  Handshake accepts = accepting();
  const auto challenge = hear<auth::Nonce>();
  say(SignedHello{hello_, auth::signHello(authenticator_, challenge, bytesOf(hello_))});
  const Result<bool> done = accepts.advance(authenticator_);
  ASSERT_TRUE(done.ok() && *done) << done.status().message();
  EXPECT_EQ(accepts.hello().attempt, 4U);
  ASSERT_TRUE(accepts.accept(authenticator_).ok());
  EXPECT_TRUE(
      auth::verifyAnswer(authenticator_, challenge, bytesOf(hello_), {}, hear<auth::Tag>()));
}

TEST_F(HandshakeTest, TheAcceptingEndTakesNoWrongAnswerToItsChallenge) {
  Handshake earlier = accepting();
  const auto earlierChallenge = hear<auth::Nonce>();
  const auto refuses = [&](const Hello& hello, auto&& tagFor) {
    Handshake accepts = accepting();
    const auto challenge = hear<auth::Nonce>();
    EXPECT_NE(challenge, earlierChallenge);
    say(SignedHello{hello, tagFor(challenge)});
    return accepts.advance(authenticator_).status().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refuses(hello_, [&](auto) {
    return auth::signHello(authenticator_, earlierChallenge, bytesOf(hello_));
  })) << "what was said to another challenge";
  EXPECT_TRUE(refuses(hello_, [&](auto challenge) {
    return auth::signHello(stranger_, challenge, bytesOf(hello_));
  })) << "without the key";
  EXPECT_TRUE(refuses(hello_, [&](auto challenge) {
    return auth::signAnswer(authenticator_, challenge, bytesOf(hello_));
  })) << "in the words of the other role";
  Hello later = hello_;
  ++later.attempt;
  EXPECT_TRUE(refuses(later, [&](auto challenge) {
    return auth::signHello(authenticator_, challenge, bytesOf(hello_));
  })) << "changed behind its author's back";
}

TEST_F(HandshakeTest, AHelloThatOnlyTheMagicIsWrongOfIsRefused) {
  Handshake accepts = accepting();
  const auto challenge = hear<auth::Nonce>();
  Hello nonsense = hello_;
  nonsense.magic ^= 1;
  say(SignedHello{nonsense, auth::signHello(authenticator_, challenge, bytesOf(nonsense))});
  EXPECT_EQ(accepts.advance(authenticator_).status().code(), Code::kInvalidArgument);
}

TEST_F(HandshakeTest, TheConnectingEndTakesNobodyWhoDoesNotProveToHaveTheKey) {
  auth::Nonce challenge, other;
  auth::fillRandom(challenge);
  auth::fillRandom(other);
  const auto hello = bytesOf(hello_);
  for (const auth::Tag& answer :
       {auth::signHello(authenticator_, challenge, hello),  // its own word
        auth::signAnswer(stranger_, challenge, hello),      // another key
        auth::signAnswer(authenticator_, other, hello),     // another connection
        auth::Tag{}}) {
    Handshake connects = connecting(challenge);
    say(answer);
    EXPECT_EQ(connects.advance(authenticator_).status().code(), Code::kInvalidArgument);
  }
  Handshake connects = connecting(challenge);
  say(auth::signAnswer(authenticator_, challenge, hello));
  const Result<bool> done = connects.advance(authenticator_);
  EXPECT_TRUE(done.ok() && *done) << done.status().message();
}

TEST_F(HandshakeTest, TwoAcceptingEndsThatHearEachOtherProveNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  Handshake one = Handshake::accepted(UniqueFd(ends[0]), now() + kLongTime);
  Handshake other = Handshake::accepted(UniqueFd(ends[1]), now() + kLongTime);
  for (int i = 0; i < 3; ++i) {
    for (Handshake* end : {&one, &other}) {
      const Result<bool> done = end->advance(authenticator_);
      EXPECT_FALSE(done.ok() && *done);
    }
  }
}

}  // namespace
}  // namespace faultline::fabric
