#include "resilient_ccl/auth/mutual_proof.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace faultline::auth {
namespace {

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(MutualProofTest, HelloAndAnswerAreProvedForThisConnectionOnly) {
  const JobKey key = JobKey::random();
  Authenticator one(key), other(key), stranger(JobKey::random());
  const auto challenge = bytesOf("challenge"), hello = bytesOf("hello"), answer = bytesOf("answer");
  const Tag said = signHello(one, challenge, hello);
  EXPECT_TRUE(verifyHello(other, challenge, hello, said));
  EXPECT_FALSE(verifyHello(stranger, challenge, hello, said));
  EXPECT_FALSE(verifyHello(other, bytesOf("challengd"), hello, said));
  EXPECT_FALSE(verifyHello(other, challenge, bytesOf("hellp"), said));
  const Tag answered = signAnswer(other, challenge, hello, answer);
  EXPECT_TRUE(verifyAnswer(one, challenge, hello, answer, answered));
  EXPECT_FALSE(verifyAnswer(stranger, challenge, hello, answer, answered));
  EXPECT_FALSE(verifyAnswer(one, bytesOf("challengd"), hello, answer, answered));
  EXPECT_FALSE(verifyAnswer(one, challenge, bytesOf("hellp"), answer, answered));
  EXPECT_FALSE(verifyAnswer(one, challenge, hello, bytesOf("answes"), answered));
}

TEST(MutualProofTest, NoEndsWordPassesForTheOthers) {
  const JobKey key = JobKey::random();
  Authenticator authenticator(key);
  const auto challenge = bytesOf("challenge"), hello = bytesOf("hello");
  const Tag said = signHello(authenticator, challenge, hello);
  EXPECT_FALSE(verifyAnswer(authenticator, challenge, hello, {}, said));
  const Tag answered = signAnswer(authenticator, challenge, hello);
  EXPECT_TRUE(verifyAnswer(authenticator, challenge, hello, {}, answered));
  EXPECT_FALSE(verifyHello(authenticator, challenge, hello, answered));
}

// Who chooses the challenge moves no byte of it into the hello.
TEST(MutualProofTest, WhereAPartEndsIsSigned) {
  Authenticator authenticator(JobKey::random());
  const Tag said = signHello(authenticator, bytesOf("abc"), bytesOf("def"));
  EXPECT_FALSE(verifyHello(authenticator, bytesOf("ab"), bytesOf("cdef"), said));
  const Tag answered = signAnswer(authenticator, bytesOf("abc"), bytesOf("def"), bytesOf("ghi"));
  EXPECT_FALSE(
      verifyAnswer(authenticator, bytesOf("ab"), bytesOf("cdef"), bytesOf("ghi"), answered));
  EXPECT_FALSE(
      verifyAnswer(authenticator, bytesOf("abc"), bytesOf("de"), bytesOf("fghi"), answered));
}

}  // namespace
}  // namespace faultline::auth
