#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "idle_client.h"
#include "loopback.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/fabric/fabric.h"

// Nobody waits for ever for somebody who says nothing, on either end of a connection.

namespace faultline::fabric {
namespace {

/// Two processes that are busy, and without resilience: whoever loses a rail fails.
class BusyTest : public ::testing::Test {
 protected:
  struct Process : IdleClient {
    std::unique_ptr<Fabric> fabric;
  };

  void SetUp() override {
    FabricOptions options;
    options.jobKey = auth::JobKey::random();
    options.nics = {{.device = "", .address = kLoopback}};
    options.managementAddress = kLoopback;
    options.connectTimeout = kTimeout;
    options.link.resilient = false;
    std::vector<ProcessAddress> addresses;
    for (Process& process : processes_) {
      options.self = static_cast<int>(addresses.size());
      auto created = Fabric::create(options, process);
      ASSERT_TRUE(created.ok()) << created.status().message();
      process.fabric = std::move(*created);
      addresses.push_back(process.fabric->address());
    }
    for (Process& process : processes_) ASSERT_TRUE(process.fabric->connect(addresses).ok());
  }

  static constexpr Duration kTimeout = 5ms;
  std::array<Process, 2> processes_;
};

TEST_F(BusyTest, ThoseWhoPollMoreSeldomThanAnAttemptMayTakeMeetNevertheless) {
  const auto up = [](const Process& process) { return process.fabric->allRailsUp(); };
  for (int polls = 0; polls < 1000 && !std::ranges::all_of(processes_, up); ++polls) {
    for (Process& process : processes_) {
      ::poll(nullptr, 0, 8);  // busy with something else, for longer than kTimeout
      ASSERT_TRUE(process.fabric->poll(0ms).ok());
    }
  }
  for (const Process& process : processes_) {
    EXPECT_TRUE(process.fabric->allRailsUp());
    EXPECT_TRUE(process.failure.ok()) << process.failure.message();
  }
}

class DeadlineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FabricOptions options;
    options.jobKey = auth::JobKey::random();
    options.nics = {{.device = "", .address = kLoopback}};
    options.managementAddress = kLoopback;
    options.connectTimeout = 50ms;
    auto created = Fabric::create(options, client_);
    ASSERT_TRUE(created.ok()) << created.status().message();
    fabric_ = std::move(*created);
    auto listener = transport::tcp::openListener({kLoopback, "", 0});
    ASSERT_TRUE(listener.ok());
    silent_ = std::move(*listener);
    ProcessAddress other = fabric_->address();
    other.rails[0].data = *transport::tcp::localEndpoint(silent_.get());
    ASSERT_TRUE(fabric_->connect({fabric_->address(), other}).ok());
  }

  bool pollUntil(const std::function<bool()>& done, Duration timeout = 5ms) {
    const TimePoint deadline = now() + 20s;
    while (!done()) {
      if (now() > deadline) return false;
      EXPECT_TRUE(fabric_->poll(timeout).ok());
    }
    return true;
  }
  /// Takes the connections of the other process, and says nothing.
  bool threeAttempts() {
    UniqueFd attempt(accept4(silent_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (attempt) attempts_.push_back(std::move(attempt));
    return attempts_.size() == 3;
  }

  std::vector<UniqueFd> attempts_;
  IdleClient client_;
  std::unique_ptr<Fabric> fabric_;
  UniqueFd silent_;  // where the other process listens, and never says anything
};

TEST_F(DeadlineTest, APeerThatAcceptsAndSaysNothingIsTriedAgain) {
  EXPECT_TRUE(pollUntil([&] { return threeAttempts(); })) << attempts_.size();
}

TEST_F(DeadlineTest, SoItIsByWhoPollsInALoopThoughNothingComes) {
  EXPECT_TRUE(pollUntil([&] { return threeAttempts(); }, 0ms)) << attempts_.size();
}

TEST_F(DeadlineTest, AStrangerThatConnectsAndSaysNothingIsSentAway) {
  auto stranger =
      transport::tcp::beginConnect({kLoopback, "", 0}, fabric_->address().rails[0].data);
  ASSERT_TRUE(stranger.ok());
  std::size_t heard = 0;
  EXPECT_TRUE(pollUntil([&] {
    std::byte bytes[64];
    const ssize_t got = recv(stranger->get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) heard += static_cast<std::size_t>(got);
    const bool ended = got == 0 || (got < 0 && errno == ECONNRESET);
    return ended && heard > 0;
  }));
  EXPECT_EQ(heard, sizeof(auth::Nonce)) << "the challenge";
}

}  // namespace
}  // namespace faultline::fabric
