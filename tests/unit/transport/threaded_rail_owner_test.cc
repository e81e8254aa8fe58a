#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>

#include "tests/support/poll_until.h"
#include "tests/unit/transport/threaded_rail_fixture.h"

// Whoever owns the rail moves the bytes, or another thread than at first.

namespace faultline::transport::tcp {
namespace {

/// Whether a thread of this process waits for something.
bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(status, text);
  const std::size_t name = text.rfind(") ");
  return name != std::string::npos && text.substr(name + 2, 1) == "S";
}

TEST_F(ThreadedRailTest, AnOwnerThatMovesReadsItself) {
  rail_->setMover(Mover::kOwner);
  sayAll(0);
  std::this_thread::sleep_for(20ms);  // an I/O thread that still read would have
  int there = 0;
  ASSERT_EQ(ioctl(rail_->fd(), FIONREAD, &there), 0);
  EXPECT_GE(there, static_cast<int>(kPiece)) << "the thread has read";
  ASSERT_EQ(owner_.watched, rail_.get());
  rail_->read();
  EXPECT_TRUE(owner_.arrivals.empty()) << "handed over from inside read";
  EXPECT_TRUE(rail_->collect());
  ASSERT_EQ(owner_.arrivals.size(), 1u);
  EXPECT_EQ(owner_.arrivals[0].header.sequence, 0u);
  EXPECT_TRUE(std::equal(data(0), data(0) + kPiece, target_.begin()));
  EXPECT_FALSE(rail_->collect()) << "nothing has come since";
}

TEST_F(ThreadedRailTest, AnOwnerThatMovesSendsWhenItTransmits) {
  rail_->setMover(Mover::kOwner);
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  rail_->submit(header(0), data(0), {});
  plain.read();
  EXPECT_TRUE(sink.arrived.empty());
  rail_->transmit();
  plain.read();  // no waiting: the call has sent it
  ASSERT_EQ(sink.arrived.size(), 1u);
  EXPECT_TRUE(std::equal(data(0), data(0) + kPiece, sink.region.begin()));
}

TEST_F(ThreadedRailTest, WhatAnOwnersSocketDoesNotTakeTheThreadSends) {
  rail_->setMover(Mover::kOwner);
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
  rail_->transmit();
  for (const TimePoint deadline = now() + kLong; sink.arrived.size() < kChunks;) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
  EXPECT_EQ(sink.region, source_);
}

TEST_F(ThreadedRailTest, AnOwnerThatCannotWatchItsSocketLeavesItToTheThread) {
  owner_.refuses = true;
  rail_->setMover(Mover::kOwner);
  sayAll(0);
  collect(1);
}

TEST_F(ThreadedRailTest, AnOwnerThatMovesHearsOfTheEnd) {
  rail_->setMover(Mover::kOwner);
  sayAll(0);
  far_.reset();
  for (const TimePoint deadline = now() + kLong; owner_.failures.empty();) {
    ASSERT_LT(now(), deadline);
    rail_->read();
    rail_->collect();
  }
  EXPECT_EQ(owner_.arrivals.size(), 1u);
  rail_->fence();
  EXPECT_EQ(owner_.watched, nullptr) << "its socket is closed";
  rail_->setMover(Mover::kThread);
  rail_->setMover(Mover::kOwner);
  rail_->transmit();
  EXPECT_FALSE(rail_->collect());
  EXPECT_EQ(owner_.failures.size(), 1u);
}

TEST_F(ThreadedRailTest, AFenceOfAnOwnerThatMovesHandsOverWhatTheKernelHas) {
  rail_->setMover(Mover::kOwner);
  sayAll(0);
  rail_->fence();
  ASSERT_EQ(owner_.arrivals.size(), 1u);
  EXPECT_TRUE(std::equal(data(0), data(0) + kPiece, target_.begin()));
}

TEST_F(ThreadedRailTest, AThreadThatWaitsForTheFenceOfItsRailDoesNothingAfterIt) {
  rail_->setMover(Mover::kOwner);
  rail_->submit(header(0), data(0), {});  // that a thread could send
  std::atomic<pid_t> id{0};
  std::future<ThreadedRail::Served> served;
  owner_.unwatching = [&] {
    served = std::async(std::launch::async, [&] {
      id = gettid();
      return rail_->serve(*thread_, EPOLLIN);
    });
    ASSERT_TRUE(test::pollUntil(kLong, [&] { return id != 0 && sleeps(id); }));
  };
  rail_->fence();
  ASSERT_TRUE(served.valid());
  EXPECT_NE(served.get(), ThreadedRail::Served::kBusy);
}

TEST_F(ThreadedRailTest, WhileTheRailIsHeldNobodyWaitsWhoNeedNot) {
  rail_->setMover(Mover::kOwner);
  std::future<ThreadedRail::Served> other;
  std::future<void> submitted;
  owner_.unwatching = [&] {
    other = std::async(std::launch::async, [&] { return rail_->serve(*common_, EPOLLIN); });
    EXPECT_EQ(other.wait_for(kLong), std::future_status::ready) << "it is not its turn";
    submitted = std::async(std::launch::async, [&] { rail_->submit(header(0), data(0), {}); });
    EXPECT_EQ(submitted.wait_for(kLong), std::future_status::ready) << "there is room";
  };
  rail_->fence();
  ASSERT_TRUE(other.valid() && submitted.valid());
  EXPECT_EQ(other.get(), ThreadedRail::Served::kIdle);
}

TEST_F(ThreadedRailTest, OneOfTwoThreadsServes) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  const auto bothWays = [&](std::uint64_t i) {
    plain.submit(header(i), data(i), {});
    rail_->submit(header(i), data(i), {});
    rail_->transmit();
    for (const TimePoint deadline = now() + kLong; sink.arrived.size() <= i;) {
      ASSERT_LT(now(), deadline) << i;
      plain.write(/*streamIsWritable=*/true);
      plain.read();
    }
    collect(i + 1);
  };
  rail_->setMover(Mover::kCommonThread);
  bothWays(0);
  rail_->setMover(Mover::kThread);
  bothWays(1);
  rail_->setMover(Mover::kCommonThread);
  thread_ = nullptr;  // ended: nobody but the common one can serve
  bothWays(2);
  EXPECT_TRUE(std::equal(data(0), data(3), target_.begin()));
}

