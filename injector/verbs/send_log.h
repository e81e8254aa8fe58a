#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faultline::injector::verbs {

/// What one queue pair has sent and not completed, so that a send completion, which does not tell
/// its bytes, can be paced. Signalled work requests have an entry each; bytes of others belong to
/// the next one. Allocates only when it is made. Not thread-safe. Pure.
class SendLog {
 public:
  struct Entry {
    std::uint64_t workRequest = 0;  ///< wr_id
    std::uint64_t bytes = 0;
    TimePoint due{};
  };

  explicit SendLog(std::size_t capacity) : entries_(capacity) {}

  /// Of a request that gives no completion of its own.
  void addUnsignalled(std::uint64_t bytes) { unsignalled_ += bytes; }

  /// When full, the oldest is forgotten: its completion then counts as the next one's.
  void add(std::uint64_t work_request, std::uint64_t bytes, TimePoint due) {
    if (count_ == entries_.size()) removeOldest();
    entries_[(head_ + count_++) % entries_.size()] = {work_request, bytes + unsignalled_, due};
    unsignalled_ = 0;
  }

  /// The latest `count` entries were not accepted after all: these bytes, those of requests without
  /// an entry among them. What was accepted before them and belongs to the next entry still does.
  void takeBack(std::size_t count, std::uint64_t bytes) {
    for (; count > 0 && count_ > 0; --count) {
      unsignalled_ += entries_[(head_ + --count_) % entries_.size()].bytes;
    }
    unsignalled_ -= std::min(bytes, unsignalled_);
  }

  /// The entry that this completion ends, and forgets it with all before it. None when it was
  /// posted before the log began.
  std::optional<Entry> complete(std::uint64_t work_request) {
    for (std::size_t i = 0; i < count_; ++i) {
      Entry entry = entries_[(head_ + i) % entries_.size()];
      if (entry.workRequest != work_request) continue;
      for (std::size_t skipped = 0; skipped < i; ++skipped) {
        entry.bytes += entries_[(head_ + skipped) % entries_.size()].bytes;
      }
      head_ = (head_ + i + 1) % entries_.size();
      count_ -= i + 1;
      return entry;
    }
    return std::nullopt;
  }

  void clear() {
    head_ = count_ = 0;
    unsignalled_ = 0;
  }

  std::size_t size() const { return count_; }

 private:
  void removeOldest() {
    head_ = (head_ + 1) % entries_.size();
    --count_;
  }

  std::vector<Entry> entries_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::uint64_t unsignalled_ = 0;
};

}  // namespace faultline::injector::verbs
