#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::nccl {

/// Receives that are posted before NCCL asks for their messages, of connections that have had short
/// ones only for a while, into memory of their own: a short message then waits for no grant, and
/// grants go many at a time. NCCL's receive takes what has come, or waits for what comes. A longer
/// message is told not to fit, and waits for NCCL's receive, as without. Which they are, and what
/// is to be done next; whose fabric it is does it. Pure.
class EagerReceives {
 public:
  /// So many short messages in a row, and receives are posted ahead of NCCL's...
  static constexpr int kStreak = 8;
  /// ... so many: twice as many as grants that go together (channel::Link).
  static constexpr std::uint32_t kAhead = 16;

  /// `longest`: of a message that is short; 0: none is, and nothing is posted.
  explicit EagerReceives(Bytes longest) : longest_(longest) {}

  /// What NCCL waits for.
  struct Wanted {
    std::uint64_t token = 0;  ///< of its receive
    std::byte* data = nullptr;
    Bytes capacity = 0;
  };
  /// What has come for it.
  struct Arrived {
    Wanted wanted;
    Bytes length = 0;
    Status failure;  ///< it is longer than NCCL's receive, or its stream was closed
  };
  /// A receive to be posted.
  struct Post {
    std::uint32_t number = 0;  ///< its name here
    channel::MessageKey key;
    std::byte* memory = nullptr;
    Bytes capacity = 0;
  };

  /// NCCL asks for the message `key`. `kNone`: nothing was posted ahead for it, or what was is
  /// gone: a receive must be posted, as usual. `kArrived`: it is done, `arrived` has what came.
  /// `kWaits`: it will be; the fabric must be told that `slot` is waited for.
  enum class Claim { kNone, kArrived, kWaits };
  struct Claimed {
    Claim claim = Claim::kNone;
    std::uint32_t slot = 0;
    Arrived arrived{};
  };
  Claimed claim(const channel::MessageKey& key, const Wanted& wanted);

  /// NCCL has got a message of this stream, alone (not one of a group).
  void got(const channel::StreamKey& stream, Bytes length);
  /// It has asked for `asked` messages of the stream by now: the next receive that is to be posted
  /// ahead of them, until there are enough.
  std::optional<Post> next(const channel::StreamKey& stream, std::uint32_t asked);
  /// The fabric's name for one that was posted.
  void posted(std::uint32_t number, std::uint32_t slot) { receives_[number].slot = slot; }

  /// It has got a message. What NCCL waits for, if it does.
  std::optional<Arrived> arrived(std::uint32_t number, Bytes length);
  /// A message does not fit, and waits for another receive: `wanted`, to be posted with `key`, if
  /// NCCL waits for it.
  struct Refused {
    channel::MessageKey key;
    Wanted wanted;
  };
  std::optional<Refused> refused(std::uint32_t number);
  /// Nothing comes any more. What NCCL waits for, if it does.
  std::optional<Arrived> ended(std::uint32_t number, const Status& why);

  /// The streams of a connection are closed: nobody asks for what they have got.
  void forget(std::uint32_t communicator);

  /// Messages that came before NCCL asked for them, or without a grant of their own.
  std::uint64_t taken() const { return taken_; }
  /// Receives that are posted, or have got what nobody has taken.
  std::size_t open() const { return receives_.size() - free_.size(); }

 private:
  enum class State { kFree, kPosted, kArrived, kRefused };
  struct Receive {
    State state = State::kFree;
    channel::MessageKey key;
    std::uint32_t slot = 0;
    std::unique_ptr<std::byte[]> memory{};
    Bytes length = 0;
    std::optional<Wanted> wanted{};
    bool orphan = false;  // its connection is closed
  };
  struct Stream {
    int streak = 0;                     // of short messages
    std::deque<std::uint32_t> ahead{};  // receives that NCCL has not asked for, in their order
  };

  Arrived take(Receive& receive);
  void free(std::uint32_t number);

  const Bytes longest_;
  std::deque<Receive> receives_;  // by number
  std::vector<std::uint32_t> free_;
  std::map<channel::StreamKey, Stream> streams_;  // that have got a message
  std::uint64_t taken_ = 0;
};

}  // namespace faultline::nccl
