#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include "injector/netlink/drop_filter.h"
#include "resilient_ccl/transport/tcp/tcp_rail.h"
#include "tests/netns/fabric/connected_nodes.h"

namespace faultline::transport::tcp {
namespace {

struct CountingSink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader&) override { return nullptr; }
  void chunkArrived(int, const ChunkHeader&) override { ++arrived; }
  void railFailed(int, const Status& why) override { ADD_FAILURE() << why.message(); }
  int arrived = 0;
};

/// A rail from node 0 to node 1, whose reader may be late.
class LostWindowTest : public ConnectedNodesTest {
 protected:
  void SetUp() override {
    ConnectedNodesTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK(connectNodes());
    out_ = std::make_unique<TcpRail>(0, std::move(connecting_), sender_);
    in_ = std::make_unique<TcpRail>(0, std::move(accepted_), receiver_);
  }

  /// The receiver takes nothing more, as far as the sender knows.
  bool closed() const { return waits(out_->fd()); }

  /// How often the sender's kernel has asked whether that is still so.
  std::uint64_t probes() const {
    const auto inside = enter(0);
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
  std::unique_ptr<TcpRail> out_, in_;
  std::uint64_t sequence_ = 0;
};

TEST_F(LostWindowTest, IsToldAgainWithAWordInTheOtherDirection) {
  // The kernel's own timer comes first where the machine is slow: once more, then.
  ASSERT_TRUE(test::pollUntil(kLong, [&] {
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
    // An acknowledgement that the receiver put off (by 40 ms) would come now, and the sender's own
    // question after 200.
    constexpr int kPutOffMs = 60;
    poll(nullptr, 0, kPutOffMs);
    const bool lost = closed();
    in_->tellRoom();
    in_->write(true);
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return !closed(); }));
    const bool told = lost && probes() == before && bytes(out_->fd(), FIONREAD) > 0;
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
