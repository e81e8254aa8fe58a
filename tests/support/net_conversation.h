#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/support/net_driver.h"

namespace faultline::test {

/// What two processes say to each other through the NCCL plugin, as NCCL's proxies would: streams
/// of messages of different lengths, eight receives under way on each, every byte checked.
class Conversation {
 public:
  /// `bytes`: the longest message. `group`: messages of a receive, each with its tag.
  Conversation(NetDriver& net, std::size_t bytes, int group)
      : net_(net), bytes_(bytes), group_(group) {}

  /// From now on that connection is one of its streams.
  void add(void* connection, bool sends);
  /// One round over all streams. At the end of each are messages of one byte, one for every receive
  /// that waits.
  NetResult step(bool ending, bool receiving);
  /// Whether all streams have come to their end.
  bool over() const { return over(false) && sent(); }
  /// The same of what this side sends.
  bool sent() const { return over(true); }
  /// Closes all connections, whatever is under way.
  void close();

  std::uint64_t messages() const;       ///< received
  std::uint64_t leastReceived() const;  ///< of a stream, groups counted once
  Duration longestPause() const;        ///< between two that were received on a stream
  std::uint64_t wrong() const { return wrong_; }

 private:
  struct Slot {
    void* request = nullptr;
    std::vector<std::byte> data;
  };
  struct Stream {
    void* connection = nullptr;
    bool sends = false;
    std::deque<Slot> open{};
    std::uint64_t posted = 0;  // messages; of a stream that sends
    std::uint64_t done = 0;    // messages, or groups of them
    TimePoint latest{};
    Duration longestPause{};
    std::uint64_t lastFrom = 0;  // its messages from this one on are of one byte; 0: not known yet
    int last = 0;  // messages, or groups of them, of one byte: as many as are under way at the end
  };

  bool over(bool sends) const;
  NetResult send(Stream& stream, bool ending);
  NetResult receive(Stream& stream);
  void check(std::uint64_t message, const std::byte* data, int size);
  /// More than is sent.
  std::size_t capacity() const { return bytes_ + 1; }

  NetDriver& net_;
  const std::size_t bytes_;
  const int group_;
  std::vector<Stream> streams_;
  std::uint64_t wrong_ = 0;
};

/// Where two sides meet, and how.
struct Meeting {
  std::filesystem::path folder;
  std::string name;  ///< of the files with their handles, before the number of the side
  int side = 0;
  int connections = 1;  ///< in each direction
  int first = 0;        ///< device of the first one; of the next ones those behind it
};

/// Both sides listen, for what the other one sends, and both connect, at the same time. Nothing
/// when the other one does not come within 20 s, or it `stops` before that. What was made by then
/// belongs to the conversation.
std::optional<NetResult> meet(NetDriver& net, const Meeting& its, Conversation& conversation,
                              const std::function<bool()>& stops);

}  // namespace faultline::test
