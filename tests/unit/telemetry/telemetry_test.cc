#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "resilient_ccl/telemetry/collector.h"

namespace faultline::telemetry {
namespace {

Event chunk(std::uint64_t number) {
  return {.at = now(),
          .bytes = 7,
          .number = number,
          .peer = 3,
          .rail = 1,
          .kind = EventKind::kChunkSent};
}

TEST(RecorderTest, AFullRingDropsAndCountsAndNeverWaits) {
  Recorder recorder(Mode::kOn);
  constexpr std::uint64_t kMore = 100;
  for (std::uint64_t i = 0; i < Recorder::kRing + kMore; ++i) recorder.record(chunk(i));
  EXPECT_EQ(recorder.made(), Recorder::kRing + kMore);
  EXPECT_EQ(recorder.dropped(), kMore);
  std::uint64_t taken = 0;
  while (const auto event = recorder.take()) EXPECT_EQ(event->number, taken++);
  EXPECT_EQ(taken, Recorder::kRing) << "the oldest are kept, in order";
  recorder.record(chunk(5));
  EXPECT_EQ(recorder.take()->number, 5u);
}

TEST(RecorderTest, NullMakesAndKeepsNothing) {
  Recorder recorder(Mode::kNull);
  for (std::uint64_t i = 0; i < 1000; ++i) recorder.record(chunk(i));
  EXPECT_EQ(recorder.made(), 1000u);
  EXPECT_EQ(recorder.dropped(), 0u);
  EXPECT_FALSE(recorder.take());
}

TEST(CollectorTest, EveryEventIsInTheTraceOrCountedAsDropped) {
  Recorder recorder(Mode::kOn);
  Collector collector(recorder);
  constexpr std::uint64_t kEvents = 200'000;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kEvents; ++i) recorder.record(chunk(i));
  });
  producer.join();
  const Trace trace = collector.trace();
  EXPECT_EQ(trace.made, kEvents);
  EXPECT_EQ(trace.events.size() + trace.dropped, kEvents);
  EXPECT_GE(trace.events.size(), Recorder::kRing);
  for (std::size_t i = 1; i < trace.events.size(); ++i) {
    ASSERT_LT(trace.events[i - 1].number, trace.events[i].number);
  }
}

TEST(CollectorTest, TheRingIsEmptiedWithoutBeingAsked) {
  Recorder recorder(Mode::kOn);
  Collector collector(recorder);
  std::uint64_t number = 0;
  while (recorder.dropped() == 0) recorder.record(chunk(++number));  // full
  const TimePoint deadline = now() + 20s;
  for (std::uint64_t before = 0; before != recorder.dropped() && now() < deadline;) {
    before = recorder.dropped();
    std::this_thread::sleep_for(1ms);
    recorder.record(chunk(++number));
  }
  EXPECT_LT(now(), deadline) << "nobody empties the ring";
}

TEST(CollectorTest, WhatHappensToRailsIsKeptAfterManyChunks) {
  Recorder recorder(Mode::kOn);
  Collector collector(recorder);
  for (std::uint64_t i = 0; i < 2 * Collector::kMostEvents; ++i) {
    recorder.record(chunk(i));
    if (i % 1000 == 0) (void)collector.trace();
  }
  recorder.record({.at = now(), .rail = 1, .kind = EventKind::kRailFence});
  const Trace trace = collector.trace();
  EXPECT_EQ(trace.events.size(), Collector::kMostTransfers + 1);
  EXPECT_EQ(trace.events.back().kind, EventKind::kRailFence);
  EXPECT_EQ(trace.events.size() + trace.dropped, trace.made);
}

TEST(EventTest, EveryKindHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (int kind = 0; kind <= static_cast<int>(EventKind::kLinkFailed); ++kind) {
    words.insert(nameOf(static_cast<EventKind>(kind)));
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(EventKind::kLinkFailed) + 1);
  EXPECT_FALSE(words.contains("unknown"));
}

}  // namespace
}  // namespace faultline::telemetry
