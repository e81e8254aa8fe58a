#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fuzz/messages/messages_entry.h"
#include "tests/support/corpus.h"
#include "wire/agent.h"
#include "wire/guest.h"
#include "wire/rank.h"
#include "wire/service.h"

namespace faultline::fuzz {
namespace {

int feed(const std::string& bytes) {
  return messageReader(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

template <typename Protocol, typename Message>
std::string textOf(Message message) {
  return wire::toJson(Protocol(std::move(message))).dump();
}

/// What processes say to each other.
std::vector<std::string> messages() {
  wire::Network network;
  network.failovers.push_back({.peer = 1, .cause = "path", .detected = TimePoint(5s)});
  network.plans.push_back({.health = {{1, 0.5}}, .predictedMs = 2.5});
  network.trace = wire::Trace{{"chunk_sent"}, {1}, {0}, {TimePoint(1s)}, {1us}, {7}, {3}};
  network.counters["chunks_sent"] = 7;
  const wire::GuardJob job{.programs = {{.executable = "/bin/true", .arguments = {"true"}}}};
  return {
      textOf<wire::ToRank>(wire::Start{}),
      textOf<wire::FromRank>(wire::Begin{3, false, TimePoint(4s)}),
      textOf<wire::FromRank>(wire::End{.iteration = 3, .network = network}),
      textOf<wire::FromRank>(wire::Error{Code::kAborted, "gave up", network}),
      textOf<wire::ToGuard>(job),
      textOf<wire::FromGuard>(wire::GuardedEnded{.program = 1, .signal = 9}),
      textOf<wire::ToAgent>(wire::StartJob{1, job, true}),
      textOf<wire::FromAgent>(wire::HolderSaid{2, wire::HolderAnswer{.lapsed = TimePoint(3ms)}}),
      textOf<wire::ToHolder>(wire::HeldFault{.kind = "qp_error", .parameters = {{"a", "b"}}}),
      textOf<wire::ToService>(wire::ServiceStrike{
          .kind = "port_down", .interface = "eth1", .longest = 2s, .lease = 1s, .keep = {"::1"}}),
      textOf<wire::FromService>(wire::ServiceFacts{
          .kinds = {"throttle"}, .policy = wire::ServicePolicy{}, .strikes = {{.id = "1-2-3"}}}),
      textOf<wire::ToRoom>(wire::RoomJob{.guests = {{"qemu"}}})};
}

TEST(MessagesFuzzTest, WhatProcessesSayKeepsThePromises) {
  for (const std::string& text : messages()) EXPECT_GE(feed(text), 1) << text;
}

TEST(MessagesFuzzTest, MutationsKeepThePromises) {
  constexpr int kTexts = 20'000;
  int read = 0;
  testing::feedMutations(messages(), "{}[]:,\"0123456789.-eEnulltruefalse", kTexts,
                         [&](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           read += feed(text) > 0 ? 1 : 0;
                         });
  EXPECT_GT(read, kTexts / 200);  // some changes leave a message
  EXPECT_LT(read, kTexts);
}

}  // namespace
}  // namespace faultline::fuzz
