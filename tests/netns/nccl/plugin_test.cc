#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/sanitizers.h"
#include "base/units.h"
#include "harness/cluster/cluster_plan.h"
#include "harness/cluster/netns_cluster.h"
#include "harness/launch/process.h"
#include "injector/faults/registry.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/trace_rules.h"

// The NCCL plugin in two nodes with two rails of 400 Mbit/s: processes that call it as NCCL's
// proxies do (tests/support/net_peer.cc), while the injector breaks rails. NCCL must see none of
// it; when nothing is left it must hear so in time.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Duration kLong = 30s;
/// For those that hear that nothing is left: by then their process has ended. The link gives up
/// 1 s sooner.
constexpr Duration kGiveUp = 5s;
#ifdef FAULTLINE_THREAD_SANITIZER
constexpr Duration kInTime = 2 * kGiveUp;
#else
constexpr Duration kInTime = kGiveUp;
#endif

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

class NcclPluginTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(cluster_, cluster::NetnsCluster::create(
                                       {.nodes = nodes(), .rails = 2, .rail_rate = 400'000'000}));
    std::string pattern = ::testing::TempDir() + "faultline-nccl-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    for (auto& peer : peers_) peer.reset();
    for (const auto& fault : faults_) EXPECT_OK(fault->revert());
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  virtual int nodes() const { return 2; }

  struct Talk {
    int version = 11;
    double seconds = 1;
    int bytes = 200'000;
    double late = 0;  ///< side 1 receives nothing from `seconds` on for so many
    int group = 1;    ///< messages of a receive
    int connections = 2;
    int first = 0;  ///< device of the first one
    bool forks = false;
    bool aborts = false;  ///< other communicators, meanwhile
    bool quits = false;   ///< ends without the destructors of the process
  };
  using Variables = std::map<std::string, std::string>;
  void startPeers(const Talk& talk, const Variables& environment = {}) {
    spawnPeers(talk, {environment, environment});
    ASSERT_TRUE(pollUntil(
        kLong, [&] { return output(0).starts_with("ready") && output(1).starts_with("ready"); }))
        << output(0) << output(1);
  }
  void spawnPeers(const Talk& talk, const std::array<Variables, 2>& environments) {
    for (int side = 0; side < 2; ++side) {
      spawn(side, side,
            {"--seconds", std::to_string(talk.seconds), "--bytes", std::to_string(talk.bytes),
             "--connections", std::to_string(talk.connections), "--first",
             std::to_string(talk.first), "--late", std::to_string(side == 1 ? talk.late : 0),
             "--group", std::to_string(talk.group), "--fork", std::to_string(talk.forks), "--abort",
             std::to_string(talk.aborts), "--quit", std::to_string(talk.quits)},
            talk.version, environments[side]);
    }
  }
  void spawn(int node, int side, const std::vector<std::string>& arguments, int version,
             Variables environment) {
    environment.emplace("FAULTLINE_NICS", "rail0,rail1");
    outputs_[node].reset(::memfd_create("output", MFD_CLOEXEC));
    environment["FAULTLINE_COUNTERS"] = (folder_ / fmt::format("counters{}", node)).string();
    environment["FAULTLINE_TRACE"] = (folder_ / fmt::format("trace{}", node)).string();
    launch::SpawnOptions options;
    options.executable = FAULTLINE_NET_PEER;
    options.arguments = {"net_peer", FAULTLINE_NET_PLUGIN, std::to_string(version),
                         folder_.string(), std::to_string(side)};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = environment;
    options.namespace_fd = cluster_->nodeNamespace(node);
    options.stdout_fd = outputs_[node].get();
    ASSERT_OK_AND_ASSIGN(peers_[node], launch::Process::spawn(options));
  }
  std::string output(int side) const {
    std::array<char, 8192> buffer{};
    const ssize_t size = ::pread(outputs_[side].get(), buffer.data(), buffer.size(), 0);
    return std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  /// What a peer printed last, once it has ended.
  std::string lastWord(int side) {
    const auto ended = peers_[side]->waitFor(kLong);
    EXPECT_OK(ended.status());
    const std::string text = output(side);
    return text.starts_with("ready\n") ? text.substr(6) : text;
  }
  /// Communicators that side 0 has aborted, or left to the other side's abort.
  int aborts() const {
    return static_cast<int>(
        std::ranges::count_if(std::filesystem::directory_iterator(folder_), [](const auto& entry) {
          const std::string name = entry.path().filename();
          return name.starts_with("abort-") && name.ends_with("-of-0");
        }));
  }
  bool awaitAborts(int more) const {
    const int enough = aborts() + more;
    return pollUntil(kLong, [&] { return aborts() >= enough; });
  }
  nlohmann::json counters(int side) const {
    std::ifstream file(folder_ / fmt::format("counters{}", side));
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }
  /// What happened to rails, by the trace: why a test failed.
  std::string railEvents(int side) const {
    std::ifstream file(folder_ / fmt::format("trace{}", side));
    const auto trace = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    std::string all;
    if (!trace.is_object()) return all;
    for (const nlohmann::json& event : trace["traceEvents"]) {
      if (event.value("cat", "") == "rail") all += event.dump() + "\n";
    }
    return all;
  }
  std::unique_ptr<injector::Fault> makeTestFault(
      int node, int rail, std::string_view kind,
      const std::map<std::string, std::string>& texts = {}) {
    const auto parameters = injector::FaultParameters::parse(*injector::findFaultKind(kind), texts);
    EXPECT_OK(parameters.status());
    auto fault = injector::makeFault(kind, *parameters, cluster_->railTarget(node, rail));
    EXPECT_OK(fault.status());
    return std::move(fault).value();
  }
  static int happenings(const testing::TraceJson& trace, std::string_view name) {
    return static_cast<int>(std::ranges::count_if(
        trace["traceEvents"], [&](const auto& event) { return event["name"] == name; }));
  }
  /// Of each failover.
  static std::vector<double> pausesMs(const testing::TraceJson& trace) {
    std::vector<double> pauses{0};
    for (const auto& event : trace["traceEvents"]) {
      if (event["name"] == "failed_over") {
        pauses.push_back(event["args"]["pause_ms"].template get<double>());
      }
    }
    return pauses;
  }
  /// So long, and until it has changed what it breaks so many times. What the fault does meanwhile
  /// it does when it is asked to.
  static void last(injector::Fault& fault, Duration time, std::size_t changes) {
    const TimePoint end = now() + time;
    EXPECT_TRUE(pollUntil(kLong, [&] {
      EXPECT_OK(fault.step(now()));
      return now() >= end && fault.transitions().size() >= changes;
    }));
  }
  /// What a rail has carried of node 1's, in the direction in which it is less.
  Bytes carried(int rail) const {
    std::vector<cluster::RailCounters> counters;
    EXPECT_OK(cluster_->readRailCounters(counters));
    const cluster::RailCounters& its = counters.at(2 + rail);
    return static_cast<Bytes>(std::min(its.tx_bytes, its.rx_bytes));
  }
  /// Waits until a rail has carried so much more each way: more than words about rails would be.
  void awaitLoad(int rail, Bytes more = 500'000) const {
    const Bytes enough = carried(rail) + more;
    EXPECT_TRUE(pollUntil(kLong, [&] { return carried(rail) >= enough; })) << "rail " << rail;
  }
  /// The counters of both sides of a talk in which no rail failed or was found slow, as it happens
  /// on a machine that stood still; nothing when each of several talks was such a one.
  std::optional<std::array<nlohmann::json, 2>> undisturbed(const Talk& talk,
                                                           const Variables& environment = {}) {
    constexpr int kTalks = 5;
    for (int i = 0; i < kTalks; ++i) {
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directory(folder_);
      startPeers(talk, environment);
      std::array<nlohmann::json, 2> told;
      for (int side = 0; side < 2; ++side) {
        EXPECT_THAT(lastWord(side), StartsWith("ok "));
        told[side] = counters(side)["peers"][0];
      }
      if (std::ranges::all_of(told, [](const nlohmann::json& peer) {
            return peer["failovers"] == 0 && peer["degradations"] == 0;
          })) {
        return told;
      }
    }
    return std::nullopt;
  }

  std::unique_ptr<cluster::NetnsCluster> cluster_;
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<injector::Fault>> faults_;
  std::array<UniqueFd, 3> outputs_;
  std::array<std::optional<launch::Process>, 3> peers_;  // one for each node
};

