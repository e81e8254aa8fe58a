#include "resilient_ccl/fabric/port_watch.h"

#include <arpa/inet.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::fabric {
namespace {

std::uint32_t addressOf(const std::string& text) {
  in_addr binary{};
  EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &binary), 1);
  return ntohl(binary.s_addr);
}

/// A namespace with a link, and who watches it.
class PortWatchTest : public test::NetnsTest {
 protected:
  static constexpr int kNear = 100, kFar = 101;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(namespace_, netlink::newNamespace());
    ASSERT_OK_AND_ASSIGN(netlink::Socket socket, netlink::Socket::open(namespace_.get()));
    socket_.emplace(std::move(socket));
    ASSERT_OK(netlink::createVeth(*socket_, {.name = "near", .ifindex = kNear}, namespace_.get(),
                                  {.name = "far", .ifindex = kFar}));
    for (const int link : {kNear, kFar}) ASSERT_OK(netlink::setUp(*socket_, link, true));
    ASSERT_OK(netlink::addAddress(*socket_, kNear, "10.9.0.1", 16));
    ASSERT_OK_AND_ASSIGN(const auto inside, netlink::ScopedNamespace::enter(namespace_.get()));
    ASSERT_OK_AND_ASSIGN(
        watch_, PortWatch::open({.port =
                                     [this](const Port& port) {
                                       up_[port.index] = port.usable;
                                       names_[port.index] = port.present ? port.name : "";
                                     },
                                 .ports = [this](const std::set<int>& all) { ports_ = all; },
                                 .address = [this](int, std::uint32_t, bool) { ++events_; },
                                 .addresses =
                                     [this](const PortWatch::Addresses& all) {
                                       addresses_ = all;
                                       ++lists_;
                                     }}));
  }

  bool listed(int times) {
    return test::pollUntil(5s, [&] {
      EXPECT_OK(watch_->poll());
      return lists_ >= times;
    });
  }

  /// More than the kernel keeps for who does not read.
  void churn() {
    for (int i = 0; i < 4000; ++i) {
      ASSERT_OK(netlink::addAddress(*socket_, kFar, "10.8.0.1", 16));
      ASSERT_OK(netlink::removeAddress(*socket_, kFar, {addressInKernel("10.8.0.1"), 16}));
    }
  }

  static std::uint32_t addressInKernel(const std::string& text) { return htonl(addressOf(text)); }

  UniqueFd namespace_;
  std::optional<netlink::Socket> socket_;
  std::unique_ptr<PortWatch> watch_;
  std::map<int, bool> up_;
  std::map<int, std::string> names_;
  std::set<int> ports_;
  PortWatch::Addresses addresses_;
  int events_ = 0;
  int lists_ = 0;
};

TEST_F(PortWatchTest, ListsPortsAndAddresses) {
  ASSERT_OK(watch_->reportAll());
  ASSERT_TRUE(listed(1));
  constexpr int kLoopback = 1;
  EXPECT_EQ(ports_, (std::set<int>{kLoopback, kNear, kFar}));
  EXPECT_EQ(names_[kNear], "near");
  EXPECT_EQ(addresses_, (PortWatch::Addresses{{kNear, addressOf("10.9.0.1")}}));
  EXPECT_TRUE(up_.at(kNear));
  EXPECT_EQ(events_, 0) << "nothing has changed";
}

TEST_F(PortWatchTest, TellsOfAPortThatGoesWithItsAddressAndOfOneThatComes) {
  ASSERT_OK(watch_->reportAll());
  ASSERT_TRUE(listed(1));
  const auto told = [&](const auto& condition) {
    return test::pollUntil(5s, [&] {
      EXPECT_OK(watch_->poll());
      return condition();
    });
  };
  ASSERT_OK(netlink::deleteNetDevice(*socket_, kNear));
  EXPECT_TRUE(told([&] { return names_[kNear].empty() && names_[kFar].empty(); }));
  EXPECT_FALSE(up_[kNear]);
  EXPECT_EQ(events_, 1) << "of its address";
  constexpr int kNew = 102, kOther = 103;
  ASSERT_OK(netlink::createVeth(*socket_, {.name = "new", .ifindex = kNew}, namespace_.get(),
                                {.name = "other", .ifindex = kOther}));
  EXPECT_TRUE(told([&] { return names_[kNew] == "new" && names_[kOther] == "other"; }));
  EXPECT_FALSE(up_[kNew]);
  for (const int link : {kNew, kOther}) ASSERT_OK(netlink::setUp(*socket_, link, true));
  EXPECT_TRUE(told([&] { return up_[kNew] && up_[kOther]; }));
}

TEST_F(PortWatchTest, WhatWasAskedForDuringAListIsListedAfterIt) {
  for (int i = 0; i < 3; ++i) ASSERT_OK(watch_->reportAll());
  ASSERT_TRUE(listed(2));
}

TEST_F(PortWatchTest, FindsAnAddressAndAPortThatChangedWhileEventsWereDropped) {
  churn();
  ASSERT_OK(netlink::removeAddress(*socket_, kNear, {addressInKernel("10.9.0.1"), 16}));
  ASSERT_OK(netlink::addAddress(*socket_, kNear, "10.9.0.2", 16));
  ASSERT_OK(netlink::setUp(*socket_, kFar, false));
  ASSERT_TRUE(listed(1));
  EXPECT_LT(events_, 8000) << "all of it was read: nothing was dropped";
  EXPECT_EQ(addresses_, (PortWatch::Addresses{{kNear, addressOf("10.9.0.2")}}));
  EXPECT_FALSE(up_.at(kNear));
}

}  // namespace
}  // namespace faultline::fabric
