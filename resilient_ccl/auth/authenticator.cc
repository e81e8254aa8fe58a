#include "resilient_ccl/auth/authenticator.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <stdexcept>

#include "resilient_ccl/auth/openssl_library.h"

namespace faultline::auth {
namespace {

/// OpenSSL's codes fail only without memory or without the algorithm (a build that forbids it):
/// nothing that a caller could handle.
void require(bool succeeded) {
  if (!succeeded) throw std::runtime_error("SipHash is not available in this OpenSSL");
}

/// Null where OpenSSL was built without it. Lives as long as the process.
EVP_MAC* sipHash() {
  static EVP_MAC* const algorithm = []() -> EVP_MAC* {
    OSSL_LIB_CTX* const library = opensslLibrary();
    return library == nullptr ? nullptr : EVP_MAC_fetch(library, "SIPHASH", kAnyProvider);
  }();
  return algorithm;
}

}  // namespace

void Authenticator::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

bool Authenticator::available() { return sipHash() != nullptr; }

Authenticator::Authenticator(const JobKey& key) : key_(key) {
  EVP_MAC* const algorithm = sipHash();
  require(algorithm != nullptr);
  context_.reset(EVP_MAC_CTX_new(algorithm));
  require(context_ != nullptr);
  std::size_t size = sizeof(Tag);
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  require(EVP_MAC_CTX_set_params(context_.get(), parameters) == 1);
}

Tag Authenticator::tagOf(Parts parts) {
  // With the key each time: without it, OpenSSL 3.0 goes on where the last message ended.
  const auto* const key = reinterpret_cast<const unsigned char*>(key_.bytes().data());
  bool good = EVP_MAC_init(context_.get(), key, JobKey::kBytes, nullptr) == 1;
  for (const std::span<const std::byte> part : parts) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(part.data());
    good = good && (part.empty() || EVP_MAC_update(context_.get(), bytes, part.size()) == 1);
  }
  Tag tag;
  std::size_t written = 0;
  good = good && EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char*>(tag.data()),
                               &written, tag.size()) == 1;
  require(good && written == tag.size());
  return tag;
}

bool Authenticator::verify(Parts parts, const Tag& tag) {
  const Tag right = tagOf(parts);
  return CRYPTO_memcmp(right.data(), tag.data(), tag.size()) == 0;
}

}  // namespace faultline::auth
