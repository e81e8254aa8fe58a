// Somebody else manages the interface, as networkd and NetworkManager do, while it is put back.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "injector/netlink/interface_configuration.h"
#include "tests/netns/injector/dressed_port.h"

namespace faultline::netlink {
namespace {

/// He hears of changes and acts at once, in a thread of his own. What he adds and removes are
/// things that were noted, in their words.
class Manager {
 public:
  Manager(Socket& host, int ifindex, InterfaceConfiguration noted,
          std::function<void(Manager&)> act)
      : ifindex_(ifindex), noted_(std::move(noted)) {
    auto socket = Socket::open(host.namespaceFd());
    EXPECT_OK(socket.status());
    socket_.emplace(std::move(*socket));
    const auto inside = ScopedNamespace::enter(host.namespaceFd());
    EXPECT_OK(inside.status());
    changes_.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    for (const int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR}) {
      EXPECT_EQ(
          ::setsockopt(changes_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group),
          0);
    }
    thread_ = std::thread([this, act = std::move(act)] { act(*this); });
  }
  ~Manager() { join(); }
  /// He does no more when he has not done it yet.
  void join() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void awaitDone() { thread_.join(); }

  /// Looks whenever something changes; false when it is over before.
  template <typename Condition>
  bool await(Condition condition) {
    while (!condition()) {
      if (over_) return false;
      constexpr int kLookForTheEndMs = 20;
      pollfd waiting{changes_.get(), POLLIN, 0};
      ::poll(&waiting, 1, kLookForTheEndMs);
      for (char bytes[8192]; ::recv(changes_.get(), bytes, sizeof bytes, 0) > 0;) {
      }
    }
    return true;
  }
  bool awaitCarrier() {
    return await([&] { return readNetDevice(*socket_, ifindex_)->carrier; });
  }
  bool awaitThere(const std::string& words) {
    return await([&] { return isThere(words); });
  }
  bool isThere(const std::string& words) {
    const Lines missing = *noted_.missingInWords(*socket_);
    return std::find(missing.begin(), missing.end(), words) == missing.end();
  }

  void add(const std::string& words) { EXPECT_OK(request(words, 0, NLM_F_CREATE | NLM_F_REPLACE)); }
  void remove(const std::string& words) { EXPECT_OK(request(words, 1, 0)); }

 private:
  using Lines = std::vector<std::string>;

  /// RTM_DEL... is the one behind RTM_NEW...
  Status request(const std::string& words, int behind, int flags) {
    const Lines lines = noted_.inWords("r0");
    const auto line = std::find(lines.begin(), lines.end(), words);
    if (line == lines.end()) return errorf(Code::kNotFound, "{} was not noted", words);
    const ConfigurationEntry& entry =
        noted_.entries()[static_cast<std::size_t>(line - lines.begin())];
    return socket_->request(
        Message(messageType(entry.kind) + behind, flags, std::string_view(entry.request.bytes)),
        "manage the port");
  }

  int ifindex_;
  InterfaceConfiguration noted_;
  std::optional<Socket> socket_;
  UniqueFd changes_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// One of the addresses is unwanted whenever it is there again.
void neverLeavesOneAlone(Manager& manager) {
  const std::string unwanted = "address fd01:7::1 peer fd01:7::2/128 dev r0";
  while (manager.awaitThere(unwanted)) manager.remove(unwanted);
}

class ManagedPortTest : public DressedPortTest {
 protected:
  /// He acts at once; so long he may take on a machine that is busy with others.
  static constexpr Settling kSettling{.quiet = 1s, .patience = 60s, .rounds = 3, .limit = 120s};

