#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::comm {

/// In place of a rail in the hello of a connection that becomes none.
inline constexpr std::uint32_t kNoRail = 0xffffffff;
/// Who has been connected to gets this long to say that it is of the job, and the other way round.
inline constexpr Duration kGreetingTime = 2s;

/// A connection over the management network on which two processes of a job say a few words to each
/// other. Both have proved that they have the job's key (fabric::Handshake), and each word is
/// signed together with its sender, its number and the connection's hello. Blocking, with
/// deadlines; not thread-safe.
class SignedLine {
 public:
  SignedLine() = default;
  /// The accepting end: the handshake is done.
  SignedLine(UniqueFd socket, const fabric::Hello& hello)
      : socket_(std::move(socket)), hello_(hello) {}
  /// Connects from `address` to `to`; `hello` needs source and destination only.
  /// kDeadlineExceeded: who listens there has not answered; kUnavailable: nobody listens, or the
  /// connection has ended.
  static Result<SignedLine> connect(auth::Authenticator& authenticator, std::uint32_t address,
                                    const transport::tcp::Endpoint& to, fabric::Hello hello,
                                    TimePoint deadline);

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }

  /// At most kLargestWord bytes. `from`: who says it.
  Status send(auth::Authenticator& authenticator, int from, const std::string& word,
              TimePoint deadline);
  /// kInvalidArgument when it is not `from` who says it.
  Result<std::string> receive(auth::Authenticator& authenticator, int from, TimePoint deadline);
  static constexpr std::uint32_t kLargestWord = 1 << 20;

 private:
  UniqueFd socket_;
  fabric::Hello hello_{};
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace faultline::comm
