#include <algorithm>
#include <array>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/unit/nccl_plugin/conformance.h"

namespace faultline::test {
namespace {

/// Requests: sends, receives, and what they move.
class MessageTest : public ConformanceTest {};

TEST_P(MessageTest, MessagesOfAllSizesArriveWhole) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  for (const std::size_t size : {0UL, 1UL, 8192UL, 65536UL, 65537UL, 3000001UL}) {
    std::vector<std::byte> from(size), to(size + 1, std::byte{99});
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 13 + size);
    void* const got = receive(ends.receive, to.data(), size);
    void* const sent = send(ends.send, from.data(), size);
    ASSERT_NE(got, nullptr);
    ASSERT_NE(sent, nullptr);
    EXPECT_EQ(await(sent), static_cast<int>(size));
    EXPECT_EQ(await(got), static_cast<int>(size));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << size;
    EXPECT_EQ(to.back(), std::byte{99});
  }
  close(ends);
}

TEST_P(MessageTest, AReceiveMayBeLargerThanItsMessage) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::byte> from(1000, std::byte{7}), to(100000, std::byte{1});
  void* const got = receive(ends.receive, to.data(), to.size());
  void* const sent = send(ends.send, from.data(), from.size());
  EXPECT_EQ(await(sent), 1000);
  EXPECT_EQ(await(got), 1000);
  EXPECT_EQ(std::ranges::count(to, std::byte{7}), 1000);
  close(ends);
}

TEST_P(MessageTest, AnOptionalCompletionComesLikeOneThatIsWanted) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  for (const std::size_t size : {16UL, 8192UL, 200000UL}) {
    for (const Completion completion : {Completion::kOptional, Completion::kWanted}) {
      std::vector<std::byte> from(size, std::byte{7}), to(size, std::byte{1});
      void* const got = receive(ends.receive, to.data(), size, kTag, completion);
      ASSERT_NE(got, nullptr);
      ASSERT_NE(got, reinterpret_cast<void*>(1));
      EXPECT_EQ(await(send(ends.send, from.data(), size)), static_cast<int>(size));
      EXPECT_EQ(await(got), static_cast<int>(size));
      EXPECT_EQ(to, from);
    }
  }
  close(ends);
}

TEST_P(MessageTest, AMessageLargerThanItsReceiveFailsAlone) {
  const Ends good = connectHere(net);
  ASSERT_NE(good.receive, nullptr);
  for (const std::size_t size : {1000UL, 200000UL}) {
    const Ends bad = connectHere(net);
    ASSERT_NE(bad.receive, nullptr);
    std::vector<std::byte> from(size, std::byte{7}), to(size, std::byte{1});
    void* const got = receive(bad.receive, to.data(), 10);
    void* const sent = send(bad.send, from.data(), from.size());
    EXPECT_EQ(await(sent), -2);
    EXPECT_EQ(await(got), -2);
    EXPECT_EQ(std::ranges::count(to, std::byte{7}), 0);
    void* const received = receive(good.receive, to.data(), to.size());
    EXPECT_EQ(await(send(good.send, from.data(), from.size())), static_cast<int>(size));
    EXPECT_EQ(await(received), static_cast<int>(size));
    close(bad);
  }
  close(good);
}

TEST_P(MessageTest, MessagesMatchInTheOrderOfPostingWhicheverEndIsFirst) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kCount = nccl::kNetMaxRequests;
  for (const bool sendsFirst : {true, false}) {
    std::vector<std::int64_t> from(kCount), to(kCount);
    std::vector<void*> sent(kCount), got(kCount);
    const auto sendAll = [&] {
      for (int i = 0; i < kCount; ++i) {
        from[i] = 1000 + i;
        sent[i] = send(ends.send, &from[i], sizeof(from[i]));
        ASSERT_NE(sent[i], nullptr);
      }
    };
    if (sendsFirst) sendAll();
    for (int i = 0; i < kCount; ++i) {
      got[i] = receive(ends.receive, &to[i], sizeof(to[i]));
      ASSERT_NE(got[i], nullptr);
    }
    if (!sendsFirst) sendAll();
    // Asked in another order than they were posted in.
    for (int i = kCount; i-- > 0;) EXPECT_EQ(await(got[i]), 8);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(await(sent[i]), 8);
    EXPECT_EQ(from, to);
  }
  close(ends);
}

TEST_P(MessageTest, WhenThereIsNoRoomForARequestThereIsNone) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::int64_t> to(nccl::kNetMaxRequests + 1);
  std::vector<void*> got;
  for (int i = 0; i < nccl::kNetMaxRequests; ++i) {
    got.push_back(receive(ends.receive, &to[i], 8));
    ASSERT_NE(got.back(), nullptr);
  }
  EXPECT_EQ(receive(ends.receive, &to.back(), 8), nullptr);  // "try again"
  const std::int64_t value = 5;
  EXPECT_EQ(await(send(ends.send, &value, 8)), 8);
  EXPECT_EQ(await(got[0]), 8);
  EXPECT_NE(receive(ends.receive, &to.back(), 8), nullptr);
  close(ends);
}

