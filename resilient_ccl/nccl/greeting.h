#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/auth/job_key.h"
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

/// What a process that connects says to the one that listens.
struct Greeting {
  auth::JobKey proof;  ///< the token of the handle that it was given
  ProcessId process;
  auth::JobKey token;  ///< its own
  std::uint64_t incarnation = 0;
  std::uint64_t listener = 0;
  std::uint32_t connection = 0;
  Terms terms;
  std::string name;  ///< "host:pid", for messages
  fabric::ProcessAddress address;

  std::string serialize() const;
  static Result<Greeting> parse(const std::string& bytes);
};

/// And what it hears.
struct Answer {
  std::string refusal;  ///< empty: welcome
  std::uint64_t incarnation = 0;
  fabric::ProcessAddress address{};

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
  /// Takes in what has come: the next frame, when all of it has. kUnavailable: the other end has
  /// closed.
  Result<std::optional<std::string>> receive();

 private:
  UniqueFd socket_;
  std::string out_;
  std::string in_;
};

}  // namespace faultline::nccl
