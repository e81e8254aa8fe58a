#include "tests/unit/transport/threaded_rail_fixture.h"

// The I/O thread moves the bytes: against the plain rail, and against raw bytes that stop in the
// middle.

namespace faultline::transport::tcp {
namespace {

TEST_F(ThreadedRailTest, ChunksOfAPlainRailArriveInTheirPlaces) {
  PlainSink sink;
  TcpRail plain(0, std::move(far_), sink);
  std::uint64_t next = 0;
  const auto done = [&] {
    // No more outstanding than a channel would have.
    while (next < kChunks && next < owner_.arrivals.size() + 20) {
      plain.submit(header(next), data(next), {});
      ++next;
    }
    plain.write(/*streamIsWritable=*/true);
    return owner_.arrivals.size() == kChunks;
  };
  ASSERT_TRUE(owner_.collectUntil(*rail_, done));
  for (std::uint64_t i = 0; i < kChunks; ++i) {
    EXPECT_EQ(owner_.arrivals[i].header.sequence, i);
    EXPECT_TRUE(owner_.arrivals[i].staged.empty());
    EXPECT_EQ(owner_.arrivals[i].holder, kSelf);
  }
  EXPECT_EQ(target_, source_);
}

TEST_F(ThreadedRailTest, APlainRailGetsWhatIsSubmitted) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  for (int round = 1; round <= 5; ++round) {  // more than a ring in all
    std::ranges::fill(sink.region, std::byte{0});
    for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
    rail_->transmit();
    for (const TimePoint deadline = now() + kLong; sink.arrived.size() < round * kChunks;) {
      ASSERT_LT(now(), deadline);
      plain.read();
    }
    EXPECT_EQ(sink.region, source_);
  }
}

TEST_F(ThreadedRailTest, MoreThanARingIsSubmittedInOrder) {
  PlainSink sink;
  sink.region.resize(kLength);
  TcpRail plain(0, std::move(far_), sink);
  constexpr std::uint64_t kMany = 1000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    rail_->submit({.sequence = i, .slot = kSlot}, nullptr, {});
  }
  rail_->transmit();
  for (const TimePoint deadline = now() + kLong; sink.arrived.size() < kMany;) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_EQ(sink.arrived[i].sequence, i);
}

TEST_F(ThreadedRailTest, AFenceInTheMiddleOfAChunkEndsItsWriter) {
  sayAll(0);
  sayHalf(1);
  awaitRead();
  rail_->fence();
  EXPECT_TRUE(rail_->fenced());
  ASSERT_EQ(owner_.arrivals.size(), 1u) << "what had arrived is handed over";
  ASSERT_FALSE(untouched(1, 0)) << "nothing of the second chunk had arrived";
  overwrite(1, 0xaa);
  EXPECT_FALSE(sendAll(far_.get(), data(1), kPiece, now() + kLong).ok()) << "still open";
  EXPECT_TRUE(untouched(1, 0xaa));
  EXPECT_TRUE(owner_.failures.empty());
}

TEST_F(ThreadedRailTest, AFenceHandsOverWhatTheKernelHasInOrder) {
  constexpr std::uint64_t kSaid = 2;  // what the socket takes at once
  for (std::uint64_t i = 0; i < kSaid; ++i) sayAll(i);
  rail_->fence();
  ASSERT_EQ(owner_.arrivals.size(), kSaid);
  for (std::uint64_t i = 0; i < kSaid; ++i) {
    EXPECT_EQ(owner_.arrivals[i].header.sequence, i);
    EXPECT_TRUE(std::equal(data(i), data(i) + kPiece, target_.begin() + i * kPiece));
  }
}

