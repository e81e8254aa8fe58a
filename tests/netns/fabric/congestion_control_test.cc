#include "resilient_ccl/transport/tcp/congestion_control.h"

#include <netinet/tcp.h>

#include <array>
#include <string>
#include <vector>

#include "injector/netlink/drop_filter.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"
#include "tests/netns/fabric/connected_nodes.h"

namespace faultline::transport::tcp {
namespace {

struct NoWantSink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override {}
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
};

/// A rail from node 0 to node 1, of which a bounded part is under way.
class CongestionControlTest : public ConnectedNodesTest {
 protected:
  void SetUp() override {
    ConnectedNodesTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK(connectNodes(1'000'000'000));
    out_ = std::make_unique<TcpRail>(0, std::move(connecting_), sink_);
    in_ = std::make_unique<TcpRail>(0, std::move(accepted_), sink_);
  }

  /// As a link does: no more than so much is not acknowledged.
  void carry() {
    constexpr int kUnderWay = 256 << 10;
    if (inSocket(out_->fd()) < kUnderWay && !out_->wantsWritable()) {
      out_->submit({.sequence = sequence_++, .slot = 1, .length = kLength}, kChunk.data(), {});
    }
    out_->write(true);
    in_->read();
  }

  tcp_info state() const {
    tcp_info info{};
    socklen_t size = sizeof(info);
    EXPECT_EQ(getsockopt(out_->fd(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info;
  }

  std::string algorithm() const {
    std::array<char, 16> name{};
    socklen_t size = name.size();
    EXPECT_EQ(getsockopt(out_->fd(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
    return name.data();
  }

  static constexpr std::uint32_t kLength = 64 << 10;
  inline static const std::vector<std::byte> kChunk = std::vector<std::byte>(kLength);
  static constexpr std::uint32_t kNeverEnded = 0x7fffffff;
  NoWantSink sink_;
  std::unique_ptr<TcpRail> out_, in_;
  std::uint64_t sequence_ = 0;
};

TEST_F(CongestionControlTest, SlowStartEndsWhenSomethingIsLostAndNotBefore) {
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    carry();
    return sequence_ > 500;
  }));
  EXPECT_EQ(algorithm(), "reno");
  EXPECT_EQ(state().tcpi_snd_ssthresh, kNeverEnded) << "nothing was lost";

  constexpr std::array<netlink::DropRule, 1> kHalf{
      {{.passing = netlink::Passing::kSent, .share = 0.5}}};
  ASSERT_OK(netlink::addDropRules(*port_.socket, port_.ifindex, kHalf));
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
    carry();
    return state().tcpi_snd_ssthresh != kNeverEnded;
  }));
  ASSERT_OK(netlink::removeDropRules(*port_.socket, port_.ifindex));
  EXPECT_TRUE(test::pollUntil(kLong, [&] {
    carry();
    return algorithm() == streamCongestionControl() &&
           state().tcpi_snd_cwnd >= state().tcpi_snd_ssthresh;
  })) << algorithm();
}

}  // namespace
}  // namespace faultline::transport::tcp