TEST_F(ThreadedRailTest, WhatOneThreadHasNotSentTheOtherDoes) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
  rail_->transmit();
  rail_->setMover(Mover::kCommonThread);
  for (const TimePoint deadline = now() + kLong; sink.arrived.size() < kChunks;) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
  EXPECT_EQ(sink.region, source_);
}

TEST_F(ThreadedRailTest, BothThreadsForgetARailThatIsFenced) {
  rail_->setMover(Mover::kCommonThread);
  sayAll(0);
  collect(1);
  rail_->fence();
  const std::weak_ptr<ThreadedRail> rail = std::exchange(rail_, nullptr);
  for (const TimePoint deadline = now() + kLong; !rail.expired();) ASSERT_LT(now(), deadline);
}

TEST_F(ThreadedRailTest, WhoseTurnItIsNotDoesNothing) {
  rail_->setMover(Mover::kCommonThread);
  EXPECT_TRUE(thread_->watch(*rail_, 0).ok()) << "it does not watch the socket any more";
  thread_->unwatch(rail_->fd());
  common_ = nullptr;  // ended: nobody reads now
  sayAll(0);
  EXPECT_EQ(rail_->serve(*thread_, EPOLLIN), ThreadedRail::Served::kIdle);
  int there = 0;
  ASSERT_EQ(ioctl(rail_->fd(), FIONREAD, &there), 0);
  EXPECT_GE(there, static_cast<int>(kPiece)) << "it has read";
}