TEST_F(ThreadedRailTest, AfterAFenceNobodyReadsTheSendersBuffers) {
  for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
  rail_->transmit();
  rail_->fence();
  std::vector<std::byte> stream;
  for (std::uint64_t i = 0; i < kChunks; ++i) {
    const ChunkHeader chunk = header(i);
    const auto bytes = std::as_bytes(std::span(&chunk, 1));
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    stream.insert(stream.end(), data(i), data(i) + chunk.length);
  }
  std::ranges::fill(source_, std::byte{0xee});  // the user's again
  std::vector<std::byte> got(stream.size());
  std::size_t count = 0;
  for (ssize_t step = 1; step > 0; count += std::max<ssize_t>(step, 0)) {
    step = recv(far_.get(), got.data() + count, got.size() - count, MSG_DONTWAIT);
  }
  EXPECT_LT(count, stream.size()) << "the fence came too late to show anything";
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + count, stream.begin()));
}

TEST_F(ThreadedRailTest, APlaceThatAnotherRailHasIsNotWritten) {
  ASSERT_EQ(places_.claim(kOther, header(0))->holder, kOther);
  sayAll(0);
  sayAll(1);
  collect(2);
  EXPECT_EQ(owner_.arrivals[0].holder, kOther);
  EXPECT_TRUE(std::ranges::equal(owner_.arrivals[0].staged, std::span(data(0), kPiece)));
  EXPECT_TRUE(untouched(0, 0));
  EXPECT_TRUE(owner_.arrivals[1].staged.empty());
  EXPECT_FALSE(untouched(1, 0));
}

TEST_F(ThreadedRailTest, ARepetitionDoesNotWriteThePlaceAgain) {
  sayAll(0);
  collect(1);
  overwrite(0, 0xaa);  // the channel may have handed it over
  sayAll(0);
  collect(2);
  EXPECT_EQ(owner_.arrivals[1].holder, kSelf);
  EXPECT_EQ(owner_.arrivals[1].staged.size(), kPiece);
  EXPECT_TRUE(untouched(0, 0xaa));
}

TEST_F(ThreadedRailTest, ChunksOfAClosedSlotGoToScratch) {
  places_.close(kSlot);
  sayAll(0);
  collect(1);
  EXPECT_TRUE(owner_.arrivals[0].staged.empty());
  EXPECT_TRUE(untouched(0, 0));
}

TEST_F(ThreadedRailTest, AReleasedPlaceIsNotWrittenAnyMore) {
  sayHalf(0);
  awaitRead();
  ASSERT_FALSE(untouched(0, 0)) << "nothing had arrived";
  rail_->release(header(0));
  overwrite(0, 0xaa);
  sayRest(0);
  sayAll(1);
  collect(2);
  EXPECT_TRUE(untouched(0, 0xaa));
  EXPECT_TRUE(std::equal(data(1), data(1) + kPiece, target_.begin() + kPiece));
}

TEST_F(ThreadedRailTest, AReleasedSlotIsNotWrittenAnyMore) {
  sayHalf(0);
  awaitRead();
  places_.close(header(0).slot);
  rail_->releaseSlot(header(0).slot + 1);
  rail_->releaseSlot(header(0).slot);
  overwrite(0, 0xaa);
  overwrite(1, 0xaa);
  sayRest(0);
  sayAll(1);  // its places are closed: into scratch memory
  collect(2);
  EXPECT_TRUE(untouched(0, 0xaa));
  EXPECT_TRUE(untouched(1, 0xaa));
}

TEST_F(ThreadedRailTest, ReleasingAnotherChunkThanTheOneArrivingDoesNothing) {
  sayAll(0);
  sayHalf(1);
  awaitRead();
  rail_->release(header(0));
  rail_->release(header(2));
  ChunkHeader otherSlot = header(1);
  ++otherSlot.slot;
  rail_->release(otherSlot);
  sayRest(1);
  collect(2);
  EXPECT_TRUE(std::equal(data(1), data(1) + kPiece, target_.begin() + kPiece));
}

