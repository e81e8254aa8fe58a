#include "resilient_ccl/transport/place_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace faultline::transport {
namespace {

constexpr Bytes kChunk = 100;
constexpr std::uint32_t kSlot = 7;

ChunkHeader chunkAt(std::uint64_t offset, std::uint32_t length = kChunk,
                    std::uint64_t messageLength = 250) {
  return {.offset = offset, .messageLength = messageLength, .slot = kSlot, .length = length};
}

class PlaceTableTest : public ::testing::Test {
 protected:
  void SetUp() override { table_.open(kSlot, region_.data(), region_.size()); }

  std::array<std::byte, 300> region_;
  PlaceTable table_{Cut{kChunk}};
};

TEST_F(PlaceTableTest, TheFirstToAskGetsThePlaceAndTheOthersHearWhoHasIt) {
  const auto first = table_.claim(2, chunkAt(100));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->place, region_.data() + 100);
  EXPECT_EQ(first->holder, 2);
  for (const int rail : {0, 2}) {
    const auto later = table_.claim(rail, chunkAt(100));
    ASSERT_TRUE(later.ok());
    EXPECT_EQ(later->place, nullptr);
    EXPECT_EQ(later->holder, 2);
  }
  EXPECT_EQ(table_.claim(0, chunkAt(200, 50))->place, region_.data() + 200);
}

TEST_F(PlaceTableTest, NobodyWantsAChunkOfASlotThatIsNotOpen) {
  ChunkHeader other = chunkAt(0);
  other.slot = 8;
  EXPECT_EQ(table_.claim(0, other)->holder, -1);
  EXPECT_EQ(table_.claim(0, withdrawn(other))->holder, -1);
  ASSERT_EQ(table_.claim(0, chunkAt(0))->holder, 0);
  table_.close(kSlot);
  const auto late = table_.claim(0, chunkAt(100));
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->place, nullptr);
  EXPECT_EQ(late->holder, -1);
}

TEST_F(PlaceTableTest, AHeaderThatDoesNotFitItsSlotIsRefused) {
  ASSERT_TRUE(table_.claim(0, chunkAt(0)).ok());
  const std::array lies{chunkAt(50),          chunkAt(300, 0),     chunkAt(200, 51),
                        chunkAt(100, 99),     chunkAt(100, 101),   chunkAt(100, 100, 251),
                        chunkAt(0, 100, 301), chunkAt(~0ull, 1, 0)};
  for (const ChunkHeader& lie : lies) {
    EXPECT_EQ(table_.claim(1, lie).status().code(), Code::kInvalidArgument)
        << lie.offset << " " << lie.length << " " << lie.messageLength;
  }
}

TEST_F(PlaceTableTest, AnEmptyMessageHasOneChunk) {
  EXPECT_EQ(table_.claim(0, chunkAt(0, 0, 0))->holder, 0);
  EXPECT_EQ(table_.claim(1, chunkAt(0, 0, 0))->holder, 0);
}

TEST_F(PlaceTableTest, EachPlaceIsClaimedOnceByManyThreads) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kChunks = 2000;
  std::vector<std::byte> region(kChunks * kChunk);
  table_.open(kSlot, region.data(), static_cast<Bytes>(region.size()));
  std::atomic<std::uint64_t> claimed{0};
  std::vector<std::thread> threads;
  for (int rail = 0; rail < kThreads; ++rail) {
    threads.emplace_back([&, rail] {
      for (std::uint64_t i = 0; i < kChunks; ++i) {
        const auto claim = table_.claim(rail, chunkAt(i * kChunk, kChunk, region.size()));
        if (claim.ok() && claim->place != nullptr) ++claimed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed, kChunks);
}

}  // namespace
}  // namespace faultline::transport
