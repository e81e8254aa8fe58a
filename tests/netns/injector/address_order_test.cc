// Addresses that stand in another order than they did, and those of others among them.
#include <gmock/gmock.h>

#include "injector/netlink/interface_configuration.h"
#include "tests/netns/injector/dressed_port.h"

namespace faultline::netlink {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AddressOrderTest : public DressedPortTest {
 protected:
  static constexpr Settling kManaged{.quiet = 50ms, .patience = 3s, .keep_foreign = true};

  /// What is there after these commands, noted.
  InterfaceConfiguration noteAfter(const std::string& commands) {
    host(commands);
    before_ = state();
    auto configuration = InterfaceConfiguration::read(*socket_, kPort);
    EXPECT_OK(configuration.status());
    return configuration.ok() ? *configuration : InterfaceConfiguration();
  }
  Lines addresses() {
    Lines lines = state();
    std::erase_if(lines, [](const std::string& line) {
      return line.find("r0 ") == std::string::npos || line.find("inet") == std::string::npos;
    });
    return lines;
  }

  Lines before_;
};

TEST_F(AddressOrderTest, ThoseOfIpv6AreSetRightAlsoBehindOneOfSomebodyElse) {
  const InterfaceConfiguration noted = noteAfter(R"(
ip address add fd01::1/64 dev r0 nodad
ip address add fd01::2/64 dev r0 nodad
)");
  host(R"(
ip address del fd01::1/64 dev r0
ip address del fd01::2/64 dev r0
for i in 9 2 1; do ip address add fd01::$i/64 dev r0 nodad; done
)");
  ASSERT_OK_AND_ASSIGN(const int disordered, noted.missing(*socket_));
  EXPECT_EQ(disordered, 1);
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_THAT(addresses(), Contains(HasSubstr("fd01::9/64")));
  host("ip address del fd01::9/64 dev r0");
  EXPECT_EQ(difference(before_, state()), "");
}

TEST_F(AddressOrderTest, OneOfSomebodyElseAmongThoseOfTheOtherFamilyIsNoDisorder) {
  const InterfaceConfiguration noted = noteAfter(R"(
ip address add 10.1.0.1/24 dev r0
ip address add 10.2.0.1/24 dev r0
ip route add 10.90.0.0/16 dev r0 src 10.1.0.1
ip address add fd01::1/64 dev r0 nodad
ip address add fd01::2/64 dev r0 nodad
)");
  host(R"(
ip address del 10.2.0.1/24 dev r0
ip address add 10.3.0.1/24 dev r0
ip address add 10.2.0.1/24 dev r0
ip address del fd01::1/64 dev r0
ip address add fd01::1/64 dev r0 nodad
)");
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_THAT(addresses(), Contains(HasSubstr("10.3.0.1/24")));
  host("ip address del 10.3.0.1/24 dev r0");
  EXPECT_EQ(difference(before_, state()), "");
}

// Nothing but the memory of this process would know of them while they are gone.
TEST_F(AddressOrderTest, OnAHostNothingOfOthersIsRemoved) {
  const InterfaceConfiguration noted = noteAfter("ip address add 10.1.0.1/24 dev r0");
  host(R"(
ip address del 10.1.0.1/24 dev r0
ip address add 10.1.0.99/24 dev r0
ip address add 10.1.0.1/24 dev r0
ip route add 10.89.0.0/16 dev r0 src 10.1.0.99
)");
  const Lines others = state();
  const Status status = noted.restore(*socket_, kManaged);
  EXPECT_EQ(status.code(), Code::kNotRestored);
  EXPECT_EQ(status.message(),
            "could not put back\n  the order of its IPv4 addresses, which chooses source "
            "addresses: to set it right, what somebody else has set beside them would have to be "
            "removed");
  EXPECT_EQ(noted.restore(*socket_, kUnmanagedHost).code(), Code::kNotRestored);
  EXPECT_EQ(difference(others, state()), "");
  EXPECT_OK(noted.restore(*socket_));  // in a namespace of our own
  EXPECT_THAT(lostOf(before_, state()), IsEmpty());
}

TEST_F(AddressOrderTest, OnAHostWhatWasNotedIsSetRightWhereItStandsAlone) {
  const InterfaceConfiguration noted = noteAfter(R"(
ip address add 10.1.0.1/24 dev r0
ip address add 10.1.0.2/24 dev r0
ip route add 10.90.0.0/16 dev r0 src 10.1.0.1
)");
  host(R"(
ip address add fd01::9/64 dev r0 nodad
ip address del 10.1.0.2/24 dev r0
ip address del 10.1.0.1/24 dev r0
ip address add 10.1.0.2/24 dev r0
ip address add 10.1.0.1/24 dev r0
)");
  EXPECT_OK(noted.restore(*socket_, kManaged));
  host("ip address del fd01::9/64 dev r0");
  EXPECT_EQ(difference(before_, state()), "");
}

}  // namespace
}  // namespace faultline::netlink