TEST_F(ThreadedRailTest, TheUserGetsItsBufferBackAfterADetach) {
  PlainSink sink;
  sink.region.resize(kLength);
  for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
  const std::uint64_t last = kChunks - 1;
  EXPECT_TRUE(rail_->detach(last)) << "the I/O thread has not even been woken";
  rail_->transmit();
  pollfd begun{far_.get(), POLLIN, 0};
  ASSERT_EQ(poll(&begun, 1, /*timeout=*/20'000), 1);  // and nobody reads: the socket fills
  int carriedOn = 0;
  for (std::uint64_t i = 0; i < last; ++i) carriedOn += !rail_->detach(i);
  const std::vector<std::byte> before = source_;
  std::ranges::fill(source_, std::byte{0xee});
  TcpRail plain(0, std::move(far_), sink);
  for (const TimePoint deadline = now() + kLong; sink.arrived.size() < kChunks;) {
    ASSERT_LT(now(), deadline);
    plain.read();
  }
  int payloads = 0;
  for (std::uint64_t i = 0; i < kChunks; ++i) {
    ASSERT_EQ(sink.arrived[i].sequence, i);
    if (sink.arrived[i].slot == kNoSlot) continue;
    ++payloads;
    EXPECT_TRUE(std::equal(before.begin() + i * kPiece,
                           before.begin() + i * kPiece + header(i).length,
                           sink.region.begin() + i * kPiece));
  }
  EXPECT_EQ(payloads, carriedOn);
}

TEST_F(ThreadedRailTest, AnEndIsToldOnceAndAfterWhatArrivedBefore) {
  sayAll(0);
  far_.reset();
  ASSERT_TRUE(owner_.collectUntil(*rail_, [&] { return !owner_.failures.empty(); }));
  EXPECT_EQ(owner_.arrivals.size(), 1u);
  EXPECT_EQ(owner_.failures[0].code(), Code::kUnavailable);
  rail_->collect();
  rail_->fence();
  EXPECT_EQ(owner_.failures.size(), 1u);
}

TEST_F(ThreadedRailTest, AFailedRailDoesNotKeepItsThreadAwake) {
  far_.reset();
  ASSERT_TRUE(owner_.collectUntil(*rail_, [&] { return !owner_.failures.empty(); }));
  const auto cpuTime = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const TimePoint begin = now();
  const Duration before = cpuTime();
  std::this_thread::sleep_for(100ms);  // nothing to wait for: nothing must happen
  EXPECT_LT((cpuTime() - before) * 2, now() - begin);
}

TEST_F(ThreadedRailTest, ALieIsAFailureAndWritesNothing) {
  ChunkHeader lie = header(1);
  lie.offset -= 1;
  say(&lie, sizeof(lie));
  ASSERT_TRUE(owner_.collectUntil(*rail_, [&] { return !owner_.failures.empty(); }));
  EXPECT_EQ(owner_.failures[0].code(), Code::kInvalidArgument);
  (void)sendAll(far_.get(), data(0), kPiece, now() + kLong);
  rail_->fence();
  EXPECT_TRUE(owner_.arrivals.empty());
  EXPECT_EQ(std::ranges::count(target_, std::byte{0}), static_cast<std::ptrdiff_t>(kLength));
}

TEST_F(ThreadedRailTest, APeerThatWaitsForNothingIsAFailure) {
  const std::vector<ChunkHeader> flood(1000, ChunkHeader{.slot = kNoSlot});
  say(flood.data(), flood.size() * sizeof(ChunkHeader));
  awaitRead();
  rail_->collect();
  ASSERT_EQ(owner_.failures.size(), 1u);
  EXPECT_EQ(owner_.failures[0].code(), Code::kInvalidArgument);
}

TEST_F(ThreadedRailTest, TheThreadEndsWhileItsRailsAreBusy) {
  for (std::uint64_t i = 0; i < kChunks; ++i) rail_->submit(header(i), data(i), {});
  rail_->transmit();
  sayHalf(0);
  thread_.reset();
  overwrite(0, 0xaa);
  sayRest(0);
  EXPECT_TRUE(untouched(0, 0xaa));
}

}  // namespace
}  // namespace faultline::transport::tcp
