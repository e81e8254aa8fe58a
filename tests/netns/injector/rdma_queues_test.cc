// What the faults of RDMA devices in software do to an interface, without an RDMA device: probe
// frames take the way that RoCE takes.
#include <gtest/gtest.h>
#include <linux/if_ether.h>

#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/roce_frames.h"
#include "injector/netlink/roce_tap.h"
#include "injector/netlink/root_queue.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::netlink {
namespace {

constexpr int kNear = 11;
constexpr int kFar = 22;
constexpr std::uint64_t kFrames = 8;
constexpr Duration kArrives = 5s;
constexpr Duration kStaysAway = 100ms;

class RdmaQueuesTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(const UniqueFd near, newNamespace());
    ASSERT_OK_AND_ASSIGN(const UniqueFd far, newNamespace());
    ASSERT_OK_AND_ASSIGN(Socket near_socket, Socket::open(near.get()));
    near_.emplace(std::move(near_socket));
    ASSERT_OK_AND_ASSIGN(Socket far_socket, Socket::open(far.get()));
    far_.emplace(std::move(far_socket));
    ASSERT_OK(createVeth(*near_, {.name = "near", .ifindex = kNear}, far.get(),
                         {.name = "far", .ifindex = kFar}));
    ASSERT_OK(setUp(*near_, kNear, true));
    ASSERT_OK(setUp(*far_, kFar, true));
    ASSERT_OK_AND_ASSIGN(RoceTap near_tap, RoceTap::open(*near_, kNear));
    near_tap_.emplace(std::move(near_tap));
    ASSERT_OK_AND_ASSIGN(RoceTap far_tap, RoceTap::open(*far_, kFar));
    far_tap_.emplace(std::move(far_tap));
  }

  struct Seen {
    RoceCount near;
    RoceCount far;
  };
  Seen count() {
    const auto near = near_tap_->count();
    const auto far = far_tap_->count();
    EXPECT_OK(near.status());
    EXPECT_OK(far.status());
    return {near.value(), far.value()};
  }
  Seen sendProbes() {
    EXPECT_OK(near_tap_->reset());
    EXPECT_OK(far_tap_->reset());
    for (std::uint64_t i = 0; i < kFrames; ++i) EXPECT_OK(near_tap_->sendProbe().status());
    test::pollUntil(kStaysAway, [&] { return count().far.received >= kFrames; });
    return count();
  }
  bool probesPass() {
    return test::pollUntil(kArrives, [&] {
      const Seen seen = sendProbes();
      return seen.near.sent == kFrames && seen.far.received == kFrames;
    });
  }
  bool probesVanish() {
    const Seen seen = sendProbes();
    return seen.near.sent == 0 && seen.far.received == 0;
  }

  std::optional<Socket> near_;
  std::optional<Socket> far_;
  std::optional<RoceTap> near_tap_;
  std::optional<RoceTap> far_tap_;
};

TEST_F(RdmaQueuesTest, ProbesAreSeenAtBothEndsOnTheirWays) {
  ASSERT_TRUE(probesPass());
  const Seen seen = sendProbes();
  EXPECT_EQ(seen.near.received, 0u);
  EXPECT_EQ(seen.far.sent, 0u);
}

TEST_F(RdmaQueuesTest, AFilterDropsRoceAndNothingElse) {
  ASSERT_TRUE(probesPass());
  const DropRule out{.passing = Passing::kSent, .only_roce = true, .unnoticed = true};
  ASSERT_OK(addDropRules(*near_, kNear, {{out}}));
  EXPECT_TRUE(probesVanish());
  // The same packet to the next port, and another protocol.
  ASSERT_OK_AND_ASSIGN(PacketSocket others, PacketSocket::open(*near_, kNear, 0));
  ASSERT_OK_AND_ASSIGN(PacketSocket far, PacketSocket::open(*far_, kFar, ETH_P_ALL));
  std::vector<std::uint8_t> packet = roceProbe();
  constexpr std::size_t kPortLowByte = 23;
  constexpr std::size_t kProtocol = 9;
  ++packet[kPortLowByte];
  ASSERT_OK_AND_ASSIGN(bool sent,
                       others.send(ETH_P_IP, kBroadcastMac, packet.data(), packet.size()));
  EXPECT_TRUE(sent);
  --packet[kPortLowByte];
  packet[kProtocol] = IPPROTO_TCP;
  ASSERT_OK_AND_ASSIGN(sent, others.send(ETH_P_IP, kBroadcastMac, packet.data(), packet.size()));
  EXPECT_TRUE(sent);
  int arrived = 0;
  EXPECT_TRUE(test::pollUntil(kArrives, [&] {
    std::array<std::uint8_t, 256> bytes{};
    const auto got = far.receive(bytes.data(), bytes.size());
    if (got.ok() && *got && **got == packet.size()) ++arrived;
    return arrived == 2;
  })) << arrived;
  ASSERT_OK(removeDropRules(*near_, kNear));
  EXPECT_TRUE(probesPass());
}

TEST_F(RdmaQueuesTest, AFilterForWhatComesLetsTheTapSeeIt) {
  ASSERT_TRUE(probesPass());
  ASSERT_OK(addDropRules(*far_, kFar, {{DropRule{.only_roce = true, .unnoticed = true}}}));
  EXPECT_EQ(sendProbes().far.received, kFrames) << "at the driver, before the filter";
  EXPECT_EQ(addDropRules(*far_, kFar, {{DropRule{}}}).code(), Code::kAlreadyExists);
  ASSERT_OK(removeDropRules(*far_, kFar));
}

TEST_F(RdmaQueuesTest, ABlackholeQueueDropsWhatGoesOutUntilItIsRemoved) {
  ASSERT_TRUE(probesPass());
  ASSERT_OK(installBlackhole(*near_, kNear));
  EXPECT_TRUE(probesVanish());
  EXPECT_EQ(readRootQueue(*near_, kNear)->kind, "blackhole");
  EXPECT_EQ(installTokenBucket(*near_, kNear, 1'000'000).code(), Code::kAlreadyExists);
  ASSERT_OK(removeRootQueue(*near_, kNear));
  EXPECT_TRUE(probesPass());
  EXPECT_EQ(removeRootQueue(*near_, kNear).code(), Code::kNotFound);
}

TEST_F(RdmaQueuesTest, NetemIsUsedWhereTheKernelHasIt) {
  const Status status = installNetemLoss(*near_, kNear);
  if (status.code() == Code::kUnsupported) {
    EXPECT_EQ(readRootQueue(*near_, kNear).status().code(), Code::kNotFound);
    GTEST_SKIP() << status.message();
  }
  ASSERT_TRUE(status.ok()) << status.toString();
  EXPECT_TRUE(probesVanish());
}

TEST_F(RdmaQueuesTest, ATokenBucketCountsWhatLeavesAndHoldsTheRest) {
  ASSERT_TRUE(probesPass());
  constexpr BitsPerSecond kSlow = 100'000;
  ASSERT_OK(installTokenBucket(*near_, kNear, kSlow));
  // More than its bucket of 16 KiB at once.
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) ASSERT_OK(near_tap_->sendProbe().status());
  ASSERT_OK_AND_ASSIGN(const RootQueueState state, readRootQueue(*near_, kNear));
  EXPECT_EQ(state.kind, "tbf");
  EXPECT_GT(state.sent_bytes, 0u);
  EXPECT_GT(state.backlog, 0);
  ASSERT_OK(removeRootQueue(*near_, kNear));
  EXPECT_TRUE(probesPass());
}

}  // namespace
}  // namespace faultline::netlink
