#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "resilient_ccl/transport/tcp/io_thread.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "resilient_ccl/transport/tcp/threaded_rail.h"

/// A rail that an I/O thread serves, over a pair of sockets.
namespace faultline::transport::tcp {

/// A thread that owns rails: what came for it.
class Owner : public ArrivalSink {
 public:
  static constexpr Duration kLong = 20s;

  Owner() { EXPECT_TRUE(bell.open().ok()); }

  void arrived(int, Arrival&& arrival) override { arrivals.push_back(std::move(arrival)); }
  void railFailed(int, const Status& why) override { failures.push_back(why); }
  Status watch(ThreadedRail& rail) override {
    watched = &rail;
    return refuses ? errorf(Code::kUnavailable, "no") : okStatus();
  }
  void unwatch(ThreadedRail& rail) override {
    EXPECT_EQ(watched, &rail);
    watched = nullptr;
    if (unwatching) unwatching();
  }

  /// Sleeps and collects as a progress thread does.
  bool collectUntil(ThreadedRail& rail, const std::function<bool()>& done) {
    for (const TimePoint deadline = now() + kLong; !done();) {
      if (now() > deadline) return false;
      bell.arm();
      const bool any = rail.collect();
      pollfd waiting{bell.fd(), POLLIN, 0};
      constexpr int kLongMs = 20'000;  // a bell that does not ring is seen
      if (!any && !done() && poll(&waiting, 1, kLongMs) == 0) return false;
      bell.disarm();
      bell.clear();
      rail.collect();
    }
    return true;
  }

  Doorbell bell;
  std::vector<Arrival> arrivals;
  std::vector<Status> failures;
  ThreadedRail* watched = nullptr;
  bool refuses = false;
  std::function<void()> unwatching;  // in the middle of a fence: nobody else gets at the rail
};

/// The plain rail at the other end.
struct PlainSink : RailSink {
  Result<std::byte*> place(int, const ChunkHeader& header) override {
    return header.slot == kNoSlot ? nullptr : region.data() + header.offset;
  }
  void chunkArrived(int, const ChunkHeader& header) override { arrived.push_back(header); }
  void railFailed(int, const Status& why) override { error = why; }

  std::vector<std::byte> region;
  std::vector<ChunkHeader> arrived;
  Status error;
};

class ThreadedRailTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPiece = 64 << 10;
  static constexpr std::uint32_t kSlot = 5;
  static constexpr int kSelf = 1, kOther = 0;
  static constexpr Duration kLong = Owner::kLong;
  static constexpr std::uint64_t kChunks = 40;
  static constexpr std::uint64_t kLength = kChunks * kPiece - 1000;

  void SetUp() override {
    auto thread = IoThread::start();
    ASSERT_TRUE(thread.ok());
    thread_ = std::move(*thread);
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    far_ = UniqueFd(ends[0]);
    auto common = IoThread::start();
    ASSERT_TRUE(common.ok());
    common_ = std::move(*common);
    rail_ = std::make_shared<ThreadedRail>(kSelf, UniqueFd(ends[1]), places_, owner_, owner_.bell,
                                           *thread_, *common_);
    thread_->add(rail_);
    common_->add(rail_);
    ASSERT_TRUE(rail_->start().ok());
    source_.resize(kLength);
    for (std::size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<std::byte>(i * 7 / 5);
    target_.assign(kLength, std::byte{0});
    places_.open(kSlot, target_.data(), kLength);
  }

  void TearDown() override {  // before the memory that they write
    thread_.reset();
    common_.reset();
  }

  static ChunkHeader header(std::uint64_t i) {
    const std::uint64_t offset = i * kPiece;
    return {
        .sequence = i,
        .offset = offset,
        .messageLength = kLength,
        .slot = kSlot,
        .length = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPiece, kLength - offset))};
  }
  const std::byte* data(std::uint64_t i) const { return source_.data() + i * kPiece; }

  void say(const void* bytes, std::size_t count) {
    ASSERT_TRUE(sendAll(far_.get(), bytes, count, now() + kLong).ok());
  }
  /// The header and the first half of the payload.
  void sayHalf(std::uint64_t i) {
    const ChunkHeader chunk = header(i);
    say(&chunk, sizeof(chunk));
    say(data(i), chunk.length / 2);
  }
  void sayRest(std::uint64_t i) {
    const ChunkHeader chunk = header(i);
    say(data(i) + chunk.length / 2, chunk.length - chunk.length / 2);
  }
  void sayAll(std::uint64_t i) {
    sayHalf(i);
    sayRest(i);
  }
  /// Until the I/O thread has taken all that was said.
  void awaitRead() {
    int left = 1;
    const TimePoint deadline = now() + kLong;
    while (left > 0) {
      ASSERT_LT(now(), deadline);
      ASSERT_EQ(ioctl(rail_->fd(), FIONREAD, &left), 0);
    }
    rail_->release({.slot = kNoSlot});  // behind what the thread is doing
  }
  void collect(std::size_t chunks) {
    ASSERT_TRUE(owner_.collectUntil(*rail_, [&] { return owner_.arrivals.size() >= chunks; }));
    ASSERT_EQ(owner_.arrivals.size(), chunks);
  }
  bool untouched(std::uint64_t i, int value) const {
    const auto begin = target_.begin() + i * kPiece;
    return std::all_of(begin, begin + header(i).length, [&](std::byte byte) {
      return byte == std::byte{static_cast<unsigned char>(value)};
    });
  }
  void overwrite(std::uint64_t i, int value) {
    std::fill_n(target_.begin() + i * kPiece, header(i).length,
                std::byte{static_cast<unsigned char>(value)});
  }

  Owner owner_;
  PlaceTable places_{Cut{kPiece}};
  std::unique_ptr<IoThread> thread_, common_;
  std::shared_ptr<ThreadedRail> rail_;
  UniqueFd far_;
  std::vector<std::byte> source_, target_;
};

}  // namespace faultline::transport::tcp
