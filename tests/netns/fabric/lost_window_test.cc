#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include "harness/cluster/netns_cluster.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/namespace.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::transport::tcp {
namespace {

struct CountingSink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override { ++arrived; }
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
  int arrived = 0;
};

/// A rail from node 0 to node 1, whose reader may be late.
class LostWindowTest : public test::NetnsTest {
 protected:
  static constexpr Duration kLong = 10s;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(cluster_, cluster::NetnsCluster::create({.nodes = 2, .rails = 1}));
    port_ = cluster_->pathTarget(0, 1, 0).nic;
    ASSERT_OK(connect());
  }

  SocketPlace place(int node) const {
    return {*parseAddress(cluster::railAddress(node, 0)), cluster::railName(0), 0};
  }

  Status connect() {
    UniqueFd listener, connecting, accepted;
    {
      ASSIGN_OR_RETURN(const auto inside,
                       netlink::ScopedNamespace::enter(cluster_->nodeNamespace(1)));
      ASSIGN_OR_RETURN(listener, openListener(place(1)));
    }
    ASSIGN_OR_RETURN(const Endpoint peer, localEndpoint(listener.get()));
    {
      ASSIGN_OR_RETURN(const auto inside,
                       netlink::ScopedNamespace::enter(cluster_->nodeNamespace(0)));
      ASSIGN_OR_RETURN(connecting, beginConnect(place(0), peer));
    }
    if (!test::pollUntil(kLong, [&] {
          accepted.reset(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
          return accepted.valid();
        })) {
      return errorf(Code::kDeadlineExceeded, "nobody connected");
    }
    pollfd writable{connecting.get(), POLLOUT, 0};
    poll(&writable, 1, 1000);
    RETURN_IF_ERROR(connectOutcome(connecting.get()));
    out_ = std::make_unique<TcpRail>(0, std::move(connecting), sender_);
    in_ = std::make_unique<TcpRail>(0, std::move(accepted), receiver_);
    return okStatus();
  }

  /// The receiver takes nothing more, as far as the sender knows.
  bool closed() const {
    int inSocket = 0, unsent = 0;
    EXPECT_EQ(ioctl(out_->fd(), SIOCOUTQ, &inSocket), 0);
    EXPECT_EQ(ioctl(out_->fd(), SIOCOUTQNSD, &unsent), 0);
    return unsent > 0 && unsent == inSocket;
  }

  /// How often the sender's kernel has asked whether that is still so.
  std::uint64_t probes() const {
    const auto inside = netlink::ScopedNamespace::enter(cluster_->nodeNamespace(0));
    EXPECT_TRUE(inside.ok()) << inside.status().message();
    std::ifstream file("/proc/thread-self/net/netstat");
    for (std::string names, values; std::getline(file, names) && std::getline(file, values);) {
      std::istringstream name(names), value(values);
      for (std::string what, count; name >> what && value >> count;) {
        if (what == "TCPWinProbe") return std::stoull(count);
      }
    }
    ADD_FAILURE() << "the kernel does not count window probes";
    return 0;
  }

  void readAll() {
    for (int unread = 1; unread > 0;) {
      in_->read();
      ASSERT_EQ(ioctl(in_->fd(), FIONREAD, &unread), 0);
    }
  }

  inline static const std::vector<std::byte> kChunk = std::vector<std::byte>(64 << 10);
  static constexpr int kChunks = 8;  // at a time: sockets grow with what they carry
  CountingSink sender_, receiver_;
  std::unique_ptr<cluster::NetnsCluster> cluster_;
  netlink::LinkEnd port_;
  std::unique_ptr<TcpRail> out_, in_;
  std::uint64_t sequence_ = 0;
};

TEST_F(LostWindowTest, IsToldAgainWithAWordInTheOtherDirection) {
  // The kernel's own timer comes first where the machine is slow: once more, then.
  ASSERT_TRUE(test::pollUntil(4 * kLong, [&] {
    const bool full = test::pollUntil(kLong, [&] {
      out_->write(true);
      for (int chunk = 0; chunk < kChunks && !out_->wantsWritable(); ++chunk) {
        out_->submit({.sequence = sequence_++, .slot = 1, .length = 64 << 10}, kChunk.data(), {});
        out_->write(true);
      }
      return closed();
    });
    EXPECT_TRUE(full) << "the receiver took everything";
    const std::uint64_t before = probes();
    constexpr std::array<netlink::DropRule, 1> kAll{{{.passing = netlink::Passing::kReceived}}};
    EXPECT_OK(netlink::addDropRules(*port_.socket, port_.ifindex, kAll));
    readAll();
    EXPECT_OK(netlink::removeDropRules(*port_.socket, port_.ifindex));
    // Acknowledgements that waited for a moment would come now.
    constexpr int kMomentMs = 5;
    poll(nullptr, 0, kMomentMs);
    const bool lost = closed();
    in_->tellRoom();
    in_->write(true);
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return !closed(); }));
    const bool told = lost && probes() == before;
    EXPECT_TRUE(test::pollUntil(kLong, [&] {
      out_->write(true);
      in_->read();
      out_->read();
      return receiver_.arrived == static_cast<int>(sequence_);
    }));
    return told || HasFailure();
  }));
  EXPECT_EQ(sender_.arrived, 0);
}

}  // namespace
}  // namespace faultline::transport::tcp
