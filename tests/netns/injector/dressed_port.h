#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "harness/launch/process.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/interface_configuration.h"
#include "injector/netlink/namespace.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::netlink {

/// A host of two ports, `r0` and `other`, each a cable to a namespace where nobody answers. What it
/// is configured with is set and read by `ip`, not by what is tested.
class DressedPortTest : public test::NetnsTest {
 protected:
  static constexpr int kPort = 11;
  static constexpr int kOtherPort = 12;
  static constexpr int kFar = 21;
  static constexpr Duration kLong = 5s;
  using Lines = std::vector<std::string>;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    makeHost();
  }

  /// A new one, in which nothing is set.
  void makeHost() {
    socket_.reset();
    far_.reset();
    ASSERT_OK_AND_ASSIGN(const UniqueFd here, newNamespace());
    ASSERT_OK_AND_ASSIGN(const UniqueFd there, newNamespace());
    ASSERT_OK_AND_ASSIGN(Socket socket, Socket::open(here.get()));
    socket_.emplace(std::move(socket));
    ASSERT_OK_AND_ASSIGN(Socket far, Socket::open(there.get()));
    far_.emplace(std::move(far));
    ASSERT_OK(createVeth(*socket_, {.name = "r0", .ifindex = kPort}, there.get(),
                         {.name = "far0", .ifindex = kFar}));
    ASSERT_OK(createVeth(*socket_, {.name = "other", .ifindex = kOtherPort}, there.get(),
                         {.name = "far1", .ifindex = kFar + 1}));
    host("ip link set lo up");
    host("ip link set r0 mtu 1400; ip address add 10.200.0.1/24 dev other");
    // No automatic looking for duplicates: it ends when it likes.
    host("for x in r0 other; do echo 0 >/proc/sys/net/ipv6/conf/$x/accept_dad; done");
    for (const int far_index : {kFar, kFar + 1}) ASSERT_OK(setUp(*far_, far_index, true));
    for (const int port : {kPort, kOtherPort}) ASSERT_OK(setUp(*socket_, port, true));
    awaitOperational();
  }

  /// Everything that one may set and that may be lost.
  void dress() {
    host(R"(
ip address add 10.1.0.1/24 dev r0 label r0:a
ip address add 10.1.0.11/24 dev r0
ip address add 10.1.0.12/24 dev r0 metric 77
ip address add 10.1.7.1 peer 10.1.7.2 dev r0
ip address add 10.1.8.1/24 dev r0 noprefixroute
ip address add 10.1.9.1/24 dev r0 valid_lft 10000 preferred_lft 9000
ip route add default via 10.1.0.2 dev r0 metric 50
ip route add 10.90.0.0/16 via 10.1.0.2 mtu lock 1300 initcwnd 20 metric 33
ip route add 10.91.0.0/16 dev r0 scope link src 10.1.0.11
ip route add 10.92.0.0/16 via 10.77.0.1 dev r0 onlink
ip route add 10.93.0.0/16 via 10.1.0.2 table 100 proto 99
ip route add 10.93.0.0/16 via 10.1.0.3 table 70000 tos 0x10
ip route add 10.94.0.0/16 nexthop via 10.1.0.2 dev r0 weight 3 nexthop via 10.200.0.2 dev other
ip route add 10.97.0.0/16 nexthop via 10.1.0.2 dev r0 weight 3 nexthop via 10.1.0.3 dev r0 weight 2
ip route add 10.98.0.0/16 via 10.200.0.2 metric 9
ip route append 10.98.0.0/16 via 10.1.0.2 metric 9
ip route add 10.99.0.0/16 via 10.1.0.2 metric 9
ip route append 10.99.0.0/16 via 10.200.0.2 metric 9
ip route add multicast 239.1.0.0/16 dev r0
ip route add 10.50.0.0/24 dev r0
ip route add 10.51.0.0/24 via 10.50.0.1
ip nexthop add id 5 via 10.1.0.2 dev r0 proto 99
ip nexthop add id 6 via 10.200.0.2 dev other
ip nexthop add id 3 group 5,4/6,2
ip nexthop add id 8 dev r0
ip nexthop add id 9 group 8/5
ip route add 10.95.0.0/16 nhid 5
ip route add 10.96.0.0/16 nhid 3
ip route add 10.95.1.0/24 nhid 9 table 100
ip neighbour add 10.1.0.2 lladdr 02:bb:00:00:00:02 nud permanent dev r0
ip neighbour add 10.1.0.3 lladdr 02:bb:00:00:00:03 nud reachable dev r0
ip neighbour add proxy 10.1.0.77 dev r0
ip -6 address add fd01::1/64 dev r0 nodad
ip -6 address add fd01::2/64 dev r0 nodad preferred_lft 0
ip -6 address add fd01::3/64 dev r0 metric 300 nodad
ip -6 address add fd01:5::3/64 dev r0 metric 300
ip -6 address add fd01:8::1/64 dev r0 nodad noprefixroute
ip -6 address add fd01:9::1/64 dev r0 valid_lft 10000 preferred_lft 9000
ip -6 address add fd01:7::1 peer fd01:7::2/128 dev r0
ip -6 address add fe80::1234/64 dev r0
ip -6 route add default via fd01::ff dev r0 metric 50
ip -6 route add fd90::/64 via fd01::ff metric 33 mtu 1300
ip -6 route add fd91::/64 via fe80::9 dev r0
ip -6 route add fd92::/64 dev r0 src fd01::2
ip -6 route add fd93::/64 via fd01::ff table 100
ip -6 route add fd94::/64 from fd01::/64 via fd01::ff
ip -6 route add fd95::/64 dev r0 expires 3000
ip -6 route add fd96::/64 nexthop via fd01::fe dev r0 weight 2 nexthop via fd01::ff dev r0
ip -6 route add fd99::/64 via fd98::1 dev r0 onlink
ip -6 address add fd20::1/64 dev other nodad
ip -6 route add fd9a::/64 nexthop via fd01::fe dev r0 nexthop via fd20::2 dev other weight 4
ip -6 nexthop add id 55 via fd01::ff dev r0
ip -6 route add fd97::/64 nhid 55
ip -6 neighbour add fd01::ff lladdr 02:bb:00:00:00:02 router nud permanent dev r0
ip -6 neighbour add proxy fd01::77 dev r0
echo 1380 >/proc/sys/net/ipv6/conf/r0/mtu
)");
  }

  InterfaceConfiguration note() {
    auto configuration = InterfaceConfiguration::read(*socket_, kPort);
    EXPECT_OK(configuration.status());
    return configuration.ok() ? *configuration : InterfaceConfiguration();
  }

  /// What a shell says in the namespace of the host.
  std::string host(const std::string& commands) { return shell(*socket_, commands); }

  std::string shell(const Socket& socket, const std::string& commands) {
    const UniqueFd said(::memfd_create("said", MFD_CLOEXEC));
    launch::SpawnOptions options;
    options.executable = "/bin/sh";
    options.arguments = {"sh", "-ec", commands};
    options.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
    options.namespace_fd = socket.namespaceFd();
    options.stdout_fd = options.stderr_fd = said.get();
    auto process = launch::Process::spawn(options);
    EXPECT_OK(process.status());
    if (!process.ok()) return "";
    const auto ended = process->waitFor(30s);
    std::string text(static_cast<std::size_t>(::lseek(said.get(), 0, SEEK_END)), '\0');
    (void)!::pread(said.get(), text.data(), text.size(), 0);
    EXPECT_TRUE(ended.ok() && ended->ok()) << commands << ":\n" << text;
    return text;
  }

  NetDevice port(int ifindex) { return *readNetDevice(*socket_, ifindex); }

  void awaitOperational() {
    for (const int one : {kPort, kOtherPort}) {
      ASSERT_TRUE(test::pollUntil(kLong, [&] { return isOperational(port(one)); }));
    }
  }

  /// The port goes down and comes up, as after port_down.
  void downAndUp(const std::vector<int>& ports = {kPort}) {
    for (const int one : ports) ASSERT_OK(setUp(*socket_, one, false));
    for (const int one : ports) ASSERT_OK(setUp(*socket_, one, true));
    awaitOperational();
  }

  /// The far end goes down and comes up, as when a cable is pulled.
  void loseCarrier() {
    ASSERT_OK(setUp(*far_, kFar, false));
    ASSERT_TRUE(test::pollUntil(kLong, [&] { return !port(kPort).carrier; }));
    ASSERT_TRUE(test::pollUntil(kLong, [&] { return !isOperational(port(kPort)); }));
    ASSERT_OK(setUp(*far_, kFar, true));
    awaitOperational();
  }

  /// All that `ip` says of addresses, routes, nexthop objects and neighbours that were set, and
  /// which way and source address it chooses. A line for each, in the kernel's order.
  Lines state() {
    Lines lines;
    // The kernel looks at new IPv6 addresses when it finds the time.
    EXPECT_TRUE(test::pollUntil(kLong, [&] {
      lines = stateNow();
      return std::none_of(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find(" tentative") != std::string::npos;
      });
    }));
    return lines;
  }

  Lines stateNow() {
    std::istringstream text(host(R"(
ip -o -d address show
ip -o -d -4 route show table all
ip -o -d -6 route show table all
ip -o nexthop show
ip -o neighbour show nud permanent
ip -o neighbour show proxy
cat /proc/sys/net/ipv6/conf/r0/mtu
for to in 10.0.0.200 10.1.0.200 10.2.0.200 10.90.0.9 10.91.0.9 10.99.0.9 fd00::200 fd01::200 fd90::9 fd92::9
do echo route get $to
done | ip -force -batch - 2>&1 | grep src || true
)"));
    Lines lines;
    Lines link_local;  // whichever port has come up first has the first of them, and nobody minds
    static const std::regex kLinkLocal("fe80::/64|ff00::/8");
    static const std::regex kNoise("[0-9]+sec|^[0-9]+: ");  // what is left of a life, an index
    for (std::string line; std::getline(text, line);) {
      Lines& those = std::regex_search(line, kLinkLocal) ? link_local : lines;
      those.push_back(std::regex_replace(line, kNoise, "N "));
    }
    std::sort(link_local.begin(), link_local.end());
    lines.insert(lines.end(), link_local.begin(), link_local.end());
    return lines;
  }

  static Lines lostOf(const Lines& before, const Lines& after) {
    Lines lost;
    for (const std::string& line : before) {
      if (std::find(after.begin(), after.end(), line) == after.end()) lost.push_back(line);
    }
    return lost;
  }

  /// Both ways; where the lines are the same, the first that stands elsewhere.
  static std::string difference(const Lines& before, const Lines& after) {
    std::string text;
    for (const std::string& line : lostOf(before, after)) text += "- " + line + "\n";
    for (const std::string& line : lostOf(after, before)) text += "+ " + line + "\n";
    if (!text.empty() || before == after) return text;
    const auto [one, other] =
        std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    return fmt::format("~ {}\n  where now is {}\n", one == before.end() ? "the end" : *one,
                       other == after.end() ? "the end" : *other);
  }

  std::optional<Socket> socket_;
  std::optional<Socket> far_;
};

}  // namespace faultline::netlink
