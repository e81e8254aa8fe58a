#include "resilient_ccl/nccl/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace faultline::nccl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(NcclCountersTest, SayWhatHappenedToEachPeerAndWhoTakesOverFromWhom) {
  const std::string bridge = "/sys/devices/pci0000:16/0000:16:01.0";
  Counters its{.options = "FAULTLINE_SMALL=4KiB", .ioThreads = 3, .devices = {}, .accounts = {}};
  its.devices = {
      {.interface = {.name = "ib0"}, .pciPath = bridge + "/0000:17:00.0", .numaNode = 0},
      {.interface = {.name = "ib1"},
       .pciPath = "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0",
       .numaNode = 1},
      {.interface = {.name = "ib2"}, .pciPath = bridge + "/0000:18:00.0", .numaNode = 0}};
  Pair::Account peer;
  peer.peer = "node2:77 (10.0.0.2)";
  peer.sentByRail = {6, 3, 9};
  peer.sent = 18;
  peer.received = 9;
  peer.failovers = 2;
  peer.failbacks = 1;
  peer.degradations = 4;
  peer.eager = 21;
  peer.longestPause = 12ms;
  peer.paused = 30ms;
  peer.counters.bytesResent = 64;
  peer.failure = "it ended";
  peer.counters.datagramsRejected = 31;
  peer.counters.connectionsRejected = 32;
  its.accounts = {.latest = {peer}, .dropped = 8, .callersRefused = 33, .answersRefused = 34};
  const json told = json::parse(countersJson(its));
  EXPECT_EQ(told["schema"], "faultline-nccl/1");
  EXPECT_EQ(told["process"], getpid());
  EXPECT_EQ(told["options"], "FAULTLINE_SMALL=4KiB");
  EXPECT_EQ(told["io_threads"], 3);
  EXPECT_EQ(told["peers_dropped"], 8);
  EXPECT_EQ(told["callers_refused"], 33);
  EXPECT_EQ(told["answers_refused"], 34);
  EXPECT_EQ(told["rails"][0]["name"], "ib0");
  EXPECT_EQ(told["rails"][0]["name_at_start"], "ib0");
  EXPECT_EQ(told["rails"][0]["partners"],
            json::parse(R"([{"rail": 2, "path": "switch"}, {"rail": 1, "path": "socket"}])"));
  const json& it = told["peers"][0];
  EXPECT_EQ(it["peer"], peer.peer);
  EXPECT_EQ(it["bytes_sent_by_rail"], json::parse("[6, 3, 9]"));
  const auto weights = it["weight_by_rail"].get<std::vector<double>>();
  EXPECT_THAT(weights,
              ::testing::ElementsAre(::testing::DoubleEq(6 / 18.0), ::testing::DoubleEq(3 / 18.0),
                                     ::testing::DoubleEq(0.5)));
  EXPECT_EQ(it["bytes_sent"], 18);
  EXPECT_EQ(it["bytes_received"], 9);
  EXPECT_EQ(it["failovers"], 2);
  EXPECT_EQ(it["failbacks"], 1);
  EXPECT_EQ(it["degradations"], 4);
  EXPECT_EQ(it["longest_pause_ms"], 12);
  EXPECT_EQ(it["paused_ms"], 30);
  EXPECT_EQ(it["bytes_resent"], 64);
  EXPECT_EQ(it["datagrams_rejected"], 31);
  EXPECT_EQ(it["connections_rejected"], 32);
  EXPECT_EQ(it["messages_eager"], 21);
  EXPECT_EQ(it["failure"], "it ended");
}

TEST(NcclCountersTest, SharesAddUpToOneAsSoonAsAByteWasSent) {
  Counters its{.options = {}, .ioThreads = 0, .devices = {}, .accounts = {}};
  Pair::Account silent, begun;
  silent.sentByRail = {0, 0};
  begun.sentByRail = {0, 1};
  its.accounts.latest = {silent, begun};
  const json told = json::parse(countersJson(its));
  EXPECT_EQ(told["peers"][0]["weight_by_rail"], json::parse("[0.0, 0.0]"));
  EXPECT_EQ(told["peers"][1]["weight_by_rail"], json::parse("[0.0, 1.0]"));
}

