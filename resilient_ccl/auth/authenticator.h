#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "resilient_ccl/auth/job_key.h"

struct evp_mac_ctx_st;

namespace faultline::auth {

/// A message authentication code: what nobody without the key can make for bytes that nobody with
/// the key has said.
using Tag = std::array<std::byte, 16>;
/// Bytes that are never used again, by which the end that chose them knows an answer to be fresh.
using Nonce = std::array<std::byte, 16>;

/// Makes and checks tags with the key of a job: SipHash-2-4 with 128 bits of output (Aumasson and
/// Bernstein 2012), from OpenSSL. Of the codes measured in tests/bench/authenticator_bench.cc it is
/// the cheapest for a datagram. One context, made once: a tag costs no allocation. Not thread-safe.
class Authenticator {
 public:
  using Parts = std::initializer_list<std::span<const std::byte>>;

  /// Whether this OpenSSL has SipHash, which its builders may leave out.
  static bool available();

  /// Throws std::runtime_error when it is not available.
  explicit Authenticator(const JobKey& key);

  /// The tag of the bytes of all parts, one after the other. Callers begin each kind of message
  /// with a word of its own, so that a tag for one never fits another.
  Tag tagOf(Parts parts);

  /// Whether `tag` belongs to the bytes. Takes equally long wherever they differ.
  bool verify(Parts parts, const Tag& tag);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };

  JobKey key_;
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

}  // namespace faultline::auth