// The sends of 32 grouped receives of 8 buffers: NCCL has no more under way.
TEST_P(MessageTest, WhenThereIsNoRoomForASendThereIsNone) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kMost = nccl::kNetMaxRequests * 8;
  const std::int64_t value = 5;
  std::vector<void*> sent;
  for (int i = 0; i < kMost; ++i) {
    sent.push_back(send(ends.send, &value, 8));
    ASSERT_NE(sent.back(), nullptr) << i;
  }
  EXPECT_EQ(send(ends.send, &value, 8), nullptr);  // "try again"
  std::int64_t to = 0;
  EXPECT_EQ(await(receive(ends.receive, &to, 8)), 8);
  EXPECT_EQ(await(sent.front()), 8);
  EXPECT_NE(send(ends.send, &value, 8), nullptr);
  EXPECT_EQ(send(ends.send, &value, 8), nullptr);
  close(ends);
}

TEST_P(MessageTest, TheBuffersOfAGroupedReceiveGetTheMessagesWithTheirTags) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kCount = 4;
  for (int round = 0; round < 3; ++round) {
    std::array<std::int32_t, kCount> to{}, from{};
    std::array<void*, kCount> data{}, sent{};
    std::array<std::size_t, kCount> sizes{};
    std::array<int, kCount> tags{}, got{};
    for (int i = 0; i < kCount; ++i) {
      data[i] = &to[i];
      sizes[i] = sizeof(to[i]);
      tags[i] = 70 + i;
    }
    void* request = nullptr;
    ASSERT_EQ(net.irecv(ends.receive, data, sizes, tags, &request), NetResult::kSuccess);
    ASSERT_NE(request, nullptr);
    // The last tag first, and the third message shorter.
    for (int i = kCount; i-- > 0;) {
      from[i] = 100 * round + i;
      sent[i] = send(ends.send, &from[i], i == 2 ? 2 : 4, tags[i]);
      int done = 0;
      ASSERT_EQ(net.test(request, &done, got.data()), NetResult::kSuccess);
      EXPECT_TRUE(i == 0 || done == 0) << "not all have come";
      if (done != 0) request = nullptr;
    }
    const TimePoint deadline = now() + kLong;
    while (request != nullptr && now() < deadline) {
      int done = 0;
      ASSERT_EQ(net.test(request, &done, got.data()), NetResult::kSuccess);
      if (done != 0) request = nullptr;
    }
    EXPECT_EQ(got, (std::array<int, kCount>{4, 4, 2, 4}));
    EXPECT_EQ(to, from);
    for (void* one : sent) EXPECT_GE(await(one), 2);
  }
  close(ends);
}

TEST_P(MessageTest, MoreBuffersThanAnnouncedAreRefused) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::array<char, 9> to{};
  std::array<void*, 9> data{};
  std::array<std::size_t, 9> sizes{};
  std::array<int, 9> tags{};
  for (int i = 0; i < 9; ++i) data[i] = &to[i];
  void* request = nullptr;
  EXPECT_NE(net.irecv(ends.receive, data, sizes, tags, &request), NetResult::kSuccess);
  close(ends);
}

TEST_P(MessageTest, AnEndThatNobodyPollsGoesOn) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::int64_t from = 77, to = 0;
  void* const got = receive(ends.receive, &to, 8);
  void* const sent = send(ends.send, &from, 8);
  // Nobody calls the plugin; its own thread does the rest.
  const TimePoint deadline = now() + kLong;
  while (peek(to) != 77 && now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_LT(now(), deadline);
  EXPECT_EQ(await(got), 8);
  EXPECT_EQ(await(sent), 8);
  close(ends);
}

