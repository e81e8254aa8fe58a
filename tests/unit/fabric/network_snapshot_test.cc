#include "resilient_ccl/fabric/network_snapshot.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/syscall.h>

#include <array>
#include <bit>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "tests/support/refused_calls.h"

// What rtnetlink says of this machine, against what the C library says.

namespace faultline::fabric {
namespace {

/// Interface, address, bits.
using Entry = std::tuple<std::string, std::string, int>;

int bitsOf(const sockaddr* mask) {
  int bits = 0;
  if (mask->sa_family == AF_INET) {
    return std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr);
  }
  for (const std::uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
    bits += std::popcount(byte);
  }
  return bits;
}

class NetworkSnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ifaddrs* first = nullptr;
    ASSERT_EQ(getifaddrs(&first), 0);
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      const std::string label = one->ifa_name;
      const std::string name = label.substr(0, label.find(':'));
      flags_[name] = one->ifa_flags;
      if (one->ifa_addr == nullptr) continue;
      const int family = one->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      const void* binary =
          family == AF_INET
              ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr)
              : &reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      std::array<char, INET6_ADDRSTRLEN> text{};
      inet_ntop(family, binary, text.data(), text.size());
      addresses_.emplace(name, text.data(), bitsOf(one->ifa_netmask));
    }
  }

  void expectTheSame(const NetworkSnapshot& network) const {
    std::set<Entry> addresses;
    EXPECT_EQ(network.links.size(), flags_.size());
    for (const NetworkLink& link : network.links) {
      ASSERT_TRUE(flags_.contains(link.name)) << link.name;
      const unsigned flags = flags_.at(link.name);
      EXPECT_EQ(link.index, static_cast<int>(if_nametoindex(link.name.c_str())));
      EXPECT_EQ(link.up, (flags & IFF_UP) != 0) << link.name;
      EXPECT_EQ(link.loopback, (flags & IFF_LOOPBACK) != 0) << link.name;
      for (const NetworkAddress& address : link.addresses) {
        addresses.emplace(link.name, address.text, address.prefix);
        in_addr binary{};
        const bool four = inet_pton(AF_INET, address.text.c_str(), &binary) == 1;
        EXPECT_EQ(address.ipv4, four ? ntohl(binary.s_addr) : 0) << address.text;
      }
    }
    EXPECT_EQ(addresses, addresses_);
  }

  std::map<std::string, unsigned> flags_;
  std::set<Entry> addresses_;
};

TEST_F(NetworkSnapshotTest, HasEveryInterfaceWithItsAddresses) {
  for (const auto& read : {readAddresses(), readNetwork()}) {
    ASSERT_TRUE(read.ok()) << read.status().message();
    expectTheSame(*read);
  }
}

TEST_F(NetworkSnapshotTest, WhereTheKernelDoesNotAnswerNothingIsMadeUp) {
  for (const long call : {SYS_sendmsg, SYS_recvmsg}) {
    EXPECT_TRUE(test::worksWithout({call}, EPERM,
                                   [] { return !readAddresses().ok() && !readNetwork().ok(); }))
        << "call " << call;
  }
}

TEST_F(NetworkSnapshotTest, FindsAnInterfaceByItsNameAndByItsIndex) {
  const auto network = readAddresses();
  ASSERT_TRUE(network.ok()) << network.status().message();
  for (const NetworkLink& link : network->links) {
    EXPECT_EQ(network->find(link.name), &link);
    EXPECT_EQ(network->find(link.index), &link);
  }
  EXPECT_EQ(network->find("no-such-device"), nullptr);
  EXPECT_EQ(network->find(0), nullptr);
}

}  // namespace
}  // namespace faultline::fabric
