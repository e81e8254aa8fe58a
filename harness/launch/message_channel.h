#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::launch {

/// JSON objects between two processes, over a connected pair of stream sockets, or two streams.
/// Descriptors may come with a message (unix(7), SCM_RIGHTS), where both are of one machine.
///
/// On the wire a message is its length (32 bits, little endian) and the object as compact JSON. A
/// stream and not a packet socket, because a result with many iterations is larger than a packet
/// may be. Not thread-safe.
class MessageChannel {
 public:
  /// No message is larger; a longer one that arrives is an error of the other end.
  static constexpr std::size_t kLargestMessage = 64 * 1024 * 1024;

  static constexpr std::size_t kMostDescriptors = 4;

  /// How long send() waits for an other end that does not read.
  static constexpr Duration kSendTimeout = 10s;

  static Result<std::pair<MessageChannel, MessageChannel>> makePair();

  /// Takes over one end, e.g. the descriptor that a rank inherits.
  explicit MessageChannel(UniqueFd fd);
  /// Over two streams of any kind, pipes say, one for each direction; no descriptors come with
  /// messages. Whether they block is not changed: others may have them open, too.
  MessageChannel(UniqueFd in, UniqueFd out);
  MessageChannel(MessageChannel&&) = default;
  MessageChannel& operator=(MessageChannel&&) = default;

  /// The other end is a stranger: no message that comes is larger, and none brings descriptors,
  /// which is an error of that end, too.
  void distrust(std::size_t largest) {
    largest_ = largest;
    descriptors_wanted_ = false;
  }

  /// How a message is written, without its length.
  static std::string textOf(const nlohmann::json& message);

  /// Writes one message; waits while the other end's buffer is full. kUnavailable when the other
  /// end is gone, kDeadlineExceeded when it does not read, kInvalidArgument when too large. After
  /// an error other than the last one the channel is of no more use. `descriptors` are borrowed:
  /// copies of at most kMostDescriptors go with it. `giveUp` is asked while it waits.
  Status send(const nlohmann::json& message, std::span<const int> descriptors = {},
              const GiveUp& giveUp = {});

  /// The next message, if one is complete; never waits. kUnavailable when the other end is gone and
  /// everything it sent has been returned, kIo when what came is not a message.
  Result<std::optional<nlohmann::json>> receive();

  /// The next descriptor that has come with a message which receive() has returned; nothing: there
  /// is none. Whoever gets a message takes those that come with it.
  std::optional<UniqueFd> takeDescriptor();

  /// The next message, waited for at most `budget`; kDeadlineExceeded when none comes.
  Result<nlohmann::json> receiveWithin(Duration budget);

  /// Readable when receive() may return something new. Call receive() until it returns nothing:
  /// several messages may have come at once.
  int fd() const { return fd_.get(); }
  UniqueFd release() { return std::move(fd_); }

 private:
  /// As send(2) and recv(2) that do not wait; -1 with errno.
  ssize_t sendPart(std::string_view bytes, std::span<const int> descriptors);
  ssize_t receivePart(char* into, std::size_t size);
  Status readAvailable();
  Status parseComplete();

  int outFd() const { return out_ ? out_.get() : fd_.get(); }

  UniqueFd fd_;
  UniqueFd out_;          ///< of two streams: the one that is written
  std::string received_;  ///< not yet parsed
  std::deque<nlohmann::json> complete_;
  std::deque<UniqueFd> descriptors_;  ///< not yet taken
  std::size_t largest_ = kLargestMessage;
  bool descriptors_wanted_ = true;
  bool closed_ = false;
};

}  // namespace faultline::launch