/// After short messages only, receives are posted ahead of NCCL's.
TEST_P(MessageTest, AShortMessageOfManyIsDoneBeforeItsReceiveIsPosted) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::int64_t from = 0, to = 0;
  const auto both = [&] {
    ++from;
    void* const got = receive(ends.receive, &to, 8);
    EXPECT_EQ(await(send(ends.send, &from, 8)), 8);
    EXPECT_EQ(await(got), 8);
    EXPECT_EQ(to, from);
  };
  for (int i = 0; i < 20; ++i) both();
  from = 77;
  void* const sent = send(ends.send, &from, 8);
  EXPECT_EQ(await(sent), 8);
  EXPECT_EQ(to, 20);
  EXPECT_EQ(await(receive(ends.receive, &to, 100)), 8);
  EXPECT_EQ(to, 77);
  // A long one waits for its receive, though it is announced for a short one.
  std::vector<std::byte> source(300'000, std::byte{5}), target(source.size());
  void* const large = send(ends.send, source.data(), source.size());
  EXPECT_EQ(await(large, 20ms), -1);
  void* const got = receive(ends.receive, target.data(), target.size());
  EXPECT_EQ(await(large), 300'000);
  EXPECT_EQ(await(got), 300'000);
  EXPECT_EQ(source, target);
  // One that is longer than its receive fails that.
  EXPECT_EQ(await(send(ends.send, &from, 8)), 8);
  EXPECT_EQ(await(receive(ends.receive, &to, 7)), -2);
  both();
  close(ends);
}

TEST_P(MessageTest, MessagesOfAnySizeArriveInTheirOrderWhoeverIsFirst) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kMessages = 400;
  Random random(GetParam());
  std::vector<std::vector<std::byte>> sources, targets;
  for (int i = 0; i < kMessages; ++i) {
    // Short ones in rows, which long ones interrupt.
    const bool isLong = random.below(i % 100 < 50 ? 40 : 3) == 0;
    sources.emplace_back(random.below(isLong ? 100'000 : 200), static_cast<std::byte>(i));
    targets.emplace_back(100'000);
  }
  std::deque<std::pair<int, void*>> sends, receives;
  int sent = 0, asked = 0;
  const auto finish = [&](auto& requests) {
    const auto [index, request] = requests.front();
    requests.pop_front();
    ASSERT_EQ(await(request), static_cast<int>(sources[index].size())) << index;
  };
  while (asked < kMessages) {
    const bool sends_ = sent < kMessages && sent - asked < 20 && random.below(2) == 0;
    if (sends_ && sends.size() < nccl::kNetMaxRequests) {
      sends.emplace_back(sent, send(ends.send, sources[sent].data(), sources[sent].size()));
      ++sent;
    } else if (asked - sent < 20 && receives.size() < nccl::kNetMaxRequests) {
      receives.emplace_back(asked, receive(ends.receive, targets[asked].data(), 100'000));
      ++asked;
    }
    // Only what both ends have posted can be done.
    while (!receives.empty() && receives.front().first < sent && random.below(3) == 0) {
      finish(receives);
    }
    while (!sends.empty() && sends.front().first < asked && random.below(3) == 0) finish(sends);
    if (HasFatalFailure()) return;
  }
  for (; sent < kMessages; ++sent) {
    while (sends.size() >= nccl::kNetMaxRequests) finish(sends);
    sends.emplace_back(sent, send(ends.send, sources[sent].data(), sources[sent].size()));
  }
  while (!receives.empty()) finish(receives);
  while (!sends.empty()) finish(sends);
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_TRUE(std::equal(sources[i].begin(), sources[i].end(), targets[i].begin())) << i;
  }
  close(ends);
}

TEST_P(MessageTest, WhatNobodyAskedForGoesWithItsConnection) {
  const Ends other = connectHere(net);
  for (const bool receiverFirst : {true, false}) {
    const Ends ends = connectHere(net);
    ASSERT_NE(ends.receive, nullptr);
    std::int64_t from = 3, to = 0;
    for (int i = 0; i < 20; ++i) {
      void* const got = receive(ends.receive, &to, 8);
      EXPECT_EQ(await(send(ends.send, &from, 8)), 8);
      EXPECT_EQ(await(got), 8);
    }
    from = 4;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(await(send(ends.send, &from, 8)), 8);
    receive(ends.receive, &to, 8);  // and one that is never tested
    if (receiverFirst) {
      EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
      EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
    } else {
      EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
      EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
    }
    void* const got = receive(other.receive, &to, 8);
    EXPECT_EQ(await(send(other.send, &from, 8)), 8);
    EXPECT_EQ(await(got), 8);
  }
  close(other);
}

TEST_P(MessageTest, OnlyHostMemoryIsRegistered) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  int data = 0;
  void *region = nullptr, *request = &data;
  EXPECT_EQ(net.regMr(ends.send, &data, sizeof(data), nccl::kNetPointerHost, &region),
            NetResult::kSuccess);
  EXPECT_NE(region, nullptr);
  EXPECT_EQ(net.deregMr(ends.send, region), NetResult::kSuccess);
  EXPECT_NE(net.regMr(ends.send, &data, sizeof(data), 2, &region), NetResult::kSuccess);
  EXPECT_EQ(net.iflush(ends.receive, &data, sizeof(data), &request), NetResult::kSuccess);
  EXPECT_EQ(request, nullptr);  // nothing to wait for
  close(ends);
}

INSTANTIATE_TEST_SUITE_P(Versions, MessageTest, ::testing::Values(10, 11, 12), versionName);

}  // namespace
}  // namespace faultline::test
