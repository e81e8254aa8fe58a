#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/transport/tcp/socket.h"

// Somebody on the network who hears everything, and may send it again.

namespace faultline::test {

/// Stands in for one UDP socket: hands on what comes, and keeps a copy.
class DatagramTap {
 public:
  explicit DatagramTap(const transport::tcp::Endpoint& behind)
      : behind_(behind), socket_(transport::tcp::openUdp({INADDR_LOOPBACK, "", 0}).value()) {}

  transport::tcp::Endpoint endpoint() const {
    return transport::tcp::localEndpoint(socket_.get()).value();
  }
  const transport::tcp::Endpoint& behind() const { return behind_; }

  void pump() {
    std::array<std::byte, 2048> buffer;
    for (;;) {
      const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0) return;
      heard.emplace_back(buffer.begin(), buffer.begin() + got);
      send(heard.back(), behind_);
    }
  }
  void send(std::span<const std::byte> bytes, const transport::tcp::Endpoint& to) {
    const sockaddr_in address = to.toSockaddr();
    ASSERT_EQ(sendto(socket_.get(), bytes.data(), bytes.size(), 0,
                     reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              static_cast<ssize_t>(bytes.size()));
  }

  std::vector<std::vector<std::byte>> heard;

 private:
  transport::tcp::Endpoint behind_;
  UniqueFd socket_;
};

/// Stands in for one listener: hands on both directions of each connection, and keeps what the
/// connecting end says first.
class ConnectionTap {
 public:
  explicit ConnectionTap(const transport::tcp::Endpoint& behind)
      : behind_(behind),
        listener_(transport::tcp::openListener({INADDR_LOOPBACK, "", 0}).value()) {}

  transport::tcp::Endpoint endpoint() const {
    return transport::tcp::localEndpoint(listener_.get()).value();
  }
  const transport::tcp::Endpoint& behind() const { return behind_; }

  /// Ends all connections that there are.
  void cut() { lines_.clear(); }
  /// From now on it hands nothing on: it makes a challenge up, and answers with what it hears.
  void answerYourself() { alone_ = true; }

  void pump() {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket && alone_) {
      auth::Nonce challenge;
      auth::fillRandom(challenge);
      EXPECT_EQ(::send(socket.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(challenge.size()));
      impostors_.push_back(std::move(socket));
    } else if (socket) {
      lines_.push_back({std::move(socket),
                        transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, behind_).value()});
    }
    for (Line& line : lines_) {
      move(line.near, line.far, &hello, heard);
      move(line.far, line.near, nullptr, heard);
    }
    for (const UniqueFd& impostor : impostors_) {
      fabric::SignedHello said;
      const ssize_t got = recv(impostor.get(), &said, sizeof(said), MSG_DONTWAIT);
      if (got != static_cast<ssize_t>(sizeof(said))) continue;
      (void)::send(impostor.get(), said.tag.data(), said.tag.size(), MSG_NOSIGNAL);
    }
  }

  std::vector<std::byte> hello;
  /// The beginning of all that was said, in both directions.
  std::vector<std::byte> heard;
  static constexpr std::size_t kMostHeard = 4096;

 private:
  struct Line {
    UniqueFd near, far;
  };
  static void move(const UniqueFd& from, const UniqueFd& to, std::vector<std::byte>* first,
                   std::vector<std::byte>& all) {
    std::array<std::byte, 65536> buffer;
    const ssize_t got = recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    if (first != nullptr && first->size() < sizeof(fabric::SignedHello)) {
      first->insert(first->end(), buffer.begin(), buffer.begin() + got);
      first->resize(std::min(first->size(), sizeof(fabric::SignedHello)));
    }
    const auto kept = std::min(kMostHeard - all.size(), static_cast<std::size_t>(got));
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(kept));
    (void)transport::tcp::sendAll(to.get(), buffer.data(), static_cast<std::size_t>(got),
                                  now() + 5s);
  }

  transport::tcp::Endpoint behind_;
  UniqueFd listener_;
  std::vector<Line> lines_;
  std::vector<UniqueFd> impostors_;
  bool alone_ = false;
};

}  // namespace faultline::test
