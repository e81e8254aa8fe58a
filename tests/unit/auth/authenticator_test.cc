#include "resilient_ccl/auth/authenticator.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace faultline::auth {
namespace {

JobKey keyOf(int first) {
  std::string digits;
  for (int i = 0; i < 16; ++i) digits += fmt::format("{:02x}", (first + i) & 0xff);
  return JobKey::fromHex(digits).value();
}

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::string hexOf(const Tag& tag) {
  std::string text;
  for (const std::byte byte : tag) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

TEST(AuthenticatorTest, TagsAreThoseOfTheReferenceImplementation) {
  // vectors_sip128 of https://github.com/veorq/SipHash, key 00 01 .. 0f, message 00 01 02 ...
  Authenticator authenticator(keyOf(0));
  EXPECT_EQ(hexOf(authenticator.tagOf({})), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hexOf(authenticator.tagOf({counting(1)})), "da87c1d86b99af44347659119b22fc45");
}

TEST(AuthenticatorTest, ItSaysWhetherThereIsOne) { EXPECT_TRUE(Authenticator::available()); }

TEST(AuthenticatorTest, EachTagIsOfItsOwnMessageAlone) {
  Authenticator authenticator(keyOf(0));
  const auto message = counting(200);
  const Tag first = authenticator.tagOf({message});
  (void)authenticator.tagOf({counting(7)});
  EXPECT_EQ(authenticator.tagOf({message}), first);
}

TEST(AuthenticatorTest, PartsAreOneMessage) {
  Authenticator authenticator(keyOf(0));
  const auto message = counting(200);
  const std::span<const std::byte> whole(message);
  EXPECT_EQ(authenticator.tagOf({whole.first(3), {}, whole.subspan(3)}),
            authenticator.tagOf({whole}));
}

TEST(AuthenticatorTest, OnlyTheRightKeyMessageAndTagVerify) {
  Authenticator authenticator(keyOf(0));
  Authenticator stranger(keyOf(1));
  auto message = counting(40);
  const Tag tag = authenticator.tagOf({message});
  EXPECT_TRUE(authenticator.verify({message}, tag));
  EXPECT_FALSE(stranger.verify({message}, tag));
  for (std::size_t i = 0; i < tag.size(); ++i) {
    Tag wrong = tag;
    wrong[i] ^= std::byte{0x10};
    EXPECT_FALSE(authenticator.verify({message}, wrong)) << i;
  }
  message.back() ^= std::byte{1};
  EXPECT_FALSE(authenticator.verify({message}, tag));
}

}  // namespace
}  // namespace faultline::auth
