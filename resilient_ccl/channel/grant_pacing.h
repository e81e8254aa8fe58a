#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::channel {

/// With small messages: which grants wait for others, to go in one datagram, and how long. While
/// the peer has kInHand of a stream left, no longer than an acknowledgement. While it has fewer,
/// and needs the next after a round trip, no longer than it takes to post the receives of one
/// operation; but where messages are of one chunk, it has kInHandOfShort for longer than that.
/// Pure.
class GrantPacing {
 public:
  /// So many go together.
  static constexpr std::size_t kTogether = 8;
  static constexpr int kInHand = 4;
  /// Of a stream whose messages are of one chunk.
  static constexpr int kInHandOfShort = 2;
  static constexpr Duration kNext = 30us;
  static constexpr Duration kNextOfShort = 200us;

  /// One more, which waits for `patience` at most. Whether all that wait must go now.
  bool add(const GrantRecord& grant, Duration patience, TimePoint now) {
    const auto place = std::ranges::upper_bound(
        waiting_, streamOf(grant.key), {}, [](const GrantRecord& it) { return streamOf(it.key); });
    waiting_.insert(place, grant);
    if (refused_.erase(grant.key) > 0) return true;
    const Stream& stream = streams_[streamOf(grant.key)];
    if (stream.inHand == 0 || waiting_.size() >= kTogether) return true;
    due_ = std::min(due_, now + wait(stream, patience));
    return false;
  }
  /// Those that wait, those of a stream beside each other; the peer has them from now on.
  std::vector<GrantRecord> take() {
    due_ = TimePoint::max();
    for (const GrantRecord& grant : waiting_) ++streams_[streamOf(grant.key)].inHand;
    return std::exchange(waiting_, {});
  }
  /// The peer has used a grant of this stream, for a message of one chunk or a longer one, or it
  /// was withdrawn (nothing). Whether those that wait must go.
  bool taken(const StreamKey& key, std::optional<bool> byShort) {
    const auto found = streams_.find(key);
    if (found == streams_.end()) return false;
    Stream& stream = found->second;
    stream.ofShort = byShort.value_or(stream.ofShort);
    return --stream.inHand < enough(stream) && !waiting_.empty();
  }
  /// A message did not fit its grant: its sender waits for another one.
  void refused(const MessageKey& key) { refused_.insert(key); }
  void forget(const StreamKey& stream) {
    std::erase_if(waiting_, [&](const GrantRecord& it) { return streamOf(it.key) == stream; });
    std::erase_if(refused_, [&](const MessageKey& key) { return streamOf(key) == stream; });
    streams_.erase(stream);
    if (waiting_.empty()) due_ = TimePoint::max();
  }

  bool waits() const { return !waiting_.empty(); }
  /// When those that wait must go.
  TimePoint due() const { return due_; }

 private:
  struct Stream {
    int inHand = 0;        // granted, and not begun to fill
    bool ofShort = false;  // the last message was of one chunk
  };

  static int enough(const Stream& stream) { return stream.ofShort ? kInHandOfShort : kInHand; }
  static Duration wait(const Stream& stream, Duration patience) {
    if (stream.inHand >= kInHand) return patience;
    return stream.inHand >= enough(stream) ? kNextOfShort : kNext;
  }

  std::vector<GrantRecord> waiting_;  // by streams
  TimePoint due_ = TimePoint::max();
  std::map<StreamKey, Stream> streams_;
  std::set<MessageKey> refused_;  // did not fit, and have no other grant yet
};

}  // namespace faultline::channel
