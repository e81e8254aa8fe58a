#pragma once

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::launch {

/// JSON objects between the controller and one rank, over a connected pair of stream sockets.
///
/// On the wire a message is its length (32 bits, little endian) and the object as compact JSON. A
/// stream and not a packet socket, because a result with many iterations is larger than a packet
/// may be. Not thread-safe.
class MessageChannel {
 public:
  /// No message is larger; a longer one that arrives is an error of the other end.
  static constexpr std::size_t kLargestMessage = 64 * 1024 * 1024;

  /// How long send() waits for an other end that does not read.
  static constexpr Duration kSendTimeout = 10s;

  static Result<std::pair<MessageChannel, MessageChannel>> makePair();

  /// Takes over one end, e.g. the descriptor that a rank inherits.
  explicit MessageChannel(UniqueFd fd);
  MessageChannel(MessageChannel&&) = default;
  MessageChannel& operator=(MessageChannel&&) = default;

  /// Writes one message; waits while the other end's buffer is full. kUnavailable when the other
  /// end is gone, kDeadlineExceeded when it does not read, kInvalidArgument when too large. After
  /// an error other than the last one the channel is of no more use.
  Status send(const nlohmann::json& message);

  /// The next message, if one is complete; never waits. kUnavailable when the other end is gone and
  /// everything it sent has been returned, kIo when what came is not a message.
  Result<std::optional<nlohmann::json>> receive();

  /// The next message, waited for at most `budget`; kDeadlineExceeded when none comes.
  Result<nlohmann::json> receiveWithin(Duration budget);

  /// Readable when receive() may return something new. Call receive() until it returns nothing:
  /// several messages may have come at once.
  int fd() const { return fd_.get(); }
  UniqueFd release() { return std::move(fd_); }

 private:
  Status readAvailable();
  Status parseComplete();

  UniqueFd fd_;
  std::string received_;  ///< not yet parsed
  std::deque<nlohmann::json> complete_;
  bool closed_ = false;
};

}  // namespace faultline::launch
