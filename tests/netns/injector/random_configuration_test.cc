// Configurations from seeds, of all kinds that one may set: each is put back as it was.
#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/netns/injector/dressed_port.h"

namespace faultline::netlink {
namespace {

/// Lines of `ip -batch` for IPv4 and IPv6. Some may be refused, as one that needs another that was
/// not chosen: what is set then is what counts.
class RandomConfiguration {
 public:
  explicit RandomConfiguration(std::uint64_t seed) : random_(seed) {
    for (int count = below(6); count > 0; --count) address4();
    for (int count = below(6); count > 0; --count) address6();
    for (int count = below(5); count > 0; --count) nexthop();
    for (int count = below(3); count > 0; --count) group();
    for (int count = below(8); count > 0; --count) route4();
    for (int count = below(8); count > 0; --count) route6();
    for (int count = below(4); count > 0; --count) neighbour();
    if (below(2) == 0) routesBehindOneAnother();
  }

  std::string commands() const {
    return fmt::format(
        "ip -force -batch - 2>/dev/null <<END || true\n{}END\n"
        "ip -6 -force -batch - 2>/dev/null <<END || true\n{}END\n",
        four_, six_);
  }

 private:
  int below(int bound) {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  std::string maybe(const std::string& words) { return below(3) == 0 ? " " + words : ""; }
  std::string oneOf(std::initializer_list<const char*> words) {
    return *(words.begin() + below(static_cast<int>(words.size())));
  }
  template <typename... Args>
  void four(fmt::format_string<Args...> format, Args&&... args) {
    four_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  template <typename... Args>
  void six(fmt::format_string<Args...> format, Args&&... args) {
    six_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void address4() {
    if (below(6) == 0)
      return four("address add 10.7.0.{} peer 10.8.{}.0/24 dev r0", below(9), below(9));
    four("address add 10.{}.0.{}/{} dev r0{}{}{}{}", below(3), 1 + below(9),
         oneOf({"24", "16", "32"}), maybe("label r0:" + oneOf({"a", "b"})), maybe("noprefixroute"),
         maybe("metric " + oneOf({"7", "300"})), maybe("valid_lft 9000 preferred_lft 8000"));
  }
  void address6() {
    if (below(6) == 0) return six("address add fd07::{} peer fd08::{} dev r0", below(9), below(9));
    if (below(6) == 0) return six("address add fe80::{}/64 dev r0{}", 1 + below(9), maybe("nodad"));
    // A priority of its own for a network of its own: see hasRival().
    six("address add fd0{}::{}/64 dev r0{}{}{}", below(3), 1 + below(9), maybe("nodad"),
        maybe("noprefixroute"), maybe("valid_lft 9000 preferred_lft " + oneOf({"0", "8000"})));
    if (below(3) == 0) six("address add fd1{}::1/64 dev r0 metric 300", below(9));
  }
  void nexthop() {
    const int id = 1 + below(6);
    if (below(3) == 0) return four("nexthop add id {} via 10.200.0.{} dev other", id, 2 + below(5));
    if (below(3) == 0) return six("nexthop add id {} via fd00::f{} dev r0", 20 + id, below(5));
    four("nexthop add id {}{} dev r0{}", id, maybe(fmt::format("via 10.{}.0.99", below(3))),
         maybe("proto 77"));
  }
  void group() {
    four("nexthop add id {} group {},{}/{},{}", 10 + below(3), 1 + below(3), 1 + below(5),
         4 + below(3), 1 + below(5));
  }
  std::string gateway4() { return fmt::format("10.{}.0.9{}", below(3), below(3)); }
  std::string gateway6() { return fmt::format("fd0{}::f{}", below(3), below(3)); }
  void route4() {
    const std::string to = fmt::format("10.{}.0.0/{}", 90 + below(6), oneOf({"16", "24"})) +
                           maybe("table " + oneOf({"100", "70000"})) +
                           maybe("metric " + oneOf({"5", "50"}));
    const std::string how = oneOf({"add", "append", "prepend"});
    switch (below(8)) {
      case 0:
        return four("route {} {} via 10.200.0.{} dev other", how, to, 2 + below(3));
      case 1:
        return four("route {} {} nhid {}", how, to, below(2) == 0 ? 1 + below(6) : 10 + below(3));
      case 2:
        return four("route {} {} nexthop via {} dev r0 weight {} nexthop via 10.200.0.2 dev other",
                    how, to, gateway4(), 1 + below(4));
      case 3:
        return four("route {} {} nexthop via {} dev r0 nexthop dev r0 weight 2", how, to,
                    gateway4());
      case 4:
        return four("route {} {} dev r0 scope link{}", how, to, maybe("proto 88"));
      case 5:
        return four("route {} {} via 10.77.0.1 dev r0 onlink{}", how, to, maybe("tos 0x10"));
      case 6:
        return four("route {} multicast 239.{}.0.0/16 dev r0", how, below(3));
      default:
        return four("route {} {} via {}{}{}", how, to, gateway4(), maybe("mtu lock 1300"),
                    maybe("advmss 900 initcwnd 7"));
    }
  }
  /// To one destination: some of the port, some over the other one, some of the port again.
  void routesBehindOneAnother() {
    const auto add = [&](const std::string& over) {
      four("route append 10.97.0.0/16 metric 9 {}", over);
    };
    const auto ofPort = [&]() -> std::string {
      const std::string gateway = gateway4();
      switch (below(4)) {
        case 0:
          return fmt::format("nhid {}", 1 + below(6));
        case 1:
          return fmt::format("nexthop via {} dev r0 nexthop via 10.200.0.{} dev other", gateway,
                             2 + below(3));
        default:
          return fmt::format("via {} dev r0", gateway);
      }
    };
    for (int count = below(4); count > 0; --count) add(ofPort());
    const int others = below(3);
    for (int one = 0; one < others; ++one) add(fmt::format("via 10.200.0.{} dev other", 5 + one));
    for (int count = others > 0 ? below(3) : 0; count > 0; --count) add(ofPort());
  }
  void route6() {
    const std::string to = fmt::format("fd9{}::/64", below(6)) +
                           maybe("table " + oneOf({"100", "70000"})) +
                           maybe("metric " + oneOf({"5", "50"}));
    switch (below(7)) {
      case 0:
        return six("route add {} dev r0{}", to, maybe("expires 3000"));
      case 1:
        return six("route add {} nhid {}", to, 21 + below(6));
      case 2:
        return six("route add {} nexthop via {} dev r0 weight 2 nexthop via {} dev r0", to,
                   gateway6(), gateway6());
      case 3:
        return six("route add {} via fe80::{} dev r0{}", to, 1 + below(9), maybe("mtu 1290"));
      case 4:
        return six("route add {} via fd77::1 dev r0 onlink", to);
      case 5:
        return six("route add {} from fd0{}::/64 via {}", to, below(3), gateway6());
      default:
        return six("route add {} via {}{}", to, gateway6(), maybe("pref high"));
    }
  }
  void neighbour() {
    const std::string mac = fmt::format("lladdr 02:bb:00:00:00:0{}", below(9));
    four("neighbour add 10.0.0.{} {} nud permanent dev r0", 20 + below(5), mac);
    six("neighbour add fd00::{} {}{} nud permanent dev r0", 20 + below(5), mac, maybe("router"));
    if (below(2) == 0) four("neighbour add proxy 10.0.0.{} dev r0", 30 + below(5));
    if (below(2) == 0) six("neighbour add proxy fd00::{} dev r0", 30 + below(5));
  }

  Random random_;
  std::string four_;
  std::string six_;
};

class RandomConfigurationTest : public DressedPortTest,
                                public ::testing::WithParamInterface<int> {};

// In parts, so that one that fails is found soon.
constexpr int kParts = 4;
constexpr int kSeedsOfPart = 50;
INSTANTIATE_TEST_SUITE_P(Part, RandomConfigurationTest, ::testing::Range(0, kParts));

TEST_P(RandomConfigurationTest, IsPutBackAsItWas) {
  std::size_t set = 0;
  std::size_t lost = 0;
  const std::size_t nothing = state().size();
  for (int seed = GetParam() * kSeedsOfPart; seed < (GetParam() + 1) * kSeedsOfPart; ++seed) {
    const RandomConfiguration random(static_cast<std::uint64_t>(seed));
    if (seed % kSeedsOfPart != 0) makeHost();
    host(random.commands());
    const Lines before = state();
    ASSERT_OK_AND_ASSIGN(const auto noted, InterfaceConfiguration::read(*socket_, kPort));
    if (seed % 3 == 0) {
      loseCarrier();
    } else {
      downAndUp();
    }
    ASSERT_OK_AND_ASSIGN(const int missing, noted.missing(*socket_));
    set += before.size() - nothing;
    lost += static_cast<std::size_t>(missing);
    EXPECT_OK(noted.restore(*socket_));
    ASSERT_EQ(difference(before, state()), "") << "seed " << seed << ":\n" << random.commands();
  }
  EXPECT_GT(set, std::size_t{10} * kSeedsOfPart);
  EXPECT_GT(lost, std::size_t{5} * kSeedsOfPart);
}

}  // namespace
}  // namespace faultline::netlink
