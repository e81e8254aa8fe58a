#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "harness/agent/host_facts.h"
#include "harness/agent/host_lock.h"
#include "harness/agent/port_counters.h"

// What an agent tells of its machine, and that it has it alone.

namespace faultline::agent {
namespace {

using ::testing::HasSubstr;

TEST(HostFactsTest, TheDefaultRouteIsTheOneOfTheLowestMetric) {
  const std::string head =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
  EXPECT_EQ(defaultRouteIn(""), "");
  EXPECT_EQ(defaultRouteIn(head), "");
  EXPECT_EQ(defaultRouteIn(head + "eth1\t0001010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"),
            "");
  const std::string wlan = "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n";
  const std::string eth = "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
  EXPECT_EQ(defaultRouteIn(head + wlan + eth), "eth0");
  EXPECT_EQ(defaultRouteIn(head + eth + wlan), "eth0");
  // One half of all addresses, as VPNs have it, is no default route.
  EXPECT_EQ(defaultRouteIn(head + "tun0\t00000000\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n"),
            "");
  EXPECT_EQ(defaultRouteIn(head + "cut\t00000000\n" + wlan), "wlan0");
}

TEST(HostFactsTest, SshSaysWhereItCame) {
  EXPECT_EQ(reachedAt("10.0.0.254 40000 10.0.0.2 22"), "10.0.0.2");
  EXPECT_EQ(reachedAt(""), "");
}

TEST(HostFactsTest, OfThisMachine) {
  const auto facts = readHostFacts();
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_FALSE(facts->hostname.empty() || facts->kernel.empty());
  EXPECT_EQ(facts->bootId.size(), 36U);
  EXPECT_GE(facts->cores, 1);
  const auto loopback = std::ranges::find(facts->ports, "lo", &wire::HostPort::name);
  ASSERT_NE(loopback, facts->ports.end());
  EXPECT_EQ(loopback->link, "loopback");
  EXPECT_EQ(loopback->speed, 0);
  EXPECT_EQ(loopback->pci, "");
  EXPECT_GE(loopback->mtu, 576);
}

TEST(HostFactsTest, MemoryIsWhatIsSharedWithNobody) {
  EXPECT_EQ(privateMemoryIn(""), 0);
  EXPECT_EQ(privateMemoryIn("5555-7777 ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 500 kB\n"
                            "Shared_Clean: 600 kB\nPrivate_Clean: 100 kB\nPrivate_Dirty: 200 kB\n"),
            300 * 1024);
  const auto facts = readHostFacts();
  ASSERT_TRUE(facts.ok());
  EXPECT_GT(facts->agentMemory, 0);
}

class HostLockTest : public ::testing::Test {
 protected:
  const std::string name_ = "test-" + std::to_string(::getpid());
};

TEST_F(HostLockTest, OneAtATimeAndTheHolderIsNamed) {
  auto first = HostLock::hold(name_, "run 'a' of alice", 0s);
  ASSERT_TRUE(first.ok()) << first.status().message();
  // As an agent does, which asks in turn.
  std::atomic<bool> over = false;
  std::thread holder([&] {
    while (!over) {
      pollfd asked{first->fd(), POLLIN, 0};
      if (::poll(&asked, 1, 10) > 0) first->answer();
    }
  });
  const auto second = HostLock::hold(name_, "another", 0s);
  over = true;
  holder.join();
  EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.status().message(),
              HasSubstr("another run uses this host: run 'a' of alice (process " +
                        std::to_string(::getpid())));
  EXPECT_TRUE(HostLock::hold(name_ + "-other", "", 0s).ok());
  first = Status(Code::kAborted, "over");
  EXPECT_TRUE(HostLock::hold(name_, "", 0s).ok()) << "gone with its holder";
}

TEST_F(HostLockTest, OneThatHangsIsNamedByItsProcess) {
  const auto first = HostLock::hold(name_, "run 'a' of alice", 0s);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(HostLock::hold(name_, "", 0s).status().message(),
              HasSubstr("another run uses this host (process " + std::to_string(::getpid())));
}

TEST_F(HostLockTest, WhatItSaysIsShownAsText) {
  auto first = HostLock::hold(name_, "a\x1b[2J\nb", 0s);
  ASSERT_TRUE(first.ok());
  std::thread holder([&] {
    pollfd asked{first->fd(), POLLIN, 0};
    if (::poll(&asked, 1, 10'000) > 0) first->answer();
  });
  const auto second = HostLock::hold(name_, "", 0s);
  holder.join();
  EXPECT_THAT(second.status().message(), HasSubstr("host: a\\x1b[2J b (process"));
}

TEST_F(HostLockTest, TheEndOfTheHolderIsWaitedFor) {
  auto first = HostLock::hold(name_, "", 0s);
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::thread holder([&first] {
    std::this_thread::sleep_for(100ms);
    first = Status(Code::kAborted, "over");
  });
  const auto second = HostLock::hold(name_, "", 60s);
  holder.join();
  EXPECT_TRUE(second.ok()) << second.status().message();
}

TEST(PortCountersTest, AreInTheOrderAskedForAndZeroOfWhatIsNotThere) {
  constexpr int kOwn = -1;
  auto counters = PortCounters::open(kOwn, {.interfaces = {"nowhere", "lo"}, .every = 20ms});
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  const TimePoint time = now();
  EXPECT_LE(counters->due(), time) << "at once";
  const auto told = counters->read(time);
  ASSERT_TRUE(told.ok()) << told.status().message();
  ASSERT_EQ(told->ports.size(), 2U);
  EXPECT_EQ(told->ports[0].sent, 0U);
  EXPECT_EQ(told->ports[1].sent, told->ports[1].received) << "loopback gets what it sends";
  EXPECT_EQ(counters->due(), time + 20ms);
  EXPECT_FALSE(counters->isOld(time));
  EXPECT_TRUE(counters->isOld(time + 1ms));
}

}  // namespace
}  // namespace faultline::agent
