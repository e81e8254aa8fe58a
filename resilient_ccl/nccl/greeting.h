#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/auth/key_agreement.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/nccl/handle.h"

namespace faultline::nccl {

/// What two processes must have in common.
struct Terms {
  std::uint32_t rails = 0;
  std::uint32_t chunkBytes = 0;
  std::uint32_t policy = 0;
  std::uint32_t smallMessage = 0;

  friend bool operator==(const Terms&, const Terms&) = default;
};

/// What a process that connects says to the one that listens, with its proof behind it (`Meeting`).
struct Greeting {
  auth::PublicKey key{};  ///< its own
  auth::Nonce nonce{};    ///< no two greetings are equal
  std::uint64_t incarnation = 0;
  std::uint64_t listener = 0;
  std::uint32_t connection = 0;
  Terms terms;
  std::string name;  ///< "host:pid", for messages
  fabric::ProcessAddress address;

  ProcessId process() const { return ProcessId::of(key); }

  std::string serialize() const;
  static Result<Greeting> parse(const std::string& bytes);
  /// The public key of what may be a greeting: what it takes to see whether the rest is proved.
  static Result<auth::PublicKey> keyOf(std::string_view bytes);
};

/// And what it hears.
struct Answer {
  std::string refusal;  ///< empty: welcome
  std::uint64_t incarnation = 0;
  fabric::ProcessAddress address{};
  auth::PublicKey key{};  ///< of who answers, from its challenge: not said once more

  std::string serialize() const;
  static Result<Answer> parse(const std::string& bytes);
};

/// One side of a conversation of one frame in each direction over a non-blocking stream socket: a
/// length of four bytes, and so many bytes. Never waits.
class Frames {
 public:
  static constexpr std::uint32_t kLongest = 8192;

  explicit Frames(UniqueFd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }

  void send(std::string_view bytes);
  /// Sends what can be sent now. Whether all is.
  Result<bool> flush();
  /// Whether a part of a frame has come, and no more.
  bool begun() const { return !in_.empty(); }
  /// Takes in what has come: the next frame, when all of it has. kUnavailable: the other end has
  /// closed.
  Result<std::optional<std::string>> receive();

 private:
  UniqueFd socket_;
  std::string out_;
  std::string in_;
};

}  // namespace faultline::nccl