TEST_F(ThreadedRailTest, WhereTheOtherThreadCannotWatchItTheFirstOneGoesOn) {
  ASSERT_TRUE(common_->watch(*rail_, 0).ok());  // a second time it will not do
  rail_->setMover(Mover::kCommonThread);
  sayAll(0);
  collect(1);
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  rail_->submit(header(0), data(0), {});
  rail_->transmit();
  for (const TimePoint deadline = now() + kLong; sink.arrived.empty();) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
}

TEST_F(ThreadedRailTest, ARailThatHasFailedMayChangeItsThread) {
  far_.reset();
  ASSERT_TRUE(owner_.collectUntil(*rail_, [&] { return !owner_.failures.empty(); }));
  rail_->setMover(Mover::kCommonThread);
  EXPECT_TRUE(common_->watch(*rail_, 0).ok()) << "nobody watches it, or would hear it for ever";
  common_->unwatch(rail_->fd());
  rail_->setMover(Mover::kThread);
  EXPECT_FALSE(rail_->collect());
  EXPECT_EQ(owner_.failures.size(), 1u);
}

TEST_F(ThreadedRailTest, WhoMovesMayChangeAtAnyTime) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  for (int round = 1; round <= 20; ++round) {
    std::ranges::fill(sink.region, std::byte{0});
    std::uint64_t out = 0, in = 0;
    const auto arrivedBefore = owner_.arrivals.size();
    for (const TimePoint deadline = now() + kLong;
         sink.arrived.size() < round * kChunks || owner_.arrivals.size() < round * kChunks;) {
      ASSERT_LT(now(), deadline);
      constexpr std::array kMovers{Mover::kOwner, Mover::kThread, Mover::kOwner,
                                   Mover::kCommonThread, Mover::kThread};
      rail_->setMover(kMovers[(out * 7 + in * 3 + round) % kMovers.size()]);
      if (out < kChunks) {
        rail_->submit(header(out), data(out), {});
        ++out;
      }
      rail_->transmit();
      if (in < kChunks && in < owner_.arrivals.size() - arrivedBefore + 20) {
        plain.submit(header(in), data(in), {});
        ++in;
      }
      plain.write(/*streamIsWritable=*/true);
      plain.read();
      if (owner_.watched != nullptr) rail_->read();
      rail_->collect();
    }
    EXPECT_EQ(sink.region, source_);
  }
  for (std::size_t i = 0; i < owner_.arrivals.size(); ++i) {
    ASSERT_EQ(owner_.arrivals[i].header.sequence, i % kChunks);
    ASSERT_EQ(sink.arrived[i].sequence, i % kChunks);
  }
}

TEST_F(ThreadedRailTest, AWordThatThereIsRoomGoesAtOnceWhoeverMoves) {
  for (const Mover mover : {Mover::kThread, Mover::kOwner, Mover::kCommonThread}) {
    rail_->setMover(mover);
    rail_->tellRoom();
    ChunkHeader word;
    ASSERT_TRUE(receiveAll(far_.get(), &word, sizeof(word), now() + kLong).ok());
    EXPECT_EQ(word, kRoomWord);
  }
  rail_->fence();
  rail_->tellRoom();
  char byte = 0;
  EXPECT_LE(recv(far_.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST_F(ThreadedRailTest, AWordThatThereIsRoomDisturbsNothingThatWaits) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  for (std::uint64_t i = 0; i < kChunks; ++i) {
    rail_->submit(header(i), data(i), {});
    rail_->tellRoom();
  }
  rail_->transmit();
  for (const TimePoint deadline = now() + kLong; sink.arrived.size() < kChunks;) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
  EXPECT_EQ(sink.region, source_);
  EXPECT_TRUE(sink.error.ok());
}

}  // namespace
}  // namespace faultline::transport::tcp
