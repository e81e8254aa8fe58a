#include <array>
#include <vector>

#include "injector/netlink/shaper.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"
#include "tests/netns/fabric/connected_nodes.h"

namespace faultline::transport::tcp {
namespace {

class NoSink : public RailSink {
 public:
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override {}
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
};

/// A rail from node 0 to node 1, through a port whose queue can be filled.
class RefusedSegmentTest : public ConnectedNodesTest {
 protected:
  /// So slow that a full queue stays full until the rail has written.
  static constexpr BitsPerSecond kRate = 1'000'000;

  void SetUp() override {
    ConnectedNodesTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK(connectNodes(kRate));
    rail_ = std::make_unique<TcpRail>(0, std::move(connecting_), sink_);
    ASSERT_OK_AND_ASSIGN(const auto inside, enter(0));
    // A socket may have less on its way than the port's queue holds.
    for (UniqueFd& flood : floods_) {
      ASSERT_OK_AND_ASSIGN(flood, openUdp(place(0)));
    }
  }

  Bytes backlog() {
    const auto state = netlink::readShaper(*port_.socket, port_.ifindex);
    EXPECT_TRUE(state.ok()) << state.status().message();
    return state.ok() ? state->backlog : 0;
  }

  void fillTheQueue() {
    const std::vector<std::byte> frame(1400);
    const sockaddr_in to = peer_.toSockaddr();
    constexpr int kMoreThanItHolds = 400;
    for (int i = 0; i < kMoreThanItHolds; ++i) {
      for (const UniqueFd& flood : floods_) {
        (void)sendto(flood.get(), frame.data(), frame.size(), MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to));
      }
    }
  }

  void send() {
    rail_->submit(
        {.sequence = sequence_++, .messageLength = kChunk.size(), .length = kChunk.size()},
        kChunk.data(), {});
    rail_->write(true);
  }

  inline static const std::array<std::byte, 8000> kChunk{};
  /// For the chunk, with its headers; a queue that is full has less.
  static constexpr Bytes kRoom = 12'000;
  NoSink sink_;
  std::unique_ptr<TcpRail> rail_;
  std::array<UniqueFd, 4> floods_;
  std::uint64_t sequence_ = 0;
};

TEST_F(RefusedSegmentTest, IsSentAgainWhenSomebodyAsks) {
  // The kernel's own timer comes first where the machine is slow: once more, then.
  ASSERT_TRUE(test::pollUntil(4 * kLong, [&] {
    fillTheQueue();
    send();
    const bool refused = waits(rail_->fd());
    const Bytes full = backlog();
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return backlog() < full - kRoom; }));
    const bool asks = refused && waits(rail_->fd());
    if (asks) {
      rail_->delivery();
      EXPECT_FALSE(waits(rail_->fd()));
    }
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return inSocket(rail_->fd()) == 0; }));
    return asks;
  }));
}

}  // namespace
}  // namespace faultline::transport::tcp
