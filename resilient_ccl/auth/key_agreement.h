#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "base/status.h"
#include "resilient_ccl/auth/job_key.h"

struct evp_pkey_st;

namespace faultline::auth {

/// What everybody may know of a key pair.
using PublicKey = std::array<std::byte, 32>;

/// 256 secret bits, overwritten when they are no longer needed.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  Secret() = default;
  explicit Secret(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes_); }

  std::span<std::byte, kBytes> bytes() { return bytes_; }
  std::span<const std::byte, kBytes> bytes() const { return bytes_; }

 private:
  std::array<std::byte, kBytes> bytes_{};
};

/// One end of a key agreement by X25519 (RFC 7748): two ends that have each other's public key get
/// the same secret, and whoever has heard both public keys does not. It does not tell who the other
/// end is: that takes a proof (mutual_proof.h). Thread-safe once it is made.
class KeyPair {
 public:
  /// Whether this OpenSSL has X25519 and HKDF, which its builders may leave out.
  static bool available();
  /// Throws std::runtime_error when it is not available.
  static KeyPair random();
  /// The same for a private key that is known already.
  explicit KeyPair(const Secret& privateKey);

  const PublicKey& publicKey() const { return public_; }
  /// kInvalidArgument: `other` is a point of small order, with which everybody has the same secret.
  Result<Secret> agree(const PublicKey& other) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };

  std::unique_ptr<evp_pkey_st, Free> private_;
  PublicKey public_{};
};

/// A key for one purpose by HKDF with SHA-256 (RFC 5869). `salt`: what both ends know beforehand;
/// may be empty. `secret`: what the key is made from. `purpose`: all that the key is for; the parts
/// are joined. Two purposes, or two salts, give keys that say nothing of each other.
JobKey deriveKey(std::span<const std::byte> salt, std::span<const std::byte> secret,
                 std::initializer_list<std::span<const std::byte>> purpose);

/// The first 128 bits of SHA-256: names a public key, so that nobody finds another one of the same
/// name.
std::array<std::byte, 16> fingerprint(const PublicKey& key);

}  // namespace faultline::auth
