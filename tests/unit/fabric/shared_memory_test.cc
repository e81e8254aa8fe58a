#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loopback.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/transport/shm/local_socket.h"
#include "resilient_ccl/transport/tcp/socket.h"

// Processes of the same node and of others in one job, over loopback.

namespace faultline::fabric {
namespace {

struct Process : FabricClient {
  void sendDone(int, std::uint64_t) override { ++sent; }
  void receiveDone(int, std::uint64_t, Bytes) override { ++received; }
  void sendFailed(int, std::uint64_t, const Status& why) override {
    ADD_FAILURE() << why.message();
  }
  void receiveFailed(int, std::uint64_t, const Status& why) override {
    ADD_FAILURE() << why.message();
  }
  void failedOver(int, const channel::Failover&) override { ++failovers; }
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int peer, const Status& why) override { lost.emplace_back(peer, why); }

  std::unique_ptr<Fabric> fabric;
  int sent = 0, received = 0, failovers = 0;
  std::vector<std::pair<int, Status>> lost;
};

class SharedMemoryTest : public ::testing::Test {
 protected:
  void start(
      const std::vector<std::string>& hosts,
      const std::function<void(int, FabricOptions&)>& choose = [](int, FabricOptions&) {}) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      FabricOptions options;
      options.self = static_cast<int>(i);
      options.jobKey = jobKey_;
      options.nics.assign(2, {.device = "", .address = kLoopback});
      options.managementAddress = kLoopback;
      options.host = hosts[i];
      choose(options.self, options);
      processes_.push_back(std::make_unique<Process>());
      auto created = Fabric::create(options, *processes_.back());
      ASSERT_TRUE(created.ok()) << created.status().message();
      processes_.back()->fabric = std::move(*created);
      addresses_.push_back(processes_.back()->fabric->address());
    }
  }
  void connect() {
    for (const auto& process : processes_) {
      ASSERT_TRUE(process->fabric->connect(addresses_).ok());
    }
    ASSERT_TRUE(pollUntil([&] {
      return std::ranges::all_of(processes_,
                                 [](const auto& it) { return it->fabric->allRailsUp(); });
    }));
  }
  bool pollUntil(const std::function<bool()>& done) {
    for (const TimePoint deadline = now() + 20s; !done();) {
      if (now() > deadline) return false;
      for (const auto& process : processes_) {
        if (!process) continue;
        EXPECT_TRUE(process->fabric->poll(200us).ok());
      }
    }
    return true;
  }
  /// From everybody to everybody.
  void exchange(Bytes length) {
    const int size = static_cast<int>(processes_.size());
    std::vector<std::vector<std::byte>> sources, targets;
    sources.reserve(size * size);
    targets.reserve(size * size);
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        if (from == to) continue;
        auto& data =
            sources.emplace_back(length, std::byte{static_cast<unsigned char>(7 * from + to)});
        auto& target = targets.emplace_back(length);
        processes_[from]->fabric->postSend(to, {1, 1, 1}, data.data(), length, 1);
        processes_[to]->fabric->postReceive(from, {1, 1, 1}, target.data(), length, 1);
      }
    }
    ASSERT_TRUE(pollUntil([&] {
      return std::ranges::all_of(processes_, [&](const auto& it) {
        return it->sent == size - 1 && it->received == size - 1;
      });
    }));
    EXPECT_EQ(sources, targets);
  }

  const auth::JobKey jobKey_ = auth::JobKey::random();
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<ProcessAddress> addresses_;
};

TEST_F(SharedMemoryTest, ProcessesOfANodeAndOfOthersTalkInOneJob) {
  start({"a", "a", "b", "b", ""});
  connect();
  exchange(1 << 20);
  for (const auto& process : processes_) EXPECT_EQ(process->failovers, 0);
}

