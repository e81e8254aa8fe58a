#include "resilient_ccl/nccl/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_rules.h"

namespace faultline::nccl {
namespace {

using telemetry::EventKind;
using ::testing::IsEmpty;

constexpr TimePoint kBegin{5s};

std::vector<Device> twoRails() {
  return {{.interface = {.name = "rail0"}, .pciPath = {}},
          {.interface = {.name = "rail1"}, .pciPath = {}}};
}

History::Happening failover(Duration at, Duration length) {
  return {.event = {.at = kBegin + at,
                    .length = length,
                    .bytes = 65536,
                    .rail = 1,
                    .kind = EventKind::kFailedOver},
          .cause = channel::Cause::kLocalNic,
          .pause = 7ms};
}

TEST(NcclTraceTest, ShowsFailoversAndBytesOfEachRail) {
  PeerHistory peer{.peer = "host:7", .history = {}};
  peer.history.sample(kBegin, {0, 0});
  peer.history.add(failover(10ms, 4ms));
  peer.history.add({.event = {.at = kBegin + 60ms, .rail = 1, .kind = EventKind::kRailUp}});
  peer.history.sample(kBegin + 100ms, {1000, 2000});
  const auto trace = testing::TraceJson::parse(traceJson(twoRails(), {peer}));
  EXPECT_THAT(testing::traceViolations(trace), IsEmpty());
  int failovers = 0, ups = 0;
  std::map<std::string, int> sent;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "failed_over") {
      ++failovers;
      EXPECT_EQ(event["ph"], "X");
      EXPECT_EQ(event["ts"], 10'000);
      EXPECT_EQ(event["dur"], 4'000);
      EXPECT_EQ(event["args"]["cause"], "local_nic");
      EXPECT_EQ(event["args"]["bytes_resent"], 65536);
      EXPECT_EQ(event["args"]["pause_ms"], 7);
    }
    if (event["name"] == "rail_up") ++ups;
    if (event["ph"] == "C") sent[event["name"]] = event["args"]["bytes"];
  }
  EXPECT_EQ(failovers, 1);
  EXPECT_EQ(ups, 1);
  EXPECT_EQ(sent, (std::map<std::string, int>{{"rail 0 (rail0) sent", 1000},
                                              {"rail 1 (rail1) sent", 2000}}));
}

TEST(NcclTraceTest, KeepsTheRulesOfItsFormatWhateverComes) {
  PeerHistory odd{.peer = "\xff\xfe", .history = {}};
  odd.history.add(failover(10ms, 0ms));
  odd.history.add(failover(30ms, 10ms));
  odd.history.add(failover(35ms, 10ms));  // before the one before has ended
  odd.history.add(failover(20ms, 5ms));   // told late
  odd.history.add({.event = {.at = kBegin + 50ms, .kind = EventKind::kLinkFailed}});
  for (const auto& peers : {std::vector<PeerHistory>{}, {odd}, {odd, {"", {}}}}) {
    const auto trace = testing::TraceJson::parse(traceJson(twoRails(), peers));
    EXPECT_THAT(testing::traceViolations(trace), IsEmpty());
  }
}

TEST(NcclTraceTest, EachPeerIsAGroupOfTracksAndTheFirstHasNumberOne) {
  PeerHistory first{.peer = "host:7", .history = {}}, second{.peer = "host:8", .history = {}};
  first.history.add({.event = {.at = kBegin, .rail = 0, .kind = EventKind::kRailUp}});
  second.history.add(failover(10ms, 4ms));
  const auto trace = testing::TraceJson::parse(traceJson(twoRails(), {first, second}));
  std::map<int, std::string> groups;
  std::map<std::string, int> groupOf;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") groups[event["pid"]] = event["args"]["name"];
    if (event.value("cat", "") == "rail") groupOf[event["name"]] = event["pid"];
  }
  EXPECT_EQ(groups, (std::map<int, std::string>{{1, "host:7"}, {2, "host:8"}}));
  EXPECT_EQ(groupOf, (std::map<std::string, int>{{"rail_up", 1}, {"failed_over", 2}}));
}

TEST(NcclTraceTest, EventsWithoutRoomAreCountedOfAllPeers) {
  std::vector<PeerHistory> peers(2);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (std::size_t n = 0; n < History::kMostEvents + 1 + i; ++n) {
      peers[i].history.add(failover(10ms, 4ms));
    }
  }
  const auto trace = testing::TraceJson::parse(traceJson(twoRails(), peers));
  EXPECT_EQ(trace["otherData"]["events_dropped"], 1 + 2);
}

TEST(NcclTraceTest, AJobOfWeeksHasATraceOfBoundedSize) {
  History history;
  TimePoint time = kBegin;
  constexpr int kSteps = 100'000;
  for (int i = 0; i < kSteps; ++i, time += History::kFirstPause) {
    if (history.due(time)) history.sample(time, {i});
    history.add(failover(i * 1ms, 1us));
  }
  EXPECT_LE(history.samples().size(), History::kMostSamples);
  EXPECT_GE(history.samples().size(), History::kMostSamples / 4);
  EXPECT_EQ(history.samples().front().at, kBegin);
  const Duration pause = history.samples()[1].at - kBegin;
  for (std::size_t i = 1; i < history.samples().size(); ++i) {
    ASSERT_EQ(history.samples()[i].at - history.samples()[i - 1].at, pause) << i;
  }
  EXPECT_GT(history.samples().back().sentByRail[0], kSteps * 0.99);
  EXPECT_EQ(history.happenings().size(), History::kMostEvents);
  EXPECT_EQ(history.dropped(), kSteps - History::kMostEvents);
}

}  // namespace
}  // namespace faultline::nccl
