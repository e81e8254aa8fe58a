#include "resilient_ccl/comm/bootstrap.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/free_port.h"

namespace faultline::comm {
namespace {

using transport::tcp::Endpoint;

constexpr std::uint32_t kHere = 0x7f000001;

/// Carries the bytes of one connection to `port`, and may change those that the connecting end
/// sends, or gets: told how many have passed before, and the bytes.
class Relay {
 public:
  using Change = std::function<void(std::size_t before, std::span<char> bytes)>;

  /// The first `unanswered` connections are accepted, and nothing else.
  Relay(std::uint16_t port, Change sent, Change got, int unanswered = 0) : unanswered_(unanswered) {
    auto listener = transport::tcp::openListener({kHere, "", 0});
    listener_ = std::move(*listener);
    port_ = transport::tcp::localEndpoint(listener_.get())->port;
    thread_ = std::thread(
        [this, port, sent = std::move(sent), got = std::move(got)] { run(port, sent, got); });
  }
  ~Relay() {
    stopping_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return port_; }

 private:
  bool await(int fd, short events) const {
    pollfd waiting{fd, events, 0};
    while (!stopping_) {
      if (::poll(&waiting, 1, 10) > 0) return true;
    }
    return false;
  }

  /// Nobody may listen there yet.
  UniqueFd connectTo(std::uint16_t port) const {
    while (!stopping_) {
      auto connection = transport::tcp::beginConnect({kHere, "", 0}, {kHere, port});
      if (!await(connection->get(), POLLOUT)) break;
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(connection->get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return std::move(*connection);
    }
    return {};
  }

  void run(std::uint16_t port, const Change& sent, const Change& got) {
    std::vector<UniqueFd> left;
    for (; unanswered_ > 0; --unanswered_) {
      if (!await(listener_.get(), POLLIN)) return;
      left.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    }
    if (!await(listener_.get(), POLLIN)) return;
    const UniqueFd near(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    const UniqueFd far = connectTo(port);
    if (!far) return;
    std::array<std::size_t, 2> passed{};
    const std::array<int, 2> from{near.get(), far.get()};
    while (!stopping_) {
      std::array<pollfd, 2> waiting{{{from[0], POLLIN, 0}, {from[1], POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), 10);
      for (int way = 0; way < 2; ++way) {
        std::array<char, 4096> bytes;
        const ssize_t count = recv(from[way], bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (count == 0) return;
        if (count < 0) continue;
        const std::span some(bytes.data(), static_cast<std::size_t>(count));
        (way == 0 ? sent : got)(passed[way], some);
        passed[way] += some.size();
        (void)send(from[1 - way], some.data(), some.size(), MSG_NOSIGNAL);
      }
    }
  }

  UniqueFd listener_;
  std::uint16_t port_ = 0;
  int unanswered_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// How the exchange of two ranks ends when the second one's connection goes through a relay.
std::array<Status, 2> exchangeThrough(Relay& relay, std::uint16_t port, Duration timeout = 1s) {
  const auth::JobKey key = auth::JobKey::random();
  std::array<Status, 2> ends;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      auto joined = Bootstrap::connect({.rank = rank,
                                        .size = 2,
                                        .jobKey = key,
                                        .address = kHere,
                                        .rendezvous = {kHere, rank == 0 ? port : relay.port()},
                                        .timeout = timeout});
      ends[rank] = joined.status();
      if (!joined.ok()) return;
      const auto all = (*joined)->allGather(rank == 0 ? "address of 0" : "address of 1");
      ends[rank] = all.status();
      if (!all.ok()) return;
      EXPECT_EQ(*all, (std::vector<std::string>{"address of 0", "address of 1"}));
    });
  }
  for (auto& thread : ranks) thread.join();
  return ends;
}

void unchanged(std::size_t, std::span<char>) {}

/// Changes one bit of the byte that is the `index`-th of its direction.
Relay::Change damage(std::size_t index) {
  return [index](std::size_t before, std::span<char> bytes) {
    if (before <= index && index < before + bytes.size()) bytes[index - before] ^= 1;
  };
}

constexpr std::size_t kLength = sizeof(std::uint32_t);

TEST(BootstrapTest, WhatIsCarriedFaithfullyArrives) {
  const std::uint16_t port = freePort();
  Relay relay(port, unchanged, unchanged);
  for (const Status& end : exchangeThrough(relay, port)) EXPECT_TRUE(end.ok()) << end.message();
}

TEST(BootstrapTest, AContributionThatWasChangedOnItsWayIsRefused) {
  const std::uint16_t port = freePort();
  Relay relay(port, damage(sizeof(fabric::SignedHello) + kLength), unchanged);
  const auto ends = exchangeThrough(relay, port);
  EXPECT_EQ(ends[0].code(), Code::kInvalidArgument) << ends[0].message();
}

TEST(BootstrapTest, WhatTheRootPassesOnIsNotChangedEither) {
  const std::uint16_t port = freePort();
  Relay relay(port, unchanged, damage(sizeof(auth::Nonce) + sizeof(auth::Tag) + kLength));
  const auto ends = exchangeThrough(relay, port);
  EXPECT_EQ(ends[1].code(), Code::kInvalidArgument) << ends[1].message();
}

TEST(BootstrapTest, WhoListensAndIsSilentIsNotWaitedForTillTheEnd) {
  const std::uint16_t port = freePort();
  Relay relay(
      port, [](auto, auto) {}, [](auto, auto) {}, /*unanswered=*/1);
  for (const Status& end : exchangeThrough(relay, port, 10s))
    EXPECT_TRUE(end.ok()) << end.message();
}

TEST(BootstrapTest, SilentStrangersDoNotKeepTheRanksOut) {
  constexpr int kStrangers = 12;
  constexpr Duration kTimeout = 10s;  // they would take more than twice as long one after the other
  const std::uint16_t port = freePort();
  const auth::JobKey key = auth::JobKey::random();
  const auto join = [&](int rank) {
    return Bootstrap::connect({.rank = rank,
                               .size = 2,
                               .jobKey = key,
                               .address = kHere,
                               .rendezvous = {kHere, port},
                               .timeout = kTimeout})
        .status();
  };
  Status root;
  std::thread first([&] { root = join(0); });
  std::vector<UniqueFd> strangers;
  for (const TimePoint end = now() + kTimeout; strangers.size() < kStrangers && now() < end;) {
    auto socket = transport::tcp::beginConnect({kHere, "", 0}, {kHere, port});
    pollfd waiting{socket->get(), POLLIN, 0};  // the challenge
    if (::poll(&waiting, 1, 100) > 0 && transport::tcp::connectOutcome(socket->get()).ok()) {
      strangers.push_back(std::move(*socket));
    }
  }
  const Status second = join(1);
  first.join();
  EXPECT_TRUE(second.ok()) << second.message();
  EXPECT_TRUE(root.ok()) << root.message();
}

}  // namespace
}  // namespace faultline::comm
