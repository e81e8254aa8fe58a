#pragma once

#include <cstdint>
#include <deque>

#include "base/units.h"
#include "resilient_ccl/reduction/reduce.h"

namespace faultline::comm {

/// Who is told of reductions that are done.
class ReducerClient {
 public:
  virtual ~ReducerClient() = default;
  virtual void reduced(std::uint64_t token) = 0;
};

/// Carries out steps of reductions, in the order in which they are submitted, and says when each is
/// done. Asynchronous, so that a GPU's stream or another thread fits behind it. Not thread-safe.
class Reducer {
 public:
  virtual ~Reducer() = default;
  /// Takes a step; its memory belongs to the reducer until `token` has been called back. Never
  /// blocks, never calls back.
  virtual void submit(const reduction::Reduction& step, std::uint64_t token) = 0;
  /// Calls back for what is done; what is submitted meanwhile may be done too.
  virtual void poll(ReducerClient& client) = 0;
  /// Steps that have not been called back.
  virtual bool busy() const = 0;
  /// Forgets all of them: when it returns, none touches its memory any more.
  virtual void drop() = 0;
};

/// On the thread that polls, some of it each time: who polls has a network to look after.
class PollingReducer final : public Reducer {
 public:
  /// 256 KiB take about 30 us.
  static constexpr Bytes kBytesPerPoll = 256 << 10;

  void submit(const reduction::Reduction& step, std::uint64_t token) override {
    queue_.push_back({step, token});
  }

  void poll(ReducerClient& client) override {
    for (Bytes done = 0; !queue_.empty() && done < kBytesPerPoll;) {
      const Entry entry = queue_.front();
      queue_.pop_front();
      reduction::reduce(entry.step);
      done += entry.step.count * reduction::sizeOf(entry.step.type);
      client.reduced(entry.token);
    }
  }

  bool busy() const override { return !queue_.empty(); }
  void drop() override { queue_.clear(); }

 private:
  struct Entry {
    reduction::Reduction step;
    std::uint64_t token;
  };
  std::deque<Entry> queue_;
};

}  // namespace faultline::comm
