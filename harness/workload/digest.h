#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace faultline::workload {

/// SHA-256 (FIPS 180-4, by OpenSSL) over a sequence of results: equal digests mean equal bytes in
/// equal portions and order. Move-only; one thread at a time.
class Digest {
 public:
  static constexpr std::size_t kBytes = 32;
  using Value = std::array<std::byte, kBytes>;

  Digest();

  /// Adds one result. Its length is part of the digest, so portions cannot shift unnoticed.
  void add(const void* data, std::size_t bytes);

  /// The digest of everything added so far; more can be added afterwards.
  Value value() const;
  /// The value as 64 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace faultline::workload
