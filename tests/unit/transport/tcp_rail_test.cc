#include "resilient_ccl/transport/tcp/tcp_rail.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/system_calls.h"

// What a rail does with chunks that go over two rails: a sender that stops reading the user's
// buffer, and a receiver that stops writing it.

namespace faultline::transport::tcp {
namespace {

constexpr std::uint32_t kChunk = 4 << 20;  // more than both socket buffers take

struct Sink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader& header) override {
    return header.slot == kNoSlot ? nullptr : places.at(header.sequence);
  }
  void chunkArrived(int, const ChunkHeader& header) override { arrived.push_back(header); }
  void railFailed(int, const Status& why) override { error = why; }

  std::map<std::uint64_t, std::byte*> places;
  std::vector<ChunkHeader> arrived;
  Status error;
};

class TcpRailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    out_ = std::make_unique<TcpRail>(0, UniqueFd(ends[0]), sendSide_);
    in_ = std::make_unique<TcpRail>(1, UniqueFd(ends[1]), sink_);
    for (std::uint64_t i = 0; i < 3; ++i) {
      source_[i].assign(kChunk, std::byte{static_cast<unsigned char>(i + 1)});
      target_[i].assign(kChunk, std::byte{0});
      sink_.places[i] = target_[i].data();
    }
  }
  void submit(std::uint64_t sequence) {
    out_->submit({.sequence = sequence, .messageLength = kChunk, .slot = 5, .length = kChunk},
                 source_[sequence].data(), {});
  }
  void carryAll(std::size_t chunks) {
    for (int turn = 0; turn < 1000 && sink_.arrived.size() < chunks; ++turn) {
      out_->write(/*socketIsWritable=*/true);
      in_->read();
    }
    ASSERT_EQ(sink_.arrived.size(), chunks);
  }
  static bool all(const std::vector<std::byte>& bytes, int value) {
    return std::ranges::count(bytes, std::byte{static_cast<unsigned char>(value)}) ==
           static_cast<std::ptrdiff_t>(bytes.size());
  }

  Sink sendSide_, sink_;
  std::unique_ptr<TcpRail> out_, in_;
  std::array<std::vector<std::byte>, 3> source_, target_;
};

TEST_F(TcpRailTest, AChunkThatHasBegunIsCarriedOnFromACopy) {
  submit(0);
  out_->write(/*socketIsWritable=*/true);
  ASSERT_FALSE(out_->canWrite()) << "the socket must be full in the middle of the chunk";
  EXPECT_FALSE(out_->detach(0));
  std::ranges::fill(source_[0], std::byte{0xee});  // the user's again
  carryAll(1);
  EXPECT_TRUE(all(target_[0], 1));
}

TEST_F(TcpRailTest, AChunkThatHasNotBegunIsWithdrawnAndOnlyItsNumberTravels) {
  for (const std::uint64_t sequence : {0, 1, 2}) submit(sequence);
  EXPECT_TRUE(out_->detach(1));
  std::ranges::fill(source_[1], std::byte{0xee});
  carryAll(3);
  EXPECT_EQ(sink_.arrived[1].sequence, 1u);
  EXPECT_EQ(sink_.arrived[1].slot, kNoSlot);
  EXPECT_EQ(sink_.arrived[1].length, 0u);
  EXPECT_TRUE(all(target_[0], 1));
  EXPECT_TRUE(all(target_[1], 0));
  EXPECT_TRUE(all(target_[2], 3));
}

TEST_F(TcpRailTest, WhatTheKernelHasAlreadyNeedsNoCopy) {
  submit(0);
  carryAll(1);
  EXPECT_FALSE(out_->detach(0));
  EXPECT_FALSE(out_->detach(77));
}

TEST_F(TcpRailTest, TheRestOfADivertedChunkDoesNotTouchItsPlace) {
  submit(0);
  submit(1);
  out_->write(/*socketIsWritable=*/true);
  in_->read();
  ASSERT_NE(target_[0][0], std::byte{0}) << "nothing had arrived";
  ASSERT_TRUE(sink_.arrived.empty());
  in_->divert();
  std::ranges::fill(target_[0], std::byte{0xaa});  // handed over and used for something else
  carryAll(2);
  EXPECT_TRUE(all(target_[0], 0xaa));
  EXPECT_TRUE(all(target_[1], 2)) << "only the one chunk is diverted";
}

TEST_F(TcpRailTest, DivertingBetweenTwoChunksDoesNothing) {
  submit(0);
  carryAll(1);
  in_->divert();
  submit(1);
  carryAll(2);
  EXPECT_TRUE(all(target_[1], 2));
  EXPECT_TRUE(sink_.error.ok());
}

TEST_F(TcpRailTest, AnEmptySocketIsNotAskedAgain) {
  std::vector<std::byte> data(1000, std::byte{1});
  for (std::uint64_t i = 0; i < 3; ++i) {
    out_->submit({.sequence = i, .messageLength = 1000, .slot = 5, .length = 1000}, data.data(),
                 {});
  }
  out_->write(/*socketIsWritable=*/true);
  const std::uint64_t before = systemCallsMade();
  in_->read();
  // The first header; then each chunk with the next header behind it, of which the last is missing:
  // the socket is empty, and is not asked again.
  EXPECT_EQ(systemCallsMade() - before, 4u);
  EXPECT_EQ(sink_.arrived.size(), 3u);
}

}  // namespace
}  // namespace faultline::transport::tcp
