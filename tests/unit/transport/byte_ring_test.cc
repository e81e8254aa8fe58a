#include "resilient_ccl/transport/shm/byte_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "base/random.h"

namespace faultline::transport::shm {
namespace {

class ByteRingTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 64;

  std::size_t write(std::span<const std::byte> bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return *writer_.write({&piece, 1});
  }
  std::size_t read(std::span<std::byte> bytes) {
    const iovec piece{bytes.data(), bytes.size()};
    return *reader_.read({&piece, 1});
  }

  std::array<std::byte, kSize> memory_{};
  RingIndices indices_;
  RingWriter writer_{indices_, memory_};
  RingReader reader_{indices_, memory_};
};

TEST_F(ByteRingTest, IsEmptyFullAndEmptyAgain) {
  std::vector<std::byte> bytes(kSize + 10, std::byte{7}), got(kSize + 10);
  EXPECT_EQ(*writer_.room(), kSize);
  EXPECT_EQ(read(got), 0u);
  EXPECT_EQ(write(bytes), kSize);
  EXPECT_EQ(*writer_.room(), 0u);
  EXPECT_EQ(write(bytes), 0u);
  EXPECT_EQ(*reader_.available(), kSize);
  EXPECT_EQ(read(got), kSize);
  EXPECT_EQ(std::ranges::count(got, std::byte{7}), static_cast<std::ptrdiff_t>(kSize));
  EXPECT_EQ(*writer_.room(), kSize);
}

TEST_F(ByteRingTest, PiecesOfEveryLengthCrossTheSeam) {
  std::vector<std::byte> bytes(kSize);
  for (std::size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  for (std::size_t length = 1; length <= kSize; ++length) {
    for (int again = 0; again < 3; ++again) {
      std::vector<std::byte> got(length);
      // In two pieces at both ends.
      const std::size_t half = length / 2, third = length / 3;
      const std::array<iovec, 2> out{{{bytes.data(), half}, {bytes.data() + half, length - half}}};
      const std::array<iovec, 2> in{{{got.data(), third}, {got.data() + third, length - third}}};
      ASSERT_EQ(*writer_.write(out), length);
      ASSERT_EQ(*reader_.read(in), length);
      ASSERT_TRUE(std::equal(got.begin(), got.end(), bytes.begin()));
    }
  }
}

TEST_F(ByteRingTest, WhoLiesIsNotBelieved) {
  std::array<std::byte, kSize> bytes{};
  const iovec piece{bytes.data(), bytes.size()};
  indices_.written.store(kSize + 1);
  EXPECT_EQ(reader_.read({&piece, 1}).status().code(), Code::kInvalidArgument);
  indices_.written.store(~std::uint64_t{0});
  EXPECT_EQ(reader_.available().status().code(), Code::kInvalidArgument);
  indices_.taken.store(1);
  EXPECT_EQ(writer_.write({&piece, 1}).status().code(), Code::kInvalidArgument);
}

TEST_F(ByteRingTest, AWholeIsWrittenWholeOrNotAtAll) {
  std::array<std::byte, kSize> bytes{};
  const std::array<iovec, 2> pieces{{{bytes.data(), 30}, {bytes.data(), 10}}};
  EXPECT_TRUE(*writer_.writeWhole(pieces));
  EXPECT_FALSE(*writer_.writeWhole(pieces));
  EXPECT_EQ(*reader_.available(), 40u);
  EXPECT_EQ(read(std::span(bytes).first(20)), 20u);
  EXPECT_TRUE(*writer_.writeWhole(pieces));
}

TEST_F(ByteRingTest, AWholeIsSeenWhole) {
  constexpr int kMany = 5'000;
  std::array<std::byte, kSize> bytes{}, got{};
  const std::array<iovec, 3> pieces{{{bytes.data(), 7}, {bytes.data(), 7}, {bytes.data(), 7}}};
  std::jthread writer([&] {
    for (int i = 0; i < kMany;) i += *writer_.writeWhole(pieces);
  });
  int torn = 0;
  for (std::size_t left = kMany * std::size_t{21}; left > 0;) {
    const std::size_t there = *reader_.available();
    torn += there % 21 != 0;
    left -= read(std::span(got).first(there));
  }
  EXPECT_EQ(torn, 0);
}

TEST_F(ByteRingTest, TwoThreadsAgreeOnEveryByte) {
  constexpr std::size_t kBytes = 20'000;
  std::vector<std::byte> sent(kBytes), got(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * 13 / 7);
  std::thread producer([&] {
    Random random(1);
    for (std::size_t at = 0; at < kBytes;) {
      const std::size_t want = std::min<std::size_t>(1 + random.below(2 * kSize), kBytes - at);
      at += write(std::span(sent).subspan(at, want));
    }
  });
  Random random(2);
  for (std::size_t at = 0; at < kBytes;) {
    const std::size_t want = std::min<std::size_t>(1 + random.below(2 * kSize), kBytes - at);
    at += read(std::span(got).subspan(at, want));
  }
  producer.join();
  EXPECT_EQ(sent, got);
}

}  // namespace
}  // namespace faultline::transport::shm
