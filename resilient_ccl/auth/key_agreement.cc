#include "resilient_ccl/auth/key_agreement.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "resilient_ccl/auth/openssl_library.h"

namespace faultline::auth {
namespace {

constexpr const char* kCurve = "X25519";

unsigned char* writable(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* readable(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Fails only without memory or without the algorithm: nothing that a caller could handle.
void demand(bool succeeded) {
  if (!succeeded) throw std::runtime_error("X25519 or HKDF is not available in this OpenSSL");
}

/// Null where OpenSSL was built without it. Lives as long as the process.
EVP_KDF* hkdf() {
  static EVP_KDF* const algorithm = []() -> EVP_KDF* {
    OSSL_LIB_CTX* const library = opensslLibrary();
    return library == nullptr ? nullptr : EVP_KDF_fetch(library, "HKDF", kAnyProvider);
  }();
  return algorithm;
}

/// An OpenSSL parameter of bytes, which are only read.
OSSL_PARAM bytesParameter(const char* name, std::span<const std::byte> bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()),
                                           bytes.size());
}

}  // namespace

void KeyPair::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

bool KeyPair::available() {
  if (hkdf() == nullptr) return false;
  EVP_KEYEXCH* const exchange = EVP_KEYEXCH_fetch(opensslLibrary(), kCurve, kAnyProvider);
  EVP_KEYEXCH_free(exchange);
  return exchange != nullptr;
}

KeyPair KeyPair::random() {
  Secret secret;
  fillRandom(secret.bytes());
  return KeyPair(secret);
}

KeyPair::KeyPair(const Secret& privateKey)
    : private_(EVP_PKEY_new_raw_private_key_ex(opensslLibrary(), kCurve, kAnyProvider,
                                               readable(privateKey.bytes()), Secret::kBytes)) {
  demand(private_ != nullptr);
  std::size_t size = public_.size();
  demand(EVP_PKEY_get_raw_public_key(private_.get(), writable(public_), &size) == 1 &&
         size == public_.size());
}

Result<Secret> KeyPair::agree(const PublicKey& other) const {
  const std::unique_ptr<EVP_PKEY, Free> theirs(EVP_PKEY_new_raw_public_key_ex(
      opensslLibrary(), kCurve, kAnyProvider, readable(other), other.size()));
  const auto freeContext = [](EVP_PKEY_CTX* context) { EVP_PKEY_CTX_free(context); };
  const std::unique_ptr<EVP_PKEY_CTX, decltype(freeContext)> context(
      EVP_PKEY_CTX_new_from_pkey(opensslLibrary(), private_.get(), kAnyProvider), freeContext);
  demand(theirs != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1);
  Secret secret;
  std::size_t size = Secret::kBytes;
  // OpenSSL refuses points whose secret is all zero, as RFC 7748 (section 6.1) allows.
  if (EVP_PKEY_derive_set_peer(context.get(), theirs.get()) != 1 ||
      EVP_PKEY_derive(context.get(), writable(secret.bytes()), &size) != 1 ||
      size != Secret::kBytes) {
    return errorf(Code::kInvalidArgument, "a public key that gives no secret");
  }
  return secret;
}

JobKey deriveKey(std::span<const std::byte> salt, std::span<const std::byte> secret,
                 std::initializer_list<std::span<const std::byte>> purpose) {
  demand(hkdf() != nullptr);
  std::vector<std::byte> info;
  for (const auto part : purpose) info.insert(info.end(), part.begin(), part.end());
  char digest[] = "SHA256";
  std::vector<OSSL_PARAM> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      bytesParameter(OSSL_KDF_PARAM_KEY, secret)};
  // An empty one is that of RFC 5869, which OpenSSL takes when none is named.
  if (!salt.empty()) parameters.push_back(bytesParameter(OSSL_KDF_PARAM_SALT, salt));
  if (!info.empty()) parameters.push_back(bytesParameter(OSSL_KDF_PARAM_INFO, info));
  parameters.push_back(OSSL_PARAM_construct_end());
  const auto freeContext = [](EVP_KDF_CTX* context) { EVP_KDF_CTX_free(context); };
  const std::unique_ptr<EVP_KDF_CTX, decltype(freeContext)> context(EVP_KDF_CTX_new(hkdf()),
                                                                    freeContext);
  std::array<std::byte, JobKey::kBytes> bytes{};
  demand(context != nullptr &&
         EVP_KDF_derive(context.get(), writable(bytes), bytes.size(), parameters.data()) == 1);
  const JobKey key(bytes);
  wipe(bytes);
  return key;
}

std::array<std::byte, 16> fingerprint(const PublicKey& key) {
  std::array<std::byte, 32> digest{};
  unsigned size = 0;
  const auto freeDigest = [](EVP_MD* algorithm) { EVP_MD_free(algorithm); };
  const std::unique_ptr<EVP_MD, decltype(freeDigest)> sha256(
      EVP_MD_fetch(opensslLibrary(), "SHA256", kAnyProvider), freeDigest);
  demand(sha256 != nullptr &&
         EVP_Digest(key.data(), key.size(), writable(digest), &size, sha256.get(), nullptr) == 1 &&
         size == digest.size());
  std::array<std::byte, 16> name{};
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

}  // namespace faultline::auth
