#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/authenticator.h"

namespace faultline::fabric {

/// What the connecting end of a new rail connection says of it.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x48434c46;  // "FLCH"

  std::uint32_t magic = kMagic;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t rail = 0;
  std::uint32_t epoch = 0;
  std::uint32_t attempt = 0;
};
static_assert(sizeof(Hello) == 24);

/// The hello as it is sent.
struct SignedHello {
  Hello hello;
  auth::Tag tag{};  ///< of the accepting end's challenge and the hello
};
static_assert(sizeof(SignedHello) == sizeof(Hello) + sizeof(auth::Tag));

/// A connection on its way to become a rail, or one to the rendezvous. Both ends prove that they
/// have the job's key, and for this very connection: the accepting end begins with a challenge, the
/// connecting end signs its hello together with it, and the accepting end, when it takes the
/// connection, signs the same in its own words. A recorded hello fits no other challenge.
class Handshake {
 public:
  /// The connecting end: `socket` is connecting. From its hello on the other end may take the
  /// connection, and has `forAnswer` to say so, however late the hello was: an end that takes it
  /// and finds it closed has lost a rail.
  static Handshake connecting(UniqueFd socket, const Hello& hello, TimePoint deadline,
                              Duration forAnswer = {});
  /// The accepting end.
  static Handshake accepted(UniqueFd socket, TimePoint deadline);

  int fd() const { return socket_.get(); }
  const Hello& hello() const { return message_.hello; }
  TimePoint deadline() const { return deadline_; }
  /// What to wait for: writable while the connection is being made, else readable.
  bool wantsWritable() const { return step_ == Step::kConnect; }

  /// Whether a part of what is to be read has come, and no more.
  bool halfSaid() const { return read_ > 0; }

  /// Goes on as far as the socket allows. True: done (for the accepting end: a hello of the job is
  /// there and `accept` decides). An error: the connection is of no use; kInvalidArgument: the
  /// other end does not have the key, or repeats what somebody else has said.
  Result<bool> advance(auth::Authenticator& authenticator);
  /// Accepting end: answers and gives the socket up as a rail. kUnavailable: the other end has
  /// given the attempt up.
  Result<UniqueFd> accept(auth::Authenticator& authenticator);
  /// Connecting end, done: the socket as a rail.
  UniqueFd release() { return std::move(socket_); }

 private:
  enum class Step : std::uint8_t {
    kConnect,        // connecting end: until the connection is there
    kReadChallenge,  // connecting end
    kReadAnswer,     // connecting end
    kChallenge,      // accepting end: to be sent
    kReadHello,      // accepting end
    kDone,
  };

  Handshake() = default;
  Result<bool> read(std::span<std::byte> target);

  UniqueFd socket_;
  Step step_ = Step::kConnect;
  auth::Nonce challenge_{};
  SignedHello message_;
  auth::Tag answer_{};
  std::size_t read_ = 0;  // of what this step reads
  TimePoint deadline_;
  Duration forAnswer_{};
};

}  // namespace faultline::fabric
