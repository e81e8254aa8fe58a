#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::fabric {

/// First bytes on a new rail connection, from the connecting end; the accepting end answers with
/// the same bytes when it takes the connection, and closes when it does not.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x48434c46;  // "FLCH"

  std::uint32_t magic = kMagic;
  std::uint32_t source = 0;
  std::uint64_t jobKey = 0;
  std::uint32_t destination = 0;
  std::uint32_t rail = 0;
  std::uint32_t epoch = 0;
  std::uint32_t attempt = 0;

  friend bool operator==(const Hello&, const Hello&) = default;
};
static_assert(sizeof(Hello) == 32);

/// A connection on its way to become a rail.
class Handshake {
 public:
  /// The connecting end: `socket` is connecting; sends `hello` and waits for it to come back.
  static Handshake connecting(UniqueFd socket, const Hello& hello, TimePoint deadline);
  /// The accepting end: waits for a hello.
  static Handshake accepted(UniqueFd socket, TimePoint deadline);

  int fd() const { return socket_.get(); }
  bool isConnecting() const { return connecting_; }
  const Hello& hello() const { return hello_; }
  TimePoint deadline() const { return deadline_; }
  /// What to wait for: writable while the connection is being made, else readable.
  bool wantsWritable() const { return connecting_ && !sent_; }

  /// Goes on as far as the socket allows. True: done (for the accepting end: the hello is there and
  /// `accept` decides). An error: the connection is of no use.
  Result<bool> advance();
  /// Accepting end: answers and gives the socket up as a rail.
  Result<UniqueFd> accept();
  /// Connecting end, done: the socket as a rail.
  UniqueFd release() { return std::move(socket_); }

 private:
  Handshake() = default;

  UniqueFd socket_;
  bool connecting_ = false;
  bool sent_ = false;
  Hello hello_;
  Hello answer_;
  std::size_t read_ = 0;
  TimePoint deadline_;
};

}  // namespace faultline::fabric
