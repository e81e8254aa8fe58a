#include "harness/workload/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstdint>
#include <iterator>
#include <stdexcept>

namespace faultline::workload {
namespace {

/// OpenSSL's digests fail only without memory or without the algorithm (a build that forbids it):
/// nothing that a caller could handle.
void require(bool succeeded) {
  if (!succeeded) throw std::runtime_error("SHA-256 is not available in this OpenSSL");
}

}  // namespace

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Digest::add(const void* data, std::size_t bytes) {
  const auto length = static_cast<std::uint64_t>(bytes);
  require(EVP_DigestUpdate(context_.get(), &length, sizeof length) == 1);
  require(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
}

Digest::Value Digest::value() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(EVP_MD_CTX_new());
  Value value{};
  require(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1);
  require(EVP_DigestFinal_ex(copy.get(), reinterpret_cast<unsigned char*>(value.data()), nullptr) ==
          1);
  return value;
}

std::string Digest::hex() const {
  std::string text;
  for (const std::byte byte : value()) {
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<int>(byte));
  }
  return text;
}

}  // namespace faultline::workload
