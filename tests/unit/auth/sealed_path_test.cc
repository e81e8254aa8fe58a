#include "resilient_ccl/auth/sealed_path.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "resilient_ccl/auth/replay_window.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::auth {
namespace {

TEST(ReplayWindowTest, EveryNumberIsTakenOnceInAnyOrder) {
  ReplayWindow window;
  for (const std::uint64_t number : {3, 1, 2, 5, 4, 64}) EXPECT_TRUE(window.accept(number));
  for (const std::uint64_t number : {0, 1, 2, 3, 4, 5, 64}) EXPECT_FALSE(window.accept(number));
}

TEST(ReplayWindowTest, WhatIsTooOldToBeRememberedIsRefused) {
  ReplayWindow window;
  ASSERT_TRUE(window.accept(1000));
  EXPECT_TRUE(window.accept(1000 - ReplayWindow::kReach + 1));
  EXPECT_FALSE(window.accept(1000 - ReplayWindow::kReach));
  EXPECT_FALSE(window.accept(1));
  EXPECT_TRUE(window.accept(5000));  // a jump forgets, and nothing old counts as new
  EXPECT_FALSE(window.accept(1000));
  EXPECT_TRUE(window.accept(~std::uint64_t{0}));
  EXPECT_FALSE(window.accept(5000));
}

TEST(ReplayWindowTest, AgreesWithASetOfAllNumbersSeen) {
  Random random(3);
  ReplayWindow window;
  std::vector<bool> seen(3000);
  std::uint64_t highest = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t number =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(highest + random.below(100)) - 96);
    if (number >= seen.size()) break;
    const bool fresh = !seen[number] && number + ReplayWindow::kReach > highest;
    ASSERT_EQ(window.accept(number), fresh) << number << " after " << highest;
    if (fresh) seen[number] = true;
    highest = std::max(highest, number);
  }
  EXPECT_GT(highest, 1000u);
}

class SealedPathTest : public ::testing::Test {
 protected:
  SealedPathTest() : authenticator_(JobKey::random()), stranger_(JobKey::random()) {}

  /// A datagram with a grant and a probe, as `sender` puts it on the wire.
  std::vector<std::byte> send(SealedPath& sender) {
    channel::DatagramWriter writer;
    const std::vector<channel::RailReceipt> rails(2);
    writer.begin({.source = 1, .destination = 2, .path = 1, .control = {}}, rails);
    const channel::GrantRecord grant{.key = {1, ++sent_, 3}, .capacity = 10};
    const channel::ProbeRecord probe{.round = sent_};
    EXPECT_TRUE(writer.add({channel::RecordType::kGrant, sent_, channel::bytesOf(grant)}));
    EXPECT_TRUE(writer.add({channel::RecordType::kProbe, 0, channel::bytesOf(probe)}));
    const auto datagram = writer.finish();
    std::vector<std::byte> bytes(datagram.begin(), datagram.end());
    const Seal seal = sender.seal(authenticator_, datagram);
    const auto end = std::as_bytes(std::span(&seal, 1));
    bytes.insert(bytes.end(), end.begin(), end.end());
    return bytes;
  }

  Authenticator authenticator_;
  Authenticator stranger_;
  std::uint32_t sent_ = 0;
};

TEST_F(SealedPathTest, WhatIsSealedIsOpenedOnce) {
  SealedPath here, there;
  for (int i = 0; i < 200; ++i) {
    const auto bytes = send(here);
    const auto opened = there.open(authenticator_, bytes);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->size(), bytes.size() - sizeof(Seal));
    channel::Datagram datagram;
    EXPECT_TRUE(channel::parseDatagram(*opened, datagram).ok());
    EXPECT_FALSE(there.open(authenticator_, bytes)) << "a repetition";
  }
}

TEST_F(SealedPathTest, EveryFlippedBitAndEveryTruncationIsRefused) {
  SealedPath here, there;
  const auto good = send(here);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_FALSE(there.open(authenticator_, bytes)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_FALSE(there.open(authenticator_, std::span(good).first(size))) << size << " bytes";
  }
  EXPECT_TRUE(there.open(authenticator_, good)) << "none of them may have moved the window";
}

TEST_F(SealedPathTest, AStrangerCannotMoveTheWindow) {
  SealedPath here, there, forger;
  const auto good = send(here);
  for (int i = 0; i < 1000; ++i) {
    auto forged = send(forger);  // numbers far ahead of ours
    const auto datagram = std::span(forged).first(forged.size() - sizeof(Seal));
    const Seal seal = forger.seal(stranger_, datagram);
    std::ranges::copy(std::as_bytes(std::span(&seal, 1)), forged.end() - sizeof(Seal));
    ASSERT_FALSE(there.open(authenticator_, forged));
  }
  EXPECT_TRUE(there.open(authenticator_, good));
}

}  // namespace
}  // namespace faultline::auth
