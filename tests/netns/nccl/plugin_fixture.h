#pragma once

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
#include "harness/launch/process.h"
#include "harness/site/netns/cluster.h"
#include "harness/site/netns/cluster_plan.h"
#include "injector/faults/registry.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/trace_rules.h"

// The NCCL plugin in two nodes with two rails of 400 Mbit/s: processes that call it as NCCL's
// proxies do (tests/support/net_peer.cc), while the injector breaks rails.

namespace faultline::test {

inline constexpr Duration kLong = 30s;

class NcclPluginTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped()) return;
    makeNetwork();
    if (HasFatalFailure()) return;
    std::string pattern = ::testing::TempDir() + "faultline-nccl-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    for (auto& peer : peers_) peer.reset();
    for (const auto& fault : faults_) EXPECT_OK(fault->revert());
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  virtual void makeNetwork() {
    ASSERT_OK_AND_ASSIGN(
        cluster_,
        netns::Cluster::create({.nodes = nodes(), .rails = rails(), .rail_rate = 400'000'000}));
  }
  virtual int namespaceOf(int node) const { return cluster_->nodeNamespace(node); }
  virtual int nodes() const { return 2; }
  virtual int rails() const { return 2; }

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
    if (!sysfs_.empty()) {
      options.executable = "/usr/bin/unshare";
      options.arguments[0] = FAULTLINE_NET_PEER;
      const std::vector<std::string> before{
          "unshare", "--mount", "sh", "-c", R"(mount --bind "$0" /sys && exec "$@")", sysfs_};
      options.arguments.insert(options.arguments.begin(), before.begin(), before.end());
    }
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = environment;
    options.namespace_fd = namespaceOf(node);
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
    std::vector<netns::RailCounters> counters;
    EXPECT_OK(cluster_->readRailCounters(counters));
    const netns::RailCounters& its = counters.at(rails() + rail);
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
        EXPECT_THAT(lastWord(side), ::testing::StartsWith("ok "));
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

  std::unique_ptr<netns::Cluster> cluster_;
  std::filesystem::path folder_;
  std::string sysfs_;  ///< what the peers see as /sys; empty: the real one
  std::vector<std::unique_ptr<injector::Fault>> faults_;
  std::array<UniqueFd, 3> outputs_;
  std::array<std::optional<launch::Process>, 3> peers_;  // one for each node
};

/// In each version of the interface that NCCL asks for.
class NcclPluginVersionTest : public NcclPluginTest, public ::testing::WithParamInterface<int> {};
inline const auto kVersions = ::testing::Values(10, 11, 12);

}  // namespace faultline::test
