#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/auth/key_agreement.h"
#include "resilient_ccl/nccl/handle.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// What a process of a job is known by: a key pair of its own, made anew with each `Directory`,
/// whose public key gives the process its id; and the job's key, if the user has given one.
struct Identity {
  auth::KeyPair keys = auth::KeyPair::random();
  std::optional<auth::JobKey> jobKey = std::nullopt;  ///< of FAULTLINE_KEY

  ProcessId id() const { return ProcessId::of(keys.publicKey()); }
};

/// What the end that is called says first.
struct Challenge {
  auth::Nonce nonce{};
  auth::PublicKey key{};  ///< of who is called
  bool keyed = false;     ///< whether FAULTLINE_KEY is set there: for messages, proves nothing

  std::string serialize() const;
  static Result<Challenge> parse(const std::string& bytes);
};

/// How two processes prove to each other who they are when one calls the other one
/// (auth/mutual_proof.h). Both sign with keys that follow from the X25519 secret of their key
/// pairs, from the token of the handle that was given to the caller, from the job's key, from the
/// address that was called, and from the challenge. So a proof shows all of it: that the signer has
/// the private key of its public key, has the handle, has the job's key, and means this very call.
class Meeting {
 public:
  /// The end that calls: the challenge is what it has just heard. kInvalidArgument: what was heard
  /// is no challenge, or another process's than the handle is of.
  static Result<Meeting> ofCaller(const Identity& own, const Handle& to, std::string challenge);
  /// The end that was called: the challenge is what it has said. kInvalidArgument: the caller's
  /// public key is none.
  static Result<Meeting> ofListener(const Identity& own, const auth::JobKey& token,
                                    const transport::tcp::Endpoint& rendezvous,
                                    std::string challenge, const auth::PublicKey& caller);

  /// The caller's greeting with its proof behind it; then the answer to it without the other end's
  /// proof. Nothing: it is not proved.
  std::string signGreeting(std::string greeting);
  std::optional<std::string> openAnswer(std::string_view frame);
  /// The same at the end that was called, the other way round.
  std::optional<std::string> openGreeting(std::string_view frame);
  std::string signAnswer(std::string answer);

  /// The public key of the end that was called.
  const auth::PublicKey& calleesKey() const { return callee_; }

  /// Behind the greeting and the answer.
  static constexpr std::size_t kProofBytes = sizeof(auth::Tag);

 private:
  struct Keys {
    auth::PublicKey caller, callee;
  };

  Meeting(const auth::JobKey& callers, const auth::JobKey& callees, const Keys& keys,
          std::string challenge)
      : callers_(callers),
        callees_(callees),
        callee_(keys.callee),
        challenge_(std::move(challenge)) {}
  static Result<Meeting> make(const Identity& own, const auth::PublicKey& other, const Keys& keys,
                              const auth::JobKey& token, const transport::tcp::Endpoint& rendezvous,
                              std::string challenge);

  auth::Authenticator callers_, callees_;  // a key for what each end signs
  auth::PublicKey callee_;
  std::string challenge_, greeting_;
};

/// The key that the fabric of two processes has: it follows from the X25519 secret of the two and
/// from the job's key, and is the same however often, and in which direction, they have met. `side`
/// of this process: 0 or 1. kInvalidArgument: the other one's public key is none.
Result<auth::JobKey> agreeOnPairKey(const Identity& own, const auth::PublicKey& other, int side,
                                    std::uint64_t incarnation, std::uint64_t otherIncarnation);

}  // namespace faultline::nccl
