#include <array>
#include <thread>

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

TEST_P(MessageTest, OnlyHostMemoryIsRegistered) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  int data = 0;
  void *region = nullptr, *request = &data;
  EXPECT_EQ(net.regMr(ends.send, &data, sizeof(data), nccl::kNetPointerHost, &region),
            NetResult::kSuccess);
  EXPECT_NE(region, nullptr);
  EXPECT_NE(net.regMr(ends.send, &data, sizeof(data), 2, &region), NetResult::kSuccess);
  EXPECT_EQ(net.iflush(ends.receive, &data, sizeof(data), &request), NetResult::kSuccess);
  EXPECT_EQ(request, nullptr);  // nothing to wait for
  close(ends);
}

INSTANTIATE_TEST_SUITE_P(Versions, MessageTest, ::testing::Values(10, 11, 12), versionName);

}  // namespace
}  // namespace faultline::test