TEST_F(SharedMemoryTest, NobodyIsConnectedOverTheNetworkWithAProcessOfItsNode) {
  start({"a", "a"});
  // Only memory can carry anything: the ports lead nowhere.
  for (ProcessAddress& address : addresses_) {
    for (auto& rail : address.rails) rail.data.port = rail.control.port = 1;
    address.management.port = 1;
  }
  connect();
  exchange(300'000);
}

TEST_F(SharedMemoryTest, WhoWantsNoneTakesTheNetworkAndSoDoesItsPeer) {
  start({"a", "a"}, [](int self, FabricOptions& options) { options.sharedMemory = self != 1; });
  EXPECT_FALSE(addresses_[0].local.empty());
  EXPECT_TRUE(addresses_[1].local.empty());
  addresses_[0].local = "nobody";
  connect();
  exchange(300'000);
}

TEST_F(SharedMemoryTest, WhoSleepsIsWoken) {
  start({"a", "a"});
  connect();
  constexpr Duration kPatience = 50ms;
  const auto sleep = [&] {
    const TimePoint begin = now();
    EXPECT_TRUE(processes_[0]->fabric->poll(kPatience).ok());
    return now() - begin;
  };
  const auto settle = [&] { pollUntil([round = 0]() mutable { return round++ > 20; }); };
  std::vector<std::byte> data(100), target(100);
  Duration shortest = Duration::max(), idle{};
  for (int round = 0; round < 10; ++round) {
    const channel::MessageKey key{
        .communicator = 1, .sequence = static_cast<std::uint32_t>(round), .stream = 0};
    processes_[0]->fabric->postReceive(1, key, target.data(), 100, 1);
    settle();
    idle = std::max(idle, sleep());
    settle();
    const std::jthread other([&] {
      std::this_thread::sleep_for(2ms);
      processes_[1]->fabric->postSend(0, key, data.data(), 100, 1);
      EXPECT_TRUE(processes_[1]->fabric->poll(0ms).ok());
    });
    shortest = std::min(shortest, sleep());
  }
  EXPECT_LT(shortest, idle / 2);
}

TEST_F(SharedMemoryTest, WhatIsMissingIsNamed) {
  start({"a", "a", "b"});
  ASSERT_TRUE(processes_[0]->fabric->connect(addresses_).ok());
  EXPECT_EQ(processes_[0]->fabric->missingRails(),
            "shared memory with rank 1: no answer yet; rail 0 () to rank 2: no answer yet; "
            "rail 1 () to rank 2: no answer yet");
}

TEST_F(SharedMemoryTest, AProcessThatIsGoneIsGivenUpWithinTheBudget) {
  start({"a", "a"}, [](int, FabricOptions& options) { options.link.giveUp = 300ms; });
  connect();
  std::vector<std::byte> target(100);
  processes_[0]->fabric->postReceive(1, {1, 1, 1}, target.data(), 100, 1);
  processes_[1].reset();
  ASSERT_TRUE(pollUntil([&] { return !processes_[0]->lost.empty(); }));
  EXPECT_EQ(processes_[0]->lost[0].first, 1);
}

TEST_F(SharedMemoryTest, AStrangerOfTheSameNodeGetsNothing) {
  start({"a", "a"});
  connect();
  auto stranger = transport::shm::connectLocally(addresses_[0].local);
  ASSERT_TRUE(stranger.ok());
  const SignedHello hello{.hello = {.source = 1, .destination = 0, .rail = 0, .epoch = 2}};
  ASSERT_EQ(write(stranger->get(), &hello, sizeof(hello)), static_cast<ssize_t>(sizeof(hello)));
  ASSERT_TRUE(
      pollUntil([&] { return processes_[0]->fabric->counters().connectionsRejected == 1; }));
  exchange(300'000);
}

TEST_F(SharedMemoryTest, AProcessOfTheNodeIsNotTakenOverTheNetwork) {
  start({"a", "a"});
  connect();
  auto socket = transport::tcp::beginConnect({kLoopback, "", 0}, addresses_[1].rails[0].data);
  ASSERT_TRUE(socket.ok());
  // A later attempt for the epoch that is up: a rail of the network would be given up for it.
  auth::Authenticator authenticator(jobKey_);
  Handshake handshake = Handshake::connecting(
      std::move(*socket), {.source = 0, .destination = 1, .rail = 0, .epoch = 1, .attempt = 99},
      now() + 20s);
  Status refused;
  ASSERT_TRUE(pollUntil([&] {
    const auto done = handshake.advance(authenticator);
    refused = done.status();
    return !done.ok() || *done;
  }));
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_TRUE(processes_[1]->fabric->allRailsUp());
  exchange(300'000);
}

}  // namespace
}  // namespace faultline::fabric
