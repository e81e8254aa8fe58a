#include "tests/unit/transport/threaded_rail_fixture.h"

// Whoever owns the rail moves the bytes.

namespace faultline::transport::tcp {
namespace {

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
      rail_->setMover((out * 7 + in * 3 + round) % 4 < 2 ? Mover::kOwner : Mover::kThread);
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

}  // namespace
}  // namespace faultline::transport::tcp