/// In each version of the interface that NCCL asks for.
class NcclPluginVersionTest : public NcclPluginTest, public ::testing::WithParamInterface<int> {};
const auto kVersions = ::testing::Values(10, 11, 12);

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
  std::ofstream(folder_ / "stop");
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
std::string versionName(const ::testing::TestParamInfo<int>& its) {
  return fmt::format("v{}", its.param);
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
const auto kPinned = ::testing::Values(Fault{.name = "grouped",
                                             .kind = "blackhole",
                                             .strategy = "hot_repair",
                                             .ioThreads = 1,
                                             .group = 4},
                                       Fault{.name = "reset_pinned",
                                             .kind = "connection_reset",
                                             .parameters = {{"connections", "all"}},
                                             .strategy = "hot_repair"});
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

INSTANTIATE_TEST_SUITE_P(Versions, NcclPluginVersionTest, kVersions, versionName);

// Smaller ones are done before it matters who carries them.
TEST_F(NcclPluginTest, RailsShareMessagesOfAnySize) {
  for (const int bytes : {20'000, 65'536, 1'000'000}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    startPeers({.bytes = bytes});
    for (int side = 0; side < 2; ++side) {
      const std::string word = lastWord(side);
      EXPECT_THAT(word, StartsWith("ok ")) << word;
      const nlohmann::json peer = counters(side)["peers"][0];
      ASSERT_EQ(peer["weight_by_rail"].size(), 2U) << peer;
      for (const double weight : peer["weight_by_rail"]) EXPECT_GT(weight, 0.25) << bytes;
    }
  }
}

TEST_F(NcclPluginTest, AConnectionPrefersItsNic) {
  const auto told = undisturbed({.seconds = 0.5, .bytes = 20'000, .connections = 1, .first = 1},
                                {{"FAULTLINE_NET_STRATEGY", "hot_repair"}});
  ASSERT_TRUE(told) << "rails failed or were slow in each of several talks";
  for (const nlohmann::json& peer : *told) {
    const auto sent = peer["bytes_sent_by_rail"].get<std::vector<double>>();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0], 0) << peer;
    EXPECT_GT(sent[1], 20'000);
  }
}

// With little under way, also where rails take what they can.
TEST_F(NcclPluginTest, AConnectionOfShortMessagesKeepsToItsNic) {
  const auto told = undisturbed({.seconds = 0.5, .bytes = 2000, .connections = 1, .first = 1});
  ASSERT_TRUE(told) << "rails failed or were slow in each of several talks";
  for (const nlohmann::json& peer : *told) {
    EXPECT_GT(peer["weight_by_rail"][1].get<double>(), 0.8) << peer;
  }
}

TEST_P(NcclPluginVersionTest, ARailThatBecomesSlowLosesItsLoad) {
  startPeers({.version = GetParam(), .seconds = 60});
  const auto fault = makeTestFault(1, 0, "throttle", {{"rate", "20%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  // Far more than both rails had carried before.
  awaitLoad(1, 60'000'000);
  ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  std::ofstream(folder_ / "stop");
  for (int side = 0; side < 2; ++side) {
    const std::string word = lastWord(side);
    ASSERT_THAT(word, StartsWith("ok ")) << word;
    const nlohmann::json peer = counters(side)["peers"][0];
    const double weight = peer["weight_by_rail"][0];
    EXPECT_LT(weight, 0.35) << peer;  // a sixth of the rates
    EXPECT_GT(weight, 0) << peer;
    EXPECT_EQ(peer["failovers"], 0) << "slow is not dead: " << peer << railEvents(side);
    EXPECT_GE(peer["degradations"], 1) << peer;
  }
  EXPECT_OK(fault->revert());
}

TEST_P(NcclPluginVersionTest, NodesThatDoNotFitTogetherSayWhatIsDifferentAndWhatToSet) {
  spawnPeers({.version = GetParam()},
             {Variables{}, Variables{{"FAULTLINE_NICS", "rail0"}, {"FAULTLINE_CHUNK", "32KiB"}}});
  const std::string words = lastWord(0) + lastWord(1);
  // Who hears it first ends, and the other one may hear no more than that.
  EXPECT_THAT(words, AllOf(HasSubstr("error 6 "), HasSubstr("2 rails, chunks of 65536 bytes"),
                           HasSubstr("1 rails, chunks of 32768 bytes"),
                           HasSubstr("set FAULTLINE_NICS, FAULTLINE_CHUNK")));
}

// What is copied is done for the sender, which ends while the other side has not asked for it.
TEST_F(NcclPluginTest, WhatIsDoneIsDeliveredThoughItsSenderEnds) {
  startPeers({.bytes = 2000, .late = 1.5});
  for (int side = 0; side < 2; ++side) EXPECT_THAT(lastWord(side), StartsWith("ok "));
}

// Version 10 has no end but the process's. Rails are slow, so that much is on its way then.
TEST_F(NcclPluginTest, WhatIsDoneIsDeliveredThoughItsProcessIsGoneWithItsLastConnection) {
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(0, rail, "throttle", {{"rate", "5%"}, {"direction", "tx"}}));
    ASSERT_OK(faults_.back()->prepare());
    ASSERT_OK(faults_.back()->apply());
  }
  startPeers({.version = 10, .bytes = 16'000, .quits = true});
  for (int side = 0; side < 2; ++side) EXPECT_THAT(lastWord(side), StartsWith("ok "));
}

TEST_P(NcclPluginVersionTest, APeerThatStandsStillForAWhileIsWaitedFor) {
  constexpr Duration kStop = 1s;
  startPeers({.version = GetParam(), .seconds = 60});
  awaitLoad(0);
  ASSERT_OK(peers_[0]->signal(SIGSTOP));
  const TimePoint stopped = now();
  EXPECT_TRUE(pollUntil(kLong, [&] { return now() - stopped >= kStop; }));
  ASSERT_OK(peers_[0]->signal(SIGCONT));
  for (int rail = 0; rail < 2; ++rail) awaitLoad(rail);
  std::ofstream(folder_ / "stop");
  EXPECT_THAT(lastWord(0), StartsWith("ok "));
  std::istringstream word(lastWord(1));
  std::string ok;
  double messages = 0, longestPauseMs = 0;
  word >> ok >> messages >> longestPauseMs;
  EXPECT_EQ(ok, "ok");
  EXPECT_GT(longestPauseMs, toMilliseconds(kStop) / 2);
}

TEST_P(NcclPluginVersionTest, AllRailsOfANodeMayBeGoneForLessThanTheBudget) {
  constexpr Duration kGone = 1s;
  startPeers({.version = GetParam(), .seconds = 60},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(1, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
    awaitLoad(rail);
  }
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  const TimePoint gone = now();
  for (const auto& fault : faults_) {
    ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
  }
  EXPECT_TRUE(pollUntil(kLong, [&] { return now() - gone >= kGone; }));
  for (const auto& fault : faults_) ASSERT_OK(fault->revert());
  for (int rail = 0; rail < 2; ++rail) awaitLoad(rail);
  std::ofstream(folder_ / "stop");
  for (int side = 0; side < 2; ++side) {
    std::istringstream word(lastWord(side));
    std::string ok;
    double messages = 0, pauseMs = 0;
    word >> ok >> messages >> pauseMs;
    EXPECT_EQ(ok, "ok") << word.str();  // of each message every byte was right
    EXPECT_GT(pauseMs, toMilliseconds(kGone) / 2) << "nothing can have come meanwhile";
    const nlohmann::json peer = counters(side)["peers"][0];
    EXPECT_GE(peer["failovers"].get<int>(), 2) << peer;
    EXPECT_GE(peer["failbacks"].get<int>(), 2) << peer;
    EXPECT_EQ(peer["failure"], "");
  }
}

TEST_P(NcclPluginVersionTest, WhenNoRailIsLeftNcclHearsItInTimeWithRailPeerAndReason) {
  startPeers({.version = GetParam(), .seconds = 20},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(1, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
  }
  awaitLoad(0);
  const TimePoint begin = now();
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  for (int side = 0; side < 2; ++side) {
    const std::string word = lastWord(side);
    EXPECT_THAT(word, StartsWith("error 6 "));  // ncclRemoteError
    EXPECT_THAT(word, AllOf(HasSubstr("rail 0: "), HasSubstr("rail 1: "),
                            HasSubstr(fmt::format("10.0.0.{}", 2 - side))))
        << side;
    EXPECT_THAT(word, HasSubstr(side == 1 ? "local_nic" : "remote_nic"));
    EXPECT_THAT(word, HasSubstr("budget of 4s"));  // the rest of it is for NCCL
    EXPECT_THAT(word, HasSubstr("[rail 0 (rail0), rail 1 (rail1)]"));
  }
  EXPECT_LT(now() - begin, kInTime);
}

/// Three nodes in a row: the last one has no link to the first one.
class NcclPluginRowTest : public NcclPluginTest {
 protected:
  int nodes() const override { return 3; }
};

// In one version: what processes tell each other knows none, and waiting takes as long each time.
TEST_F(NcclPluginRowTest, WhoHasNoLinkToTheLostNodeHearsRailPeerAndReasonToo) {
  const Variables environment{{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}};
  spawn(0, 0, {"--seconds", "20"}, 11, environment);
  spawn(1, 1, {"--seconds", "20", "--next", "second"}, 11, environment);
  spawn(2, 1, {"--seconds", "20", "--meeting", "second"}, 11, environment);
  ASSERT_TRUE(pollUntil(kLong,
                        [&] {
                          return output(0).starts_with("ready") && output(1).starts_with("ready") &&
                                 output(2).starts_with("ready");
                        }))
      << output(0) << output(1) << output(2);
  for (int rail = 0; rail < 2; ++rail) {
    faults_.push_back(makeTestFault(0, rail, "port_down", {{"how", "carrier"}}));
    ASSERT_OK(faults_.back()->prepare());
  }
  const TimePoint begin = now();
  for (const auto& fault : faults_) ASSERT_OK(fault->apply());
  const std::string lost =
      "no rail to .*10\\.0\\.0\\.1\\) came back within the give-up budget of 4s "
      "\\(rail 0: .*, rail 1: .*\\) \\[rail 0 \\(rail0\\), rail 1 \\(rail1\\)\\]";
  EXPECT_THAT(lastWord(0), StartsWith("error 6 "));
  EXPECT_THAT(lastWord(1), AllOf(StartsWith("error 6 "), ContainsRegex(lost)));
  EXPECT_THAT(
      lastWord(2),
      AllOf(StartsWith("error 6 "),
            ContainsRegex("10\\.0\\.0\\.2\\) .* nothing in this stream any more; its reason, "
                          "told .* before: .*10\\.0\\.0\\.2\\): " +
                          lost)));
  EXPECT_LT(now() - begin, kInTime);
}

TEST_P(NcclPluginVersionTest, APeerThatIsKilledIsAnErrorInTime) {
  startPeers({.version = GetParam(), .seconds = 20},
             {{"FAULTLINE_GIVE_UP", formatDuration(kGiveUp)}});
  awaitLoad(0);
  ASSERT_OK(peers_[0]->signal(SIGKILL));
  const TimePoint begin = now();
  const std::string word = lastWord(1);
  EXPECT_THAT(word, StartsWith("error 6 "));
  EXPECT_THAT(word, AllOf(HasSubstr("10.0.0.1"), HasSubstr("[rail 0 (rail0), rail 1 (rail1)]")));
  EXPECT_LT(now() - begin, kInTime);
}

}  // namespace
}  // namespace faultline::test