TEST(NcclAccountsTest, TheLatestPeersAreKeptAndTheOthersCounted) {
  Accounts all, more;
  for (int i = 0; i < 1026; ++i) {
    Pair::Account peer;
    peer.sent = i;
    all.add(peer);
  }
  EXPECT_EQ(all.latest.size(), 1024U);
  EXPECT_EQ(all.latest.front().sent, 2);
  EXPECT_EQ(all.dropped, 2U);
  more.dropped = 5;
  more.callersRefused = 6;
  more.answersRefused = 7;
  more.add(Pair::Account{});
  all.callersRefused = 60;
  all.answersRefused = 70;
  all.add(more);
  EXPECT_EQ(all.callersRefused, 66U);
  EXPECT_EQ(all.answersRefused, 77U);
  EXPECT_EQ(all.latest.size(), 1024U);
  EXPECT_EQ(all.latest.front().sent, 3);
  EXPECT_EQ(all.latest.back().sent, 0);
  EXPECT_EQ(all.dropped, 8U);
}

TEST(NcclCountersTest, ARailIsCalledAsItWasLastByAPairThatSawIt) {
  Counters its{.options = "", .devices = {}, .accounts = {}};
  its.devices = {{.interface = {.name = "eth0"}, .pciPath = {}},
                 {.interface = {.name = "lo", .loopback = true}, .pciPath = {}}};
  Pair::Account early, late, lost;
  early.devices = {"eth0", ""};
  late.devices = {"eth1", ""};
  lost.devices = {"eth0", ""};
  lost.failure = "it ended before the rename";
  its.accounts.latest = {early, late, lost, Pair::Account{}};
  const json told = json::parse(countersJson(its))["rails"];
  EXPECT_EQ(told[0]["name"], "eth1");
  EXPECT_EQ(told[0]["name_at_start"], "eth0");
  EXPECT_EQ(told[1]["name"], "lo");
}

TEST(NcclCountersTest, NamesThatAreNoTextDoNotEndTheProgram) {
  Pair::Account peer;
  peer.peer = "host\xff:1";
  const Counters its{
      .options = "FAULTLINE_COUNTERS=/tmp/\xfe", .devices = {}, .accounts = {.latest = {peer}}};
  EXPECT_EQ(json::parse(countersJson(its))["peers"].size(), 1U);
}

TEST(NcclCountersTest, FilesThatCannotBeWrittenAreFoundAtOnce) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "faultline_counters_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  EXPECT_TRUE(checkFile("FAULTLINE_TRACE", "").ok());
  EXPECT_TRUE(checkFile("FAULTLINE_TRACE", (folder / "new.json").string()).ok());
  EXPECT_FALSE(fs::exists(folder / "new.json")) << "looking makes nothing";
  const Status missing = checkFile("FAULTLINE_TRACE", (folder / "not" / "there.json").string());
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_THAT(missing.message(), HasSubstr("FAULTLINE_TRACE=" + folder.string()));
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));
  EXPECT_FALSE(checkFile("FAULTLINE_TRACE", folder.string()).ok());
  EXPECT_FALSE(checkFile("FAULTLINE_TRACE", "/proc/no-such-file.json").ok());
  std::ofstream(folder / "old.json") << "what was";
  EXPECT_TRUE(checkFile("FAULTLINE_TRACE", (folder / "old.json").string()).ok());
  EXPECT_EQ(fs::file_size(folder / "old.json"), 8U) << "looking changes nothing";
  fs::remove_all(folder);
}

TEST(NcclCountersTest, FilesAreNamedAfterHostAndProcess) {
  EXPECT_THAT(filePath("/tmp/%h-%p.json"), HasSubstr("-" + std::to_string(getpid()) + ".json"));
  EXPECT_EQ(filePath("/tmp/100%.json"), "/tmp/100%.json");
  EXPECT_EQ(filePath("/tmp/%p"), "/tmp/" + std::to_string(getpid()));
  EXPECT_EQ(filePath("100%"), "100%");
}

}  // namespace
}  // namespace faultline::nccl
