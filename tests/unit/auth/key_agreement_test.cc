#include "resilient_ccl/auth/key_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::auth {
namespace {

std::vector<std::byte> fromHex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

PublicKey bytesOf32(std::string_view hex) {
  PublicKey array{};
  const auto bytes = fromHex(hex);
  EXPECT_EQ(bytes.size(), array.size());
  std::ranges::copy(bytes, array.begin());
  return array;
}

bool sameSecret(const Secret& one, const Secret& other) {
  return std::ranges::equal(one.bytes(), other.bytes());
}

// RFC 7748, section 6.1.
TEST(KeyAgreementTest, KeysAndSecretAreThoseOfTheStandard) {
  const KeyPair alice(
      Secret(bytesOf32("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")));
  const KeyPair bob(
      Secret(bytesOf32("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")));
  EXPECT_EQ(alice.publicKey(),
            bytesOf32("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
  EXPECT_EQ(bob.publicKey(),
            bytesOf32("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
  const Secret secret(
      bytesOf32("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
  EXPECT_TRUE(sameSecret(alice.agree(bob.publicKey()).value(), secret));
  EXPECT_TRUE(sameSecret(bob.agree(alice.publicKey()).value(), secret));
}

TEST(KeyAgreementTest, TwoPairsOfKeysHaveASecretOfTheirOwn) {
  ASSERT_TRUE(KeyPair::available());
  const KeyPair one = KeyPair::random(), other = KeyPair::random(), third = KeyPair::random();
  EXPECT_NE(one.publicKey(), other.publicKey());
  EXPECT_TRUE(
      sameSecret(one.agree(other.publicKey()).value(), other.agree(one.publicKey()).value()));
  EXPECT_FALSE(
      sameSecret(one.agree(other.publicKey()).value(), one.agree(third.publicKey()).value()));
}

// Points of small order: who sends them would know the secret (RFC 7748, section 6.1).
TEST(KeyAgreementTest, APublicKeyThatGivesAnybodyTheSecretIsRefused) {
  PublicKey zero{}, one{};
  one[0] = std::byte{1};
  for (const PublicKey& bad :
       {zero, one, bytesOf32("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")}) {
    EXPECT_EQ(KeyPair::random().agree(bad).status().code(), Code::kInvalidArgument);
  }
}

// RFC 5869, appendix A.1 and A.3, of which the first 128 bits.
TEST(KeyDerivationTest, KeysAreThoseOfTheStandard) {
  const auto secret = fromHex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
  const auto salt = fromHex("000102030405060708090a0b0c");
  const auto info = fromHex("f0f1f2f3f4f5f6f7f8f9");
  EXPECT_EQ(deriveKey(salt, secret, {info}).hex(), "3cb25f25faacd57a90434f64d0362f2a");
  const std::span parts(info);
  EXPECT_EQ(deriveKey(salt, secret, {parts.first(3), parts.subspan(3)}).hex(),
            "3cb25f25faacd57a90434f64d0362f2a");
  EXPECT_EQ(deriveKey({}, secret, {}).hex(), "8da4e775a563c18f715f802a063c5a31");
}

TEST(KeyDerivationTest, AnotherSaltSecretOrPurposeGivesAnotherKey) {
  const auto a = fromHex("aa"), b = fromHex("bb");
  const JobKey key = deriveKey(a, a, {a});
  EXPECT_EQ(key, deriveKey(a, a, {a}));
  EXPECT_NE(key, deriveKey(b, a, {a}));
  EXPECT_NE(key, deriveKey(a, b, {a}));
  EXPECT_NE(key, deriveKey(a, a, {b}));
  EXPECT_NE(key, deriveKey({}, a, {a}));
  EXPECT_NE(key, deriveKey(a, a, {}));
}

TEST(FingerprintTest, IsTheBeginningOfSha256) {
  const auto name =
      fingerprint(bytesOf32("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
  EXPECT_TRUE(std::ranges::equal(name, fromHex("300c9c9603b92a4b39ed3958bf924011")));
}

}  // namespace
}  // namespace faultline::auth
