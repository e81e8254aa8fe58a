#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "harness/cluster/netns_cluster.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/shaper.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::transport::tcp {
namespace {

class NoSink : public RailSink {
 public:
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override {}
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
};

/// A rail from node 0 to node 1, through a port whose queue can be filled.
class RefusedSegmentTest : public test::NetnsTest {
 protected:
  static constexpr Duration kLong = 10s;
  /// So slow that a full queue stays full until the rail has written.
  static constexpr BitsPerSecond kRate = 1'000'000;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(
        cluster_, cluster::NetnsCluster::create({.nodes = 2, .rails = 1, .rail_rate = kRate}));
    port_ = cluster_->pathTarget(0, 1, 0).nic;
    ASSERT_OK(connect());
  }

  SocketPlace place(int node) const {
    return {*parseAddress(cluster::railAddress(node, 0)), cluster::railName(0), 0};
  }

  Status connect() {
    UniqueFd listener;
    {
      ASSIGN_OR_RETURN(const auto inside,
                       netlink::ScopedNamespace::enter(cluster_->nodeNamespace(1)));
      ASSIGN_OR_RETURN(listener, openListener(place(1)));
    }
    ASSIGN_OR_RETURN(peer_, localEndpoint(listener.get()));
    ASSIGN_OR_RETURN(const auto inside,
                     netlink::ScopedNamespace::enter(cluster_->nodeNamespace(0)));
    ASSIGN_OR_RETURN(UniqueFd connecting, beginConnect(place(0), peer_));
    if (!test::pollUntil(kLong, [&] {
          accepted_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
          return accepted_.valid();
        })) {
      return errorf(Code::kDeadlineExceeded, "nobody connected");
    }
    pollfd writable{connecting.get(), POLLOUT, 0};
    poll(&writable, 1, 1000);
    RETURN_IF_ERROR(connectOutcome(connecting.get()));
    rail_ = std::make_unique<TcpRail>(0, std::move(connecting), sink_);
    // A socket may have less on its way than the port's queue holds.
    for (UniqueFd& flood : floods_) {
      ASSIGN_OR_RETURN(flood, openUdp(place(0)));
    }
    return okStatus();
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

  int bytes(unsigned long request) const {
    int count = -1;
    EXPECT_EQ(ioctl(rail_->fd(), request, &count), 0);
    return count;
  }
  /// Not acknowledged, sent or not.
  int inSocket() const { return bytes(SIOCOUTQ); }
  /// Nothing has been sent of what is in the socket.
  bool waits() const { return inSocket() > 0 && bytes(SIOCOUTQNSD) == inSocket(); }

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
  std::unique_ptr<cluster::NetnsCluster> cluster_;
  netlink::LinkEnd port_;
  Endpoint peer_;
  UniqueFd accepted_;
  std::unique_ptr<TcpRail> rail_;
  std::array<UniqueFd, 4> floods_;
  std::uint64_t sequence_ = 0;
};

TEST_F(RefusedSegmentTest, IsSentAgainWhenSomebodyAsks) {
  // The kernel's own timer comes first where the machine is slow: once more, then.
  ASSERT_TRUE(test::pollUntil(4 * kLong, [&] {
    fillTheQueue();
    send();
    const bool refused = waits();
    const Bytes full = backlog();
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return backlog() < full - kRoom; }));
    const bool asks = refused && waits();
    if (asks) {
      rail_->delivery();
      EXPECT_FALSE(waits());
    }
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return inSocket() == 0; }));
    return asks;
  }));
}

}  // namespace
}  // namespace faultline::transport::tcp
