#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::channel {

/// With small messages: which grants wait for others, to go in one datagram, and how long. While
/// the peer has kInHand of a stream left, no longer than an acknowledgement; while it has one, no
/// longer than it takes to post the receives of one operation, as it needs the next after a round
/// trip. Pure.
class GrantPacing {
 public:
  /// So many go together.
  static constexpr std::size_t kTogether = 8;
  static constexpr Duration kNext = 30us;
  static constexpr int kInHand = 4;
  /// Of a stream of short messages, each of which takes about a round trip.
  static constexpr int kInHandOfShort = 2;

  /// One more, which waits for `patience` at most. Whether all that wait must go now.
  bool add(const GrantRecord& grant, Duration patience, TimePoint now) {
    waiting_.push_back(grant);
    if (refused_.erase(grant.key) > 0) return true;
    const int left = inHand_[streamOf(grant.key)];
    if (left == 0 || waiting_.size() >= kTogether) return true;
    due_ = std::min(due_, now + (left < kInHand ? kNext : patience));
    return false;
  }
  /// Those that wait; the peer has them from now on.
  std::vector<GrantRecord> take() {
    due_ = TimePoint::max();
    for (const GrantRecord& grant : waiting_) ++inHand_[streamOf(grant.key)];
    return std::exchange(waiting_, {});
  }
  /// The peer has used a grant of this stream, or it was withdrawn. Whether those that wait must
  /// go.
  bool taken(const StreamKey& stream, bool byShort) {
    const auto left = inHand_.find(stream);
    if (left == inHand_.end()) return false;
    return --left->second < (byShort ? kInHandOfShort : kInHand) && !waiting_.empty();
  }
  /// A message did not fit its grant: its sender waits for another one.
  void refused(const MessageKey& key) { refused_.insert(key); }
  void forget(const StreamKey& stream) {
    std::erase_if(waiting_, [&](const GrantRecord& it) { return streamOf(it.key) == stream; });
    std::erase_if(refused_, [&](const MessageKey& key) { return streamOf(key) == stream; });
    inHand_.erase(stream);
    if (waiting_.empty()) due_ = TimePoint::max();
  }

  bool waits() const { return !waiting_.empty(); }
  /// When those that wait must go.
  TimePoint due() const { return due_; }

 private:
  std::vector<GrantRecord> waiting_;
  TimePoint due_ = TimePoint::max();
  std::map<StreamKey, int> inHand_;  // granted, and not begun to fill
  std::set<MessageKey> refused_;     // did not fit, and have no other grant yet
};

}  // namespace faultline::channel
