#include "tests/netns/nccl/plugin_fixture.h"

// Faults of one rail: NCCL must see none of it.

namespace faultline::test {
namespace {

using ::testing::StartsWith;

struct Fault {
  const char* name;
  const char* kind;
  std::map<std::string, std::string> parameters{};
  const char* strategy;
  int ioThreads = 0;
  int group = 1;
  bool forks = false;
  int bytes = 200'000;
  bool aborts = false;
  bool failsOver = true;
  std::size_t changes = 0;  ///< of the port or path, at least
  bool heals = false;       ///< the rail is back while the fault lasts
  friend void PrintTo(const Fault& fault, std::ostream* out) {
    *out << fault.kind << ", " << fault.strategy;
  }
};

class NcclPluginFaultTest : public NcclPluginTest,
                            public ::testing::WithParamInterface<std::tuple<Fault, int>> {};

TEST_P(NcclPluginFaultTest, NcclSeesNothingOfIt) {
  const auto& [its, version] = GetParam();
  // The trace has a sample of each rail's bytes in 100 ms, at first.
  constexpr Duration kTraced = 1500ms;
  startPeers({.version = version,
              .seconds = 60,
              .bytes = its.bytes,
              .group = its.group,
              .forks = its.forks,
              .aborts = its.aborts},
             {{"FAULTLINE_NET_STRATEGY", its.strategy},
              {"FAULTLINE_IO_THREADS", std::to_string(its.ioThreads)}});
  const TimePoint begin = now();
  // An abort meets the failure itself by chance only: several.
  const int strikes = its.aborts ? 3 : 1;
  for (int strike = 0; strike < strikes; ++strike) {
    const auto fault = makeTestFault(1, 0, its.kind, its.parameters);
    ASSERT_OK(fault->prepare());
    awaitLoad(0);
    ASSERT_OK(fault->apply());
    last(*fault, 700ms / strikes, its.changes);
    EXPECT_TRUE(!its.aborts || awaitAborts(3)) << "none begins while the rail is down";
    ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    if (its.heals) awaitLoad(0);
    ASSERT_OK(fault->revert());
    EXPECT_TRUE(!its.aborts || awaitAborts(2)) << "none begins any more";
  }
  awaitLoad(0);  // it is back
  EXPECT_TRUE(pollUntil(kLong, [&] { return now() - begin >= kTraced; }));
  const std::ofstream stop(folder_ / "stop");
  for (int side = 0; side < 2; ++side) {
    const std::string word = lastWord(side);
    EXPECT_THAT(word, StartsWith("ok ")) << word;
    const nlohmann::json told = counters(side);
    ASSERT_EQ(told["peers"].size(), 1U) << told;
    ASSERT_EQ(told["rails"].size(), 2U) << told;
    EXPECT_EQ(told["rails"][1]["partners"],
              nlohmann::json::parse(R"([{"path": "unknown", "rail": 0}])"));
    const nlohmann::json& peer = told["peers"][0];
    if (its.failsOver) {
      EXPECT_GE(peer["failovers"].get<int>(), 1) << peer;
      EXPECT_GE(peer["failbacks"].get<int>(), 1) << peer;
    }
    EXPECT_GT(peer["bytes_sent"].get<std::int64_t>(), 1'000'000) << peer;
    EXPECT_EQ(peer["failure"], "");
    const int eager = peer["messages_eager"].get<int>();
    EXPECT_TRUE(its.bytes > 16 << 10 || eager > 100) << peer;
    std::ifstream file(folder_ / fmt::format("trace{}", side));
    const auto trace = testing::TraceJson::parse(file, nullptr, /*allow_exceptions=*/false);
    ASSERT_THAT(testing::traceViolations(trace), ::testing::IsEmpty());
    EXPECT_EQ(happenings(trace, "failed_over"), peer["failovers"].get<int>());
    EXPECT_EQ(happenings(trace, "rail_up"), peer["failbacks"].get<int>());
    EXPECT_GE(happenings(trace, "rail 1 (rail1) sent"), 10);
    const std::vector<double> pauses = pausesMs(trace);
    EXPECT_NEAR(peer["longest_pause_ms"].get<double>(), std::ranges::max(pauses), 1e-3);
    EXPECT_NEAR(peer["paused_ms"].get<double>(), std::reduce(pauses.begin(), pauses.end()), 1e-2);
    std::printf("PAUSE %s, side %d: %s", its.name, side, word.c_str());
  }
}

std::string nameOf(const ::testing::TestParamInfo<std::tuple<Fault, int>>& its) {
  return fmt::format("{}_v{}", std::get<0>(its.param).name, std::get<1>(its.param));
}

const auto kFaults =
    ::testing::Values(Fault{.name = "carrier",
                            .kind = "port_down",
                            .parameters = {{"how", "carrier"}},
                            .strategy = "balance"},
                      Fault{.name = "hole", .kind = "blackhole", .strategy = "balance"},
                      Fault{.name = "reset",
                            .kind = "connection_reset",
                            .parameters = {{"connections", "all"}},
                            .strategy = "balance",
                            .ioThreads = 2,
                            .group = 2,
                            .forks = true},
                      Fault{.name = "one_way", .kind = "one_way_loss", .strategy = "balance"},
                      Fault{.name = "late",
                            .kind = "late_delivery",
                            .parameters = {{"hold", "300ms"}},
                            .strategy = "balance"},
                      // Two losses; later ones would be met by a rail that is held off.
                      Fault{.name = "path_flap",
                            .kind = "path_flap",
                            .parameters = {{"period", "350ms"}, {"duty", "60%"}},
                            .strategy = "balance",
                            .changes = 3},
                      Fault{.name = "port_flap",
                            .kind = "port_flap",
                            .parameters = {{"period", "350ms"}},
                            .strategy = "balance",
                            .changes = 3},
                      // Down, and up with another address; the way back is the same.
                      Fault{.name = "address",
                            .kind = "address_change",
                            .parameters = {{"down", "200ms"}},
                            .strategy = "balance",
                            .changes = 2,
                            .heals = true},
                      // TCP repairs it; the evidence says that frames were lost.
                      Fault{.name = "loss",
                            .kind = "loss",
                            .parameters = {{"percent", "5%"}},
                            .strategy = "balance",
                            .failsOver = false},
                      // Which come by receives that were posted ahead of NCCL's.
                      Fault{.name = "eager",
                            .kind = "connection_reset",
                            .parameters = {{"connections", "all"}},
                            .strategy = "balance",
                            .bytes = 12'000});
INSTANTIATE_TEST_SUITE_P(Faults, NcclPluginFaultTest, ::testing::Combine(kFaults, kVersions),
                         nameOf);

// What follows is in one version each, for the time that it takes. Which rail has which chunk is
// the channel's business, which knows no version.
const auto kPinned = ::testing::Values(
    Fault{.name = "grouped",
          .kind = "blackhole",
          .strategy = "hot_repair",
          .ioThreads = 1,
          .group = 4},
    Fault{.name = "reset_pinned",
          .kind = "connection_reset",
          .parameters = {{"connections", "all"}},
          .strategy = "hot_repair"},
    Fault{.name = "reset_one", .kind = "connection_reset", .strategy = "balance"},
    Fault{.name = "half_close",
          .kind = "connection_reset",
          .parameters = {{"how", "half_close"}},
          .strategy = "balance"},
    Fault{.name = "overload", .kind = "host_overload", .strategy = "balance", .failsOver = false});
INSTANTIATE_TEST_SUITE_P(Pinned, NcclPluginFaultTest,
                         ::testing::Combine(kPinned, ::testing::Values(11)), nameOf);

// Others begin, and are aborted with messages under way, in the fault too. Versions differ in how a
// communicator ends: 11 and 12 tell it, 10 does not.
const auto kAbortWithoutAnEnd = ::testing::Values(Fault{.name = "admin_aborts",
                                                        .kind = "port_down",
                                                        .parameters = {{"how", "admin"}},
                                                        .strategy = "hot_repair",
                                                        .aborts = true});
INSTANTIATE_TEST_SUITE_P(AbortsWithoutAnEnd, NcclPluginFaultTest,
                         ::testing::Combine(kAbortWithoutAnEnd, ::testing::Values(10)), nameOf);
const auto kAborts = ::testing::Values(
    Fault{.name = "hole_aborts", .kind = "blackhole", .strategy = "balance", .aborts = true},
    Fault{.name = "threads_aborts",
          .kind = "port_down",
          .parameters = {{"how", "carrier"}},
          .strategy = "balance",
          .ioThreads = 2,
          .aborts = true});
INSTANTIATE_TEST_SUITE_P(Aborts, NcclPluginFaultTest,
                         ::testing::Combine(kAborts, ::testing::Values(12)), nameOf);

}  // namespace
}  // namespace faultline::test