  void SetUp() override {
    DressedPortTest::SetUp();
    if (!IsSkipped()) dress();
  }
};

TEST_F(ManagedPortTest, ItsOwnIsWaitedForAndTheRestPutBackBesideIt) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  ASSERT_OK(setUp(*socket_, kPort, false));
  host("ip address del 10.1.0.11/24 dev r0; ip address del 10.1.0.1/24 dev r0");
  // In another order, and what is not its own goes.
  Manager manager(*socket_, kPort, noted, [](Manager& self) {
    if (!self.awaitCarrier()) return;
    self.add("address 10.1.0.11/24 dev r0");
    self.add("address 10.1.0.1/24 dev r0");
    self.remove("address 10.1.8.1/24 dev r0");
    self.add("address fd01::2/64 dev r0");
    self.add("route default via 10.1.0.2 dev r0 metric 50");
  });
  ASSERT_OK(setUp(*socket_, kPort, true));
  EXPECT_OK(noted.restore(*socket_, kSettling));
  manager.awaitDone();
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(ManagedPortTest, WhatItRemovesOnceMoreIsPutBackOnceMore) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  bool removed = false;
  Manager manager(*socket_, kPort, noted, [&](Manager& self) {
    if (!self.awaitThere("address fd01::1/64 dev r0")) return;
    self.remove("address fd01::1/64 dev r0");
    self.remove("address 10.1.8.1/24 dev r0");
    removed = true;
  });
  EXPECT_OK(noted.restore(*socket_, kSettling));
  manager.join();
  EXPECT_TRUE(removed);
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(ManagedPortTest, WhatItNeverLeavesAloneIsSaidInTheEnd) {
  const InterfaceConfiguration noted = note();
  downAndUp();
  Manager manager(*socket_, kPort, noted, neverLeavesOneAlone);
  constexpr Settling kShort{.quiet = 300ms, .patience = 3s, .rounds = 2, .limit = 60s};
  const TimePoint begin = now();
  const Status status = noted.restore(*socket_, kShort);
  EXPECT_LT(now() - begin, 2 * (kShort.rounds + 1) * kShort.patience);
  EXPECT_EQ(status.code(), Code::kNotRestored);
  EXPECT_EQ(
      status.message(),
      "could not put back\n  address fd01:7::1 peer fd01:7::2/128 dev r0: somebody has removed it "
      "again");
}

// As one that never rests does, in ever more rounds.
TEST_F(ManagedPortTest, ThereIsAnEndOfWaitingForItAltogether) {
  const InterfaceConfiguration noted = note();
  downAndUp();
  Manager manager(*socket_, kPort, noted, neverLeavesOneAlone);
  constexpr Settling kMany{.quiet = 1s, .patience = 1s, .rounds = 60, .limit = 3s};
  const TimePoint begin = now();
  EXPECT_EQ(noted.restore(*socket_, kMany).code(), Code::kNotRestored);
  EXPECT_LT(now() - begin, kMany.rounds * kMany.quiet / 2);
}

TEST_F(ManagedPortTest, WhatItDoesALittleAfterTheCarrierIsSeenToo) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  bool removed = false;
  Manager manager(*socket_, kPort, noted, [&](Manager& self) {
    if (!self.awaitThere("address fd01::1/64 dev r0")) return;
    ::poll(nullptr, 0, 500);
    self.remove("address fd01::1/64 dev r0");
    removed = true;
  });
  EXPECT_OK(noted.restore(
      *socket_, {.quiet = 100ms, .patience = 60s, .rounds = 3, .least = 3s, .limit = 120s}));
  manager.join();
  EXPECT_TRUE(removed);
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(ManagedPortTest, ACarrierThatComesLateIsWaitedFor) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  ASSERT_OK(setUp(*far_, kFar, false));
  ASSERT_OK(setUp(*socket_, kPort, false));
  ASSERT_OK(setUp(*socket_, kPort, true));
  // Later than all rounds would have been over without it.
  std::thread cable([&] {
    ::poll(nullptr, 0, 1500);
    EXPECT_OK(setUp(*far_, kFar, true));
  });
  EXPECT_OK(noted.restore(*socket_, {.quiet = 200ms, .patience = 60s, .rounds = 2, .limit = 120s}));
  cable.join();
  EXPECT_EQ(difference(before, state()), "");
}

}  // namespace
}  // namespace faultline::netlink
