#include "injector/verbs/shim/readers.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using injector::verbs::shim::Readers;

/// Threads that are outside at no time: each enters again before it leaves.
class NeverOutside {
 public:
  NeverOutside(Readers& readers, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([&] {
        std::optional<Readers::Guard> one, other;
        one.emplace(readers);
        ++inside_;
        while (!stop_) {
          other.emplace(readers);
          one.reset();
          one.emplace(readers);
          other.reset();
        }
      });
    }
    while (inside_ < count) ::poll(nullptr, 0, 1);
  }
  ~NeverOutside() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> inside_{0};
  std::vector<std::thread> threads_;
};

TEST(ReadersTest, WaitingEndsWhileManyThreadsComeAndGo) {
  Readers readers;
  constexpr int kMoreThanLines = 40;
  auto busy = std::make_unique<NeverOutside>(readers, kMoreThanLines);
  std::atomic<int> waited{0};
  std::thread waiter([&] {
    for (int i = 0; i < 3; ++i, ++waited) readers.wait();
  });
  EXPECT_TRUE(becomes([&] { return waited == 3; }));
  busy.reset();
  waiter.join();
}

TEST(ReadersTest, WaitingLastsAsLongAsOneIsInsideOnEitherSide) {
  Readers readers;
  for (int turn = 0; turn < 3; ++turn) {
    auto inside = std::make_unique<Readers::Guard>(readers);
    std::atomic<bool> waited{false};
    std::thread waiter([&] {
      readers.wait();
      waited = true;
    });
    ::poll(nullptr, 0, 20);
    EXPECT_FALSE(waited) << turn;
    inside.reset();
    EXPECT_TRUE(becomes([&] { return waited.load(); })) << turn;
    waiter.join();
  }
}

TEST(ReadersTest, NobodyFindsWhatWasUnlinkedAndWaitedFor) {
  struct Thing {
    std::atomic<bool> there{true};
  };
  Readers readers;
  std::array<Thing, 2> things;
  std::atomic<Thing*> linked{&things[0]};
  std::atomic<bool> stop{false};
  std::atomic<long> looks{0}, bad{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const Readers::Guard guard(readers);
        const Thing* const thing = linked.load();
        for (int again = 0; again < 20; ++again) bad += !thing->there;
        ++looks;
      }
    });
  }
  const TimePoint end = now() + 300ms;
  std::size_t turns = 0;
  for (; now() < end || turns < 10; ++turns) {
    Thing& next = things[(turns + 1) % 2];
    next.there = true;
    Thing& old = *linked.exchange(&next);
    readers.wait();
    old.there = false;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(looks, 0);
  EXPECT_EQ(bad, 0) << "of " << looks << ", in " << turns << " turns";
}

}  // namespace
}  // namespace faultline::testing
